package login

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth/sasl"
	"muster/internal/gate"
	"muster/internal/logintest"
)

// What a token says holds of who shows it, and no longer than the token does.
func TestATokenSaysWhoSomeoneIsUntilItEnds(t *testing.T) {
	issuer, err := logintest.NewIssuer()
	assert.Must(t, err)
	o := open(t, map[string]string{"connection.failed.authentication.delay.ms": "0"})
	o.tokens = []*sasl.Verifier{{
		Keys:      sasl.NewKeys(t.Context(), func(context.Context) ([]byte, error) { return issuer.KeySet, nil }, time.Hour, time.Now),
		Audiences: []string{"muster"}, SubjectClaim: "sub", GroupsClaim: "groups", Groups: gate.GroupsOf, Now: time.Now,
	}}
	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	claims := logintest.ClaimsOf("ann", "muster", ends)
	claims["groups"] = []string{"ops"}
	text, err := issuer.Token(claims)
	assert.Must(t, err)
	id, err := o.Login(t.Context(), Attempt{Way: WayBearer, Token: text})
	assert.True(t, err == nil && id.Principal == "User:ann" && id.Groups == "Group:ops" && id.Ends.Equal(ends) && o.Holds(id), "it is %+v (%v)", id, err)
	if id, err := o.Login(t.Context(), Attempt{Way: WayBearer, Token: text + "x"}); !errors.Is(err, ErrToken) {
		t.Errorf("with another signature it is %+v (%v)", id, err)
	}
	assert.True(t, len(o.told) == 2 && o.told[0].Kind == audit.Login && o.told[1].Kind == audit.LoginFailed, "told are %+v", o.told)
}

// The nonce is that of the browser that went to the issuer: a code of another one's login lets
// no one in.
func TestACodeIsForTheLoginThatItWasAskedFor(t *testing.T) {
	keys, err := logintest.NewIssuer()
	assert.Must(t, err)
	issuer := &logintest.OIDC{Issuer: keys, ClientID: "muster", Secret: "secret", User: "ann", Change: func(c logintest.Claims) { c["groups"] = []string{"ops"} }}
	server := httptest.NewServer(issuer)
	defer server.Close()
	issuer.URL = server.URL
	o := open(t, map[string]string{
		"muster.http.oidc.issuer": issuer.URL, "muster.http.oidc.client.id": issuer.ClientID, "muster.http.oidc.client.secret": issuer.Secret,
		"muster.http.oidc.groups.claim": "groups", "connection.failed.authentication.delay.ms": "0",
	})
	assert.True(t, o.AlwaysWantsLogin(), "with an issuer no login is wanted")
	const back, verifier = "http://127.0.0.1/back", "verifier"
	challenge := sha256.Sum256([]byte(verifier))
	browser := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	code := func(nonce string) string {
		t.Helper()
		address, err := o.Issuer().Address(t.Context(), back, "state", nonce, base64.RawURLEncoding.EncodeToString(challenge[:]))
		assert.Must(t, err)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		assert.Must(t, err)
		resp, err := browser.Do(req)
		assert.Must(t, err)
		_ = resp.Body.Close()
		to, err := url.Parse(resp.Header.Get("Location"))
		assert.Must(t, err)
		return to.Query().Get("code")
	}
	if id, err := o.Issuer().Redeem(t.Context(), back, code("mine"), verifier, "mine", "10.0.0.1"); err != nil || id.Principal != "User:ann" || id.Groups != "Group:ops" {
		t.Errorf("it is %+v (%v)", id, err)
	}
	for what, try := range map[string][2]string{"another login": {"mine", verifier}, "another browser": {"other", "other verifier"}} {
		if id, err := o.Issuer().Redeem(t.Context(), back, code("other"), try[1], try[0], "10.0.0.1"); !errors.Is(err, ErrToken) {
			t.Errorf("a code of %s: it is %+v (%v)", what, id, err)
		}
	}
	if len(o.told) != 3 || o.told[0].Kind != audit.Login || o.told[1].Kind != audit.LoginFailed || o.told[1].Host != "10.0.0.1" {
		t.Errorf("told are %+v", o.told)
	}
}

// Who says that it is another issuer is not the one that is trusted: none is sent there.
func TestAnIssuerIsTheOneThatItSays(t *testing.T) {
	keys, err := logintest.NewIssuer()
	assert.Must(t, err)
	issuer := &logintest.OIDC{Issuer: keys, ClientID: "muster"}
	server := httptest.NewServer(issuer)
	defer server.Close()
	for says, want := range map[string]bool{server.URL: true, server.URL + "/": false, "https://issuer.example": false, "": false} {
		issuer.URL = says
		o := open(t, map[string]string{"muster.http.oidc.issuer": server.URL, "muster.http.oidc.client.id": "muster"})
		_, err := o.Issuer().Address(t.Context(), "http://127.0.0.1/back", "state", "nonce", "challenge")
		assert.True(t, (err == nil) == want, "it says that it is %q: %v", says, err)
	}
}
