package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/web/login"
)

// fakeIssuer says that everyone who comes back is ann.
type fakeIssuer struct {
	state    string
	redeemed int
}

func (f *fakeIssuer) Address(_ context.Context, _, state, _, _ string) (string, error) {
	f.state = state
	return "https://issuer.example.org/", nil
}

func (f *fakeIssuer) Redeem(context.Context, string, string, string, string, string) (login.Identity, error) {
	f.redeemed++
	return login.Identity{Principal: "User:ann"}, nil
}

// traveller has left for the issuer, and has what a browser keeps meanwhile.
func traveller(s *site, back string) func(*http.Request) {
	s.t.Helper()
	resp, _ := s.do(http.MethodGet, oidcPath+"?back="+url.QueryEscape(back))
	assert.MustEqual(s.t, resp.StatusCode, http.StatusFound)
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	return header("Cookie", cookie)
}

// withIssuers serves logins at an issuer, with a clock that the test moves.
func withIssuers(t *testing.T) (s *site, issuer *fakeIssuer, later func(time.Duration)) {
	t.Helper()
	f := newFake(t)
	issuer = &fakeIssuer{}
	f.users, f.issuer = map[string]string{"ann": "anns"}, issuer
	var passed atomic.Int64
	s = serve(t, f, func(o *Options) { o.Now = func() time.Time { return now.Add(time.Duration(passed.Load())) } })
	return s, issuer, func(d time.Duration) { passed.Add(int64(d)) }
}

// A state that is not the browser's own is that of someone else's login.
func TestOnlyTheStateOfTheOwnJourneyLetsIn(t *testing.T) {
	s, issuer, _ := withIssuers(t)
	kept := traveller(s, "/groups")
	mine := issuer.state
	for name, query := range map[string]string{
		"no state": "code=x", "an empty state": "code=x&state=", "another state": "code=x&state=" + strings.ToLower(mine), "part of it": "code=x&state=" + mine[:len(mine)-1], "no code": "state=" + mine,
	} {
		if p := s.fails(oidcPath+"/back?"+query, http.StatusUnauthorized, kept); p.Code != "login_failed" || issuer.redeemed != 0 {
			t.Errorf("%s: %+v; %d codes were redeemed", name, p, issuer.redeemed)
		}
	}
	s.fails(oidcPath+"/back?code=x&state="+mine, http.StatusUnauthorized) // Another browser.
	resp, _ := s.do(http.MethodGet, oidcPath+"/back?code=x&state="+mine, kept)
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/groups" || issuer.redeemed != 1 {
		t.Errorf("with the own state: %d, to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
}

// What a browser keeps meanwhile is gone once it is back, however the login ends; whoever came
// over TLS gets it over TLS only.
func TestWhoIsBackKeepsNothingOfTheJourney(t *testing.T) {
	s, issuer, _ := withIssuers(t)
	for _, scheme := range []string{"http", "https"} {
		came := header("X-Forwarded-Proto", scheme)
		resp, _ := s.do(http.MethodGet, oidcPath, came)
		kept := cookieOf(t, resp)
		assert.True(t, kept.Secure == (scheme == "https") && kept.HttpOnly && kept.Path == oidcPath && kept.SameSite == http.SameSiteLaxMode, "by %s it is %+v", scheme, kept)
		for _, state := range []string{"another", issuer.state} {
			resp, _ := s.do(http.MethodGet, oidcPath+"/back?code=x&state="+state, came, header("Cookie", kept.Name+"="+kept.Value))
			set := (&http.Response{Header: resp.Header}).Cookies()
			assert.MustTrue(t, len(set) > 0, "by %s and with %s no cookie is set", scheme, state)
			gone := set[0]
			assert.True(t, gone.Name == kept.Name && gone.Value == "" && gone.MaxAge < 0 && gone.Path == kept.Path, "by %s and with %s it becomes %+v", scheme, state, gone)
		}
	}
}

func TestAJourneyEnds(t *testing.T) {
	s, issuer, later := withIssuers(t)
	kept := traveller(s, "/")
	later(oidcTime - time.Second)
	if resp, _ := s.do(http.MethodGet, oidcPath+"/back?code=x&state="+issuer.state, kept); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("in time: %d", resp.StatusCode)
	}
	later(time.Second)
	s.fails(oidcPath+"/back?code=x&state="+issuer.state, http.StatusUnauthorized, kept)
	assert.Equal(t, issuer.redeemed, 1, "codes were redeemed")
}

func TestNoOneIsSentToAnotherSite(t *testing.T) {
	for back, want := range map[string]bool{
		"/": true, "/groups": true, "/groups?sort=-lag#top": true, "/groups/a%2Fb": true, "/topics/a//b": true,
		"": false, "groups": false, "//evil.example.org": false, "///evil.example.org": false, "////evil.example.org": false,
		`/\evil.example.org`: false, `\\evil.example.org`: false, `/groups\..\..\evil`: false, "/\t/evil.example.org": false, "/\n/evil.example.org": false, "/\r/evil.example.org": false,
		"https://evil.example.org": false, "https:/evil.example.org": false, "javascript:alert(1)": false, "/api/v1/session/oidc": false, "/%zz": false,
		"/" + strings.Repeat("a", maxBack): false,
	} {
		assert.Equal(t, isBack(back), want, "%.40q", back)
	}
}
