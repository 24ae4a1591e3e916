package web

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"muster/internal/web/login"
	"muster/internal/web/problem"
)

const (
	// oidcPath is where people go to log in at the issuer, and come back below it.
	oidcPath = Prefix + "/session/oidc"
	// oidcTime is how long somebody may take there.
	oidcTime = 10 * time.Minute
	// maxBack is how long the address may be that somebody comes back to.
	maxBack = 2 << 10
)

// errIssuer is that a login elsewhere came to nothing.
var errIssuer = &problem.Problem{Status: http.StatusUnauthorized, Code: "login_failed", Message: "the login did not succeed; begin it again at the console"}

// journey is what somebody keeps while they log in elsewhere. It is sealed, so nothing has
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

// isBack says whether somebody may be sent to an address: it is a page here, and nothing
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

// leave sends somebody to the issuer.
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

// journeyOf opens what somebody has kept.
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
// the journey, so nobody can be made to come back as somebody else.
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
