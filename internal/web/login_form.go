package web

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"muster/internal/web/login"
	"muster/internal/web/problem"
	"muster/internal/web/server"
)

// maxLoginBody is how long a name and a password may be together.
const maxLoginBody = 8 << 10

// LoginRequest is someone who logs in at the console.
type LoginRequest struct {
	User     string `json:"user" doc:"the name of a user"`
	Password string `json:"password"`
}

// The routes that set cookies. No slot is taken by who logs in, since that may have to wait.
var (
	logIn = route{
		method: http.MethodPost, path: "/session", name: "logIn", maxBody: maxLoginBody, open: true,
		doc:   "Logs in with the name and password of a user: a cookie says from now on who it is.",
		query: reflect.TypeFor[None](), body: reflect.TypeFor[LoginRequest](), answer: reflect.TypeFor[Session](),
	}
	logOut = route{
		method: http.MethodDelete, path: "/session", name: "logOut", open: true,
		doc:   "Logs out: the cookie counts no more.",
		query: reflect.TypeFor[None](), body: reflect.TypeFor[Nothing](), answer: reflect.TypeFor[Session](),
	}
)

// cookieName is under which name a browser keeps the secret. Browsers do not tell the
// ports of a machine apart, so the name has the port in it: brokers on one machine do not
// log people out of each other. A name that begins with __Host- can only be set by this
// very host, over TLS.
func (a *api) cookieName(r *http.Request) string {
	if isSecure(r) {
		return "__Host-muster-" + a.port
	}
	return "muster-" + a.port
}

// isSecure says whether a browser came by TLS, to us or to a proxy before us. Who lies
// about that only gets a cookie that their browser does not send.
func isSecure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

func portOf(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "0"
	}
	return strconv.Itoa(tcp.Port)
}

// cookie is what a browser is told to keep, until a time that may be over.
func (a *api) cookie(r *http.Request, secret string, ends time.Time) *http.Cookie {
	c := &http.Cookie{
		Name: a.cookieName(r), Value: secret, Path: "/", HttpOnly: true, Secure: isSecure(r), SameSite: http.SameSiteStrictMode,
		MaxAge: int(ends.Sub(a.now()) / time.Second),
	}
	if c.MaxAge <= 0 {
		c.MaxAge = -1
	}
	return c
}

// secretOf is what a browser has kept, empty if nothing.
func (a *api) secretOf(r *http.Request) string {
	c, err := r.Cookie(a.cookieName(r))
	if err != nil {
		return ""
	}
	return c.Value
}

// byCookie says who sent a request by the secret in its cookie. Whose password is another
// by now, or who is no user any more, is not known by it any longer.
func (a *api) byCookie(c *call) error {
	c.secret = a.secretOf(c.request)
	id, ends, found := a.sessions.Find(c.secret)
	switch {
	case !found:
		return errNobody
	case !a.gate.Holds(id):
		a.sessions.End(c.secret)
		return errNobody
	}
	c.id, c.who, c.groups, c.login, c.ends = id, id.Principal, id.Groups, login.WayCookie, ends
	return nil
}

// holds says whether who sent a request is still who they were then, and still logged in.
func (a *api) holds(c *call) bool {
	switch c.login {
	case login.None:
		return !a.gate.WantsLogin()
	case login.WayCookie:
		if _, _, found := a.sessions.Find(c.secret); !found {
			return false
		}
	default:
		if !c.ends.IsZero() && !a.now().Before(c.ends) {
			return false
		}
	}
	return a.gate.Holds(c.id)
}

// logIn answers someone who logs in by the form.
func (a *api) logIn(c *call, w http.ResponseWriter) (*Session, error) {
	if !a.gate.WantsLogin() {
		return nil, problem.BadRequest("there is no login here: there are no users")
	}
	body, release, err := a.readBody(&logIn, c.request)
	defer release()
	if err != nil {
		return nil, err
	}
	in := new(LoginRequest)
	if err := parseBody(body, in); err != nil {
		return nil, err
	}
	id, err := a.gate.Login(c.ctx(), login.Attempt{Way: login.WayCookie, Name: in.User, Password: in.Password, Host: c.host})
	if err != nil {
		return nil, loginProblem(err)
	}
	a.remember(c, w, id)
	return a.session(c, nil)
}

// remember has someone be known by a cookie from now on. Whoever they were before, they
// are not any more, and the secret is a new one: no one can have known it.
func (a *api) remember(c *call, w http.ResponseWriter, id login.Identity) {
	a.sessions.End(a.secretOf(c.request))
	c.secret, c.ends = a.sessions.Begin(id)
	c.id, c.who, c.groups, c.login = id, id.Principal, id.Groups, login.WayCookie
	http.SetCookie(w, a.cookie(c.request, c.secret, c.ends))
}

// logOut answers someone who logs out, if they were in at all.
func (a *api) logOut(c *call, w http.ResponseWriter) (*Session, error) {
	if id, found := a.sessions.End(a.secretOf(c.request)); found {
		a.gate.LoggedOut(id, c.host)
	}
	http.SetCookie(w, a.cookie(c.request, "", time.Time{}))
	return a.session(c, nil)
}

// cookies answers the two ways of /session that set cookies.
func (a *api) cookies(serve func(*call, http.ResponseWriter) (*Session, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := a.changeSession(w, r, serve)
		if err != nil {
			a.refuse(w, err)
			return
		}
		body, err := problem.Encode(out)
		if err != nil {
			a.refuse(w, err)
			return
		}
		problem.Send(w, http.StatusOK, problem.JSON, body)
	}
}

