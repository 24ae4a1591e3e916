package web

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/web/login"
)

// brings puts JSON into a request.
func brings(body string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	}
}

// cookieOf returns the cookie that an answer sets.
func cookieOf(t *testing.T, r reply) *http.Cookie {
	t.Helper()
	all := (&http.Response{Header: r.Header}).Cookies()
	assert.MustEqual(t, len(all), 1, "the cookies are %v", all)
	return all[0]
}

func withCookie(c *http.Cookie) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
}

// logIn logs in and returns the cookie.
func (s *site) logIn(user, password string, change ...func(*http.Request)) *http.Cookie {
	s.t.Helper()
	body, err := json.Marshal(LoginRequest{user, password})
	must(s.t, err)
	resp, text := s.do(http.MethodPost, Prefix+"/session", append([]func(*http.Request){brings(string(body))}, change...)...)
	assert.MustEqual(s.t, resp.StatusCode, http.StatusOK, "the login of %s: %s", user, text)
	return cookieOf(s.t, resp)
}

func newUsersSite(t *testing.T) (*fake, *site) {
	t.Helper()
	f := newFake(t)
	f.users = map[string]string{"ann": "anns", "bob": "busy", "eve": "eves"}
	f.tokens = map[string]string{"t1": "tom"}
	return f, serve(t, f)
}

func TestWhoLogsInIsKnownByACookieUntilTheyLogOut(t *testing.T) {
	f, s := newUsersSite(t)
	c := s.logIn("ann", "anns")
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure || c.MaxAge != 12*3600 || !strings.HasPrefix(c.Name, "muster-") {
		t.Errorf("the cookie is %+v", c)
	}
	if resp, body := s.do(http.MethodGet, Prefix+"/groups", withCookie(c)); resp.StatusCode != http.StatusOK {
		t.Errorf("with it: %d %s", resp.StatusCode, body)
	}
	s.change = withCookie(c)
	got := read[Session](s, "/session")
	if got.User == nil || *got.User != "ann" || got.Login != "cookie" || !got.Ends.Equal(now.Add(12*time.Hour)) || !got.May.Act {
		t.Errorf("the session is %+v", got)
	}
	s.change = nil
	resp, _ := s.do(http.MethodDelete, Prefix+"/session", withCookie(c))
	if gone := cookieOf(t, resp); resp.StatusCode != http.StatusOK || gone.Value != "" || gone.MaxAge >= 0 || gone.Name != c.Name {
		t.Errorf("logged out: %d, %+v", resp.StatusCode, gone)
	}
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(c))
	assert.EqualSlices(t, f.left, []string{"User:ann"}, "what is noted")
	if resp, _ := s.do(http.MethodDelete, Prefix+"/session", withCookie(c)); resp.StatusCode != http.StatusOK || len(f.left) != 1 {
		t.Errorf("logged out again: %d, %v", resp.StatusCode, f.left)
	}
}

func TestACookieUnderTLSIsOnlyForTLS(t *testing.T) {
	_, s := newUsersSite(t)
	proxied := header("X-Forwarded-Proto", "https")
	c := s.logIn("ann", "anns", proxied)
	assert.True(t, c.Secure && strings.HasPrefix(c.Name, "__Host-muster-"), "the cookie is %+v", c)
	if resp, _ := s.do(http.MethodGet, Prefix+"/groups", withCookie(c), proxied); resp.StatusCode != http.StatusOK {
		t.Errorf("with it: %d", resp.StatusCode)
	}
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(c))
}

// The secret is a new one at each login, and the one before ends.
func TestALoginEndsTheOneBefore(t *testing.T) {
	_, s := newUsersSite(t)
	planted := &http.Cookie{Name: s.logIn("eve", "eves").Name, Value: "planted"}
	first := s.logIn("ann", "anns", withCookie(planted))
	second := s.logIn("eve", "eves", withCookie(first))
	assert.True(t, first.Value != planted.Value && second.Value != first.Value, "the secret is an old one")
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(first))
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(planted))
}

