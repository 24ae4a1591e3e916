package login

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/logintest"
)

// at opens a gate for an issuer. Before sees each request to it first, and may send it elsewhere;
// login logs ann in there by a nonce.
func at(t *testing.T, change func(logintest.Claims), before http.HandlerFunc) (o *opened, login func(nonce string) (Identity, error)) {
	t.Helper()
	keys, err := logintest.NewIssuer()
	assert.Must(t, err)
	issuer := &logintest.OIDC{Issuer: keys, ClientID: "muster", Secret: "secret", User: "ann", Change: change}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(w, r)
		}
		if w.Header().Get("Location") == "" {
			issuer.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	issuer.URL = server.URL
	o = open(t, map[string]string{
		"muster.http.oidc.issuer": issuer.URL, "muster.http.oidc.client.id": issuer.ClientID, "muster.http.oidc.client.secret": issuer.Secret,
		"connection.failed.authentication.delay.ms": "0",
	})
	return o, func(nonce string) (Identity, error) {
		const back, verifier = "http://127.0.0.1/back", "verifier"
		challenge := sha256.Sum256([]byte(verifier))
		address, err := o.Issuer().Address(t.Context(), back, "state", nonce, base64.RawURLEncoding.EncodeToString(challenge[:]))
		assert.Must(t, err)
		w := httptest.NewRecorder()
		issuer.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody))
		to, err := url.Parse(w.Header().Get("Location"))
		assert.Must(t, err)
		return o.Issuer().Redeem(t.Context(), back, to.Query().Get("code"), verifier, nonce, "10.0.0.1")
	}
}

// An issuer that leaves the nonce out does not say which login the token is for.
func TestATokenWithoutNonceLetsNoOneIn(t *testing.T) {
	for what, change := range map[string]func(logintest.Claims){
		"no nonce": func(c logintest.Claims) { delete(c, "nonce") }, "an empty one": func(c logintest.Claims) { c["nonce"] = "" }, "a number": func(c logintest.Claims) { c["nonce"] = 7 },
	} {
		_, login := at(t, change, nil)
		id, err := login("mine")
		assert.ErrorIs(t, err, ErrToken, "%s: it is %+v", what, id)
	}
}

// The code and the secret of the client are for the issuer alone, wherever its answer leads.
func TestACodeGoesNowhereElse(t *testing.T) {
	var elsewhere atomic.Int32
	_, login := at(t, nil, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/token":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "/elsewhere":
			elsewhere.Add(1)
			r.URL.Path = "/token"
		}
	})
	id, err := login("mine")
	assert.ErrorIs(t, err, ErrToken, "it is %+v", id)
	assert.Equal(t, elsewhere.Load(), 0, "requests elsewhere")
}

// More codes at a time than may be redeemed are told to come again, and are no failed logins.
func TestCodesAreRedeemedAFewAtATime(t *testing.T) {
	o, login := at(t, nil, nil)
	for range maxRedeeming {
		o.issuer.slots <- struct{}{}
	}
	id, err := login("mine")
	assert.ErrorIs(t, err, ErrLoginBusy, "it is %+v", id)
	assert.Equal(t, len(o.told), 0, "entries are told: %+v", o.told)
	<-o.issuer.slots
	id, err = login("mine")
	assert.True(t, err == nil && id.Principal == "User:ann", "it is %+v (%v)", id, err)
	assert.Equal(t, len(o.issuer.slots), maxRedeeming-1, "slots are taken")
}

// What an issuer says of itself counts for an hour, and that it does not answer for a moment.
func TestAnIssuerIsAskedAgainAfterAWhile(t *testing.T) {
	var asked, away atomic.Int32
	o, _ := at(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1); away.Load() > 0 {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		}
	})
	i := o.issuer
	for _, c := range []struct {
		away   int32
		passed time.Duration // since it was asked last
		want   int32
		fails  bool
	}{
		{1, 0, 1, true}, {0, -time.Minute, 1, true}, {1, oidcRetry, 2, true}, {0, oidcRetry, 3, false},
		{0, -time.Minute, 3, false}, {1, oidcRetry, 3, false}, {0, oidcRefresh, 4, false},
	} {
		away.Store(c.away)
		i.asked = time.Now().Add(-c.passed)
		known, err := i.knows()
		assert.True(t, (err != nil) == c.fails && (known == nil) == c.fails, "%+v: %+v, %v", c, known, err)
		assert.Equal(t, asked.Load(), c.want, "%+v: times that it was asked", c)
	}
}