func (a *api) changeSession(w http.ResponseWriter, r *http.Request, serve func(*call, http.ResponseWriter) (*Session, error)) (*Session, error) {
	if !a.begin() {
		return nil, problem.Unavailable("the broker stops")
	}
	defer a.running.Done()
	if err := a.reads.Ready(); err != nil {
		return nil, problem.Unavailable(err.Error())
	}
	ctx, cancel := context.WithTimeout(r.Context(), server.AnswerTimeout)
	defer cancel()
	return serve(newCall(r.WithContext(ctx)), w)
}

const (
	// oidcPath is where people go to log in at the issuer, and come back below it.
	oidcPath = Prefix + "/session/oidc"
	// oidcTime is how long someone may take there.
	oidcTime = 10 * time.Minute
	// maxBack is how long the address may be that someone comes back to.
	maxBack = 2 << 10
)

// errIssuer is that a login elsewhere came to nothing.
var errIssuer = &problem.Problem{Status: http.StatusUnauthorized, Code: "login_failed", Message: "the login did not succeed; begin it again at the console"}

// journey is what someone keeps while they log in elsewhere. It is sealed, so nothing has
// to be remembered of those who never come back.
type journey struct {
	State, Nonce, Verifier, Back string
	Ends                         time.Time
}

// newSeal makes what seals journeys. Its key is for this start of the broker.
func newSeal() cipher.AEAD {
	var key [32]byte
	_, _ = rand.Read(key[:]) // It never fails.
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // The key has a length that there is.
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return seal
}

// isBack says whether someone may be sent to an address: it is a page here, and nothing
// that a browser takes for another site.
func isBack(back string) bool {
	u, err := url.Parse(back)
	return err == nil && len(back) <= maxBack && u.Scheme == "" && u.Host == "" && u.User == nil &&
		strings.HasPrefix(back, "/") && !strings.HasPrefix(back, "//") && !strings.ContainsAny(back, "\\\r\n\t") && !strings.HasPrefix(u.Path, "/api/")
}

// redirectTo is where the issuer sends browsers back to: by the name that they came by,
// which the guard knows.
func redirectTo(r *http.Request) string {
	scheme := "http://"
	if isSecure(r) {
		scheme = "https://"
	}
	return scheme + r.Host + oidcPath + "/back"
}

// leave sends someone to the issuer.
func (a *api) leave(c *call, w http.ResponseWriter) error {
	back := c.request.URL.Query().Get("back")
	if !isBack(back) {
		back = "/"
	}
	j := journey{State: rand.Text(), Nonce: rand.Text(), Verifier: rand.Text() + rand.Text(), Back: back, Ends: a.now().Add(oidcTime)}
	sum := sha256.Sum256([]byte(j.Verifier))
	address, err := a.gate.Issuer().Address(c.ctx(), redirectTo(c.request), j.State, j.Nonce, base64.RawURLEncoding.EncodeToString(sum[:]))
	if err != nil {
		return problem.Unavailable("the issuer does not answer")
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	http.SetCookie(w, a.journeyCookie(c.request, base64.RawURLEncoding.EncodeToString(a.seal.Seal(nil, nil, text, nil)), int(oidcTime/time.Second)))
	http.Redirect(w, c.request, address, http.StatusFound)
	return nil
}

// journeyCookie is sent when the issuer's page leads back here, as no strict one is.
func (a *api) journeyCookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: "muster-oidc-" + a.port, Value: value, Path: oidcPath, HttpOnly: true, Secure: isSecure(r), SameSite: http.SameSiteLaxMode, MaxAge: age,
	}
}

// journeyOf opens what someone has kept.
func (a *api) journeyOf(r *http.Request) (*journey, bool) {
	c, err := r.Cookie("muster-oidc-" + a.port)
	if err != nil {
		return nil, false
	}
	sealed, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil {
		return nil, false
	}
	text, err := a.seal.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, false
	}
	j := new(journey)
	return j, json.Unmarshal(text, j) == nil && a.now().Before(j.Ends)
}

// comeBack lets in who has logged in at the issuer. Only the browser that left for it has
// the journey, so no one can be made to come back as someone else.
func (a *api) comeBack(c *call, w http.ResponseWriter) error {
	http.SetCookie(w, a.journeyCookie(c.request, "", -1))
	q := c.request.URL.Query()
	j, ok := a.journeyOf(c.request)
	if !ok || subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(j.State)) != 1 || q.Get("code") == "" {
		return errIssuer
	}
	id, err := a.gate.Issuer().Redeem(c.ctx(), redirectTo(c.request), q.Get("code"), j.Verifier, j.Nonce, c.host)
	switch {
	case errors.Is(err, login.ErrLoginBusy):
		return problem.Busy()
	case err != nil:
		return errIssuer
	}
	a.remember(c, w, id)
	http.Redirect(w, c.request, j.Back, http.StatusSeeOther)
	return nil
}

// withIssuer answers what leads to the issuer and back.
func (a *api) withIssuer(serve func(*call, http.ResponseWriter) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := a.changeSession(w, r, func(c *call, w http.ResponseWriter) (*Session, error) {
			if a.gate.Issuer() == nil {
				return nil, problem.NotFound("there is no issuer to log in at; muster.http.oidc.issuer names one")
			}
			return nil, serve(c, w)
		})
		if err != nil {
			a.refuse(w, err)
		}
	}
}