func TestLoginsThatFail(t *testing.T) {
	f, s := newUsersSite(t)
	for body, want := range map[string]int{
		`{"user":"ann","password":"wrong"}`:   http.StatusUnauthorized,
		`{"user":"nobody","password":"anns"}`: http.StatusUnauthorized,
		`{"user":"bob","password":"x"}`:       http.StatusServiceUnavailable,
		`{}`:                                  http.StatusUnauthorized,
		`{"user":1,"password":"x"}`:           http.StatusBadRequest,
		`{"user":"ann","password":"anns"`:     http.StatusBadRequest,
		``:                                    http.StatusBadRequest,
		`[]`:                                  http.StatusBadRequest,
		`{"user":"ann","password":"` + strings.Repeat("a", 9<<10) + `"}`: http.StatusRequestEntityTooLarge,
		`{"user":"ann","password":"` + strings.Repeat("a", 5<<20) + `"}`: http.StatusRequestEntityTooLarge,
	} {
		resp, text := s.do(http.MethodPost, Prefix+"/session", brings(body))
		if resp.StatusCode != want || len(resp.Header["Set-Cookie"]) > 0 || resp.Header.Get("WWW-Authenticate") != "" || strings.Contains(text, "aaaa") {
			t.Errorf("%.60s: %d %s %v", body, resp.StatusCode, text, resp.Header)
		}
	}
	form := func(r *http.Request) {
		brings(`{"user":"ann","password":"anns"}`)(r)
		r.Header.Set("Content-Type", "text/plain") // What a form of another page can send.
	}
	if resp, _ := s.do(http.MethodPost, Prefix+"/session", form); resp.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("a form: %d", resp.StatusCode)
	}
	cross := header("Sec-Fetch-Site", "cross-site")
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		if resp, _ := s.do(method, Prefix+"/session", brings(`{"user":"ann","password":"anns"}`), cross); resp.StatusCode != http.StatusForbidden || len(resp.Header["Set-Cookie"]) > 0 {
			t.Errorf("%s from another page: %d", method, resp.StatusCode)
		}
	}
	f.notReady = errStarting
	if resp, _ := s.do(http.MethodPost, Prefix+"/session", brings(`{"user":"ann","password":"anns"}`)); resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("while the broker starts: %d", resp.StatusCode)
	}
	f.notReady, f.users = nil, nil
	if resp, _ := s.do(http.MethodPost, Prefix+"/session", brings(`{"user":"ann","password":"anns"}`)); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("without users: %d", resp.StatusCode)
	}
}

// Who is no user any more, or has another password, is not known by a cookie.
func TestASessionEndsWithThePassword(t *testing.T) {
	f, s := newUsersSite(t)
	c := s.logIn("ann", "anns")
	f.set("ann", "other")
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(c))
	f.set("ann", "anns")
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(c)) // It was over.
}

func TestATokenIsALogin(t *testing.T) {
	_, s := newUsersSite(t)
	s.change = header("Authorization", "bearer t1")
	if got := read[Session](s, "/session"); got.User == nil || *got.User != "tom" || got.Login != "bearer" || !got.Ends.Equal(now.Add(time.Minute)) {
		t.Errorf("the session is %+v", got)
	}
	s.change = nil
	for _, value := range []string{"Bearer t2", "Bearer", "Bearer ", "Digest x", "Basic", "Basic t1", "t1"} {
		s.fails(Prefix+"/groups", http.StatusUnauthorized, header("Authorization", value))
	}
	// What a request says of itself counts more than what a browser adds.
	c := s.logIn("ann", "anns")
	s.fails(Prefix+"/groups", http.StatusUnauthorized, withCookie(c), header("Authorization", "Bearer t2"))
}

// A stream ends with the login of who opened it.
func TestAStreamEndsWithTheLogin(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*site) func(*http.Request)
		end    func(*fake, *site, func(*http.Request))
	}{
		"logged out": {
			func(s *site) func(*http.Request) { return withCookie(s.logIn("ann", "anns")) },
			func(_ *fake, s *site, as func(*http.Request)) { s.do(http.MethodDelete, Prefix+"/session", as) },
		},
		"another password": {
			func(*site) func(*http.Request) { return as("ann", "anns") },
			func(f *fake, _ *site, _ func(*http.Request)) { f.set("ann", "other") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, s := newUsersSite(t)
			as := c.change(s)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr().String()+Prefix+"/events?watch=groups", http.NoBody)
			must(t, err)
			as(req)
			resp, err := s.client.Do(req)
			must(t, err)
			defer resp.Body.Close()
			if _, err := io.ReadFull(resp.Body, make([]byte, len("event: open"))); err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("it opens with %d, %v", resp.StatusCode, err)
			}
			c.end(f, s, as)
			if _, err := io.Copy(io.Discard, resp.Body); err != nil { // Or it goes on for an hour.
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// What someone was let in by must still do: the token has not ended, the password is the
// same, and they have not logged out.
func TestALoginHoldsNoLongerThanWhatItWasBy(t *testing.T) {
	f := newFake(t)
	f.users = map[string]string{"ann": "anns"}
	at := now
	a := newAPI(&Options{Reads: f, Gate: f, Now: func() time.Time { return at }}, &net.TCPAddr{})
	ann := login.Identity{Principal: "User:ann", Proof: "anns"}
	secret, _ := a.sessions.Begin(ann)
	token := &call{login: login.WayBearer, id: login.Identity{Principal: "User:tom"}, ends: now.Add(time.Minute)}
	for name, c := range map[string]*call{"password": {login: login.WayBasic, id: ann}, "cookie": {login: login.WayCookie, id: ann, secret: secret}, "token": token} {
		assert.True(t, a.holds(c), "%s: it does not hold", name)
	}
	for name, c := range map[string]*call{
		"nobody": {login: login.None}, "another password": {login: login.WayBasic, id: login.Identity{Principal: "User:ann", Proof: "old"}},
		"another cookie": {login: login.WayCookie, id: ann, secret: "x"},
	} {
		assert.False(t, a.holds(c), "%s: it holds", name)
	}
	at = now.Add(time.Minute)
	assert.False(t, a.holds(token), "a token holds though it has ended")
}
