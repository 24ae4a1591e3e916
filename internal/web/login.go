package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

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
// a window that nobody can leave; the console has a page for that.
func challenge(w http.ResponseWriter, r *http.Request, err error) {
	h := r.Header
	fromPage := h.Get(byPage) != "" || h.Get("Sec-Fetch-Dest") == "empty" || strings.Contains(h.Get("Accept"), "text/event-stream")
	if problem.Of(err).Status == http.StatusUnauthorized && !fromPage {
		w.Header().Set("WWW-Authenticate", `Basic realm="muster", charset="UTF-8"`)
	}
}

// user is the name of who is logged in, nil for nobody.
func (c *call) user() *string {
	if c.login == login.None {
		return nil
	}
	name := strings.TrimPrefix(string(c.who), string(auth.User("")))
	return &name
}
