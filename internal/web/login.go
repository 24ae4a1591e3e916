package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/web/login"
	"muster/internal/web/problem"
	"muster/internal/web/server"
)

// admit finds out who sent a request, and whether a route is for them at all. Which
// rights they have there is another question.
func (a *api) admit(rt *route, c *call) error {
	err := a.identify(c)
	if rt.open && errors.Is(err, errNobody) {
		err = nil
	}
	switch {
	case err != nil:
		return err
	case rt.acts:
		return a.mayAct(c)
	case rt.shows:
		return a.maySeeRecords(c)
	}
	return nil
}

// errNobody is that a request does not say whose it is.
var errNobody = &problem.Problem{Status: http.StatusUnauthorized, Code: "login_required", Message: "log in with the name and password of a user"}

// identify says who sent a request.
func (a *api) identify(c *call) error {
	if passedOn(c) {
		if c.who == auth.Anonymous && a.gate.WantsLogin() {
			return errNobody // The broker that they asked wants none, by settings of its own.
		}
		return nil
	}
	if !a.gate.WantsLogin() {
		return nil
	}
	try := login.Attempt{Host: c.host}
	scheme, token, _ := strings.Cut(c.request.Header.Get("Authorization"), " ")
	switch {
	case scheme == "":
		return a.byCookie(c)
	case strings.EqualFold(scheme, "Bearer"):
		try.Way, try.Token = login.WayBearer, strings.TrimSpace(token)
	default:
		name, password, given := c.request.BasicAuth()
		if !given {
			return errNobody
		}
		try.Way, try.Name, try.Password = login.WayBasic, name, password
	}
	id, err := a.gate.Login(c.ctx(), try)
	if err != nil {
		return loginProblem(err)
	}
	c.id, c.who, c.groups, c.login, c.ends = id, id.Principal, id.Groups, try.Way, id.Ends
	return nil
}

// behindLogin has a page that is no route of the API need a login as those do.
func (a *api) behindLogin(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := a.mayEnter(r); err != nil {
			challenge(w, r, err)
			a.refuse(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (a *api) mayEnter(r *http.Request) error {
	if !a.begin() {
		return errStopping
	}
	defer a.running.Done()
	if err := a.reads.Ready(); err != nil {
		return problem.Unavailable(err.Error()) // Its users are not known yet.
	}
	ctx, cancel := context.WithTimeout(r.Context(), server.AnswerTimeout)
	defer cancel()
	return a.identify(newCall(r.WithContext(ctx)))
}

// loginProblem says why a login did not succeed.
func loginProblem(err error) error {
	switch {
	case errors.Is(err, login.ErrLogin), errors.Is(err, login.ErrToken):
		return &problem.Problem{Status: http.StatusUnauthorized, Code: "login_failed", Message: err.Error()}
	case errors.Is(err, login.ErrLoginBusy):
		return problem.Busy()
	}
	return err
}

// byPage is the header with which the console asks. No other page can send it unasked.
const byPage = "X-Requested-With"

// challenge tells programs how to log in. A browser would ask for a password by itself, in
// a window that no one can leave; the console has a page for that.
func challenge(w http.ResponseWriter, r *http.Request, err error) {
	h := r.Header
	fromPage := h.Get(byPage) != "" || h.Get("Sec-Fetch-Dest") == "empty" || strings.Contains(h.Get("Accept"), "text/event-stream")
	if problem.Of(err).Status == http.StatusUnauthorized && !fromPage {
		w.Header().Set("WWW-Authenticate", `Basic realm="muster", charset="UTF-8"`)
	}
}

// user is the name of who is logged in, nil for no one.
func (c *call) user() *string {
	if c.login == login.None {
		return nil
	}
	name := strings.TrimPrefix(string(c.who), string(auth.User("")))
	return &name
}

// Where no one logs in, everyone who reaches the address is a stranger. On this machine
// that is whoever may use it; from others they may read how things are, and no more,
// unless muster.http.anonymous says that they may.
const (
	strangersOnlyRead  = "there is no login here, so people of other machines may only read; create a user, or set muster.http.anonymous to full"
	strangersSeeNoData = "there is no login here, so people of other machines do not see what is in records; create a user, or set muster.http.anonymous to full"
	nobodyMay          = "log in first"
)

// mayAct returns the problem of someone who may change nothing here, whatever rights
// there are.
func (a *api) mayAct(c *call) error {
	if why := a.whyNotAct(c); why != "" {
		return &problem.Problem{Status: http.StatusForbidden, Code: "read_only", Message: why}
	}
	return nil
}

// maySeeRecords returns the problem of someone who may not see what is in records,
// whatever rights there are.
func (a *api) maySeeRecords(c *call) error {
	if why := a.whyNoRecords(c); why != "" {
		return &problem.Problem{Status: http.StatusForbidden, Code: "no_records", Message: why}
	}
	return nil
}

func (a *api) whyNotAct(c *call) string { return a.whyNot(c, strangersOnlyRead) }

func (a *api) whyNoRecords(c *call) string { return a.whyNot(c, strangersSeeNoData) }

func (a *api) whyNot(c *call, stranger string) string {
	if c.note != nil {
		return "" // The broker that they asked knows whether they are strangers.
	}
	switch wanted := a.gate.WantsLogin(); {
	case wanted && c.login == login.None:
		return nobodyMay
	case !wanted && !a.full && (a.far || isFar(c.request)):
		return stranger
	}
	return ""
}

// isFar says whether a request that came to a loopback address is someone else's: a proxy
// says so, or it was sent to a name that is not this machine's for itself.
func isFar(r *http.Request) bool {
	return r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" || !server.IsLocalName(server.HostOf(r.Host))
}

// Session is who someone is here, and what is open to them.
type Session struct {
	User        *string    `json:"user" doc:"who is logged in; null without a login"`
	Login       string     `json:"login" doc:"how: none, basic, cookie or bearer"`
	LoginWanted bool       `json:"loginWanted" doc:"whoever wants to know anything else has to log in"`
	Ways        []string   `json:"ways" doc:"how people can log in: password, oidc"`
	Ends        *time.Time `json:"ends" doc:"when the login ends by itself; null if it does not"`
	May         Abilities  `json:"may" doc:"what is open to them; rights decide the rest"`
	ReadOnly    *string    `json:"readOnly" doc:"why they may change nothing, as a sentence; null if they may"`
}

// Abilities is what is open to someone, as far as their rights go.
type Abilities struct {
	Act     bool `json:"act" doc:"to change anything"`
	Records bool `json:"records" doc:"to see what is in records"`
}

// session tells people who they are.
func (a *api) session(c *call, _ *None) (*Session, error) {
	out := &Session{User: c.user(), Login: c.login, LoginWanted: a.gate.WantsLogin(), Ways: []string{}, Ends: known(c.ends)}
	if out.LoginWanted {
		out.Ways = append(out.Ways, "password")
	}
	if out.LoginWanted && a.gate.Issuer() != nil {
		out.Ways = append(out.Ways, login.WayOIDC)
	}
	out.May.Records = a.whyNoRecords(c) == ""
	why := a.whyNotAct(c)
	if out.May.Act = why == ""; why != "" {
		out.ReadOnly = &why
	}
	return out, nil
}

// opened has a route want no login.
func opened(r route) route {
	r.open = true
	return r
}
