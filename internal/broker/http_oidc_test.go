package broker_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/broker"
	"muster/internal/logintest"
	"muster/internal/web"
)

// atIssuer starts an issuer, and a broker at which people log in there.
func atIssuer(t *testing.T) (*logintest.OIDC, *broker.Broker) {
	t.Helper()
	keys, err := logintest.NewIssuer()
	must(t, err)
	o := &logintest.OIDC{Issuer: keys, ClientID: "muster", Secret: "s:cret", User: "ann"}
	s := httptest.NewServer(o)
	t.Cleanup(s.Close)
	o.URL = s.URL
	return o, startHTTP(t, map[string]string{
		"muster.http.oidc.issuer": o.URL, "muster.http.oidc.client.id": o.ClientID, "muster.http.oidc.client.secret": o.Secret,
		"connection.failed.authentication.delay.ms": "0",
	})
}

// visitor is a browser with cookies that follows no redirection by itself.
func visitor(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &http.Client{
		Jar: jar, Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// goTo opens an address and returns the code and where it leads.
func goTo(t *testing.T, c *http.Client, address string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	must(t, err)
	resp, err := c.Do(req)
	must(t, err)
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Location")
}

// logsInAt goes to the issuer and comes back, and returns what the last step led to.
func logsInAt(t *testing.T, b *broker.Broker, c *http.Client, back string) (int, string) {
	t.Helper()
	code, there := goTo(t, c, b.HTTPURL()+web.Prefix+"/session/oidc?back="+url.QueryEscape(back))
	assert.MustTrue(t, code == http.StatusFound, "it leads to %d %s", code, there)
	code, here := goTo(t, c, there)
	assert.MustEqual(t, code, http.StatusFound, "the issuer answers")
	return goTo(t, c, here)
}

func TestPeopleLogInAtAnIssuer(t *testing.T) {
	_, b := atIssuer(t)
	c := visitor(t)
	sees := func(want int) {
		t.Helper()
		if code, _ := goTo(t, c, b.HTTPURL()+web.Prefix+"/groups"); code != want {
			t.Errorf("it is %d, want %d", code, want)
		}
	}
	sees(http.StatusUnauthorized)
	if s := answer[web.Session](t, b, "/session"); !s.LoginWanted || strings.Join(s.Ways, " ") != "password oidc" {
		t.Errorf("the session is %+v", s)
	}
	if code, to := logsInAt(t, b, c, "/groups?sort=-lag"); code != http.StatusSeeOther || to != "/groups?sort=-lag" {
		t.Fatalf("it ends with %d at %s", code, to)
	}
	sees(http.StatusOK)
	reader := client(t, b)
	all := awaitAuditBy(t, reader, func(e audit.Entry) bool { return e.Mechanism == "OIDC" })
	if last := all[len(all)-1]; last.Kind != audit.Login || last.Principal != "User:ann" || last.Via != audit.ViaHTTP {
		t.Errorf("the audit log has %+v", last)
	}
}

// However someone comes back who is not who left, they are not let in, and no one is sent
// to another site.
func TestWhoComesBackOtherwiseIsNotLetIn(t *testing.T) {
	o, b := atIssuer(t)
	for _, back := range []string{"", "//evil.example.org", "https://evil.example.org/", `/\evil.example.org`, "/\t/evil.example.org", "javascript:alert(1)", "/api/v1/session", "/" + strings.Repeat("a", 4000)} {
		if code, to := logsInAt(t, b, visitor(t), back); code != http.StatusSeeOther || to != "/" {
			t.Errorf("%.30q leads to %d %q", back, code, to)
		}
	}
	leave := func(c *http.Client) string {
		_, there := goTo(t, c, b.HTTPURL()+web.Prefix+"/session/oidc")
		_, here := goTo(t, c, there)
		return here
	}
	refused := func(name string, c *http.Client, address string) {
		t.Helper()
		if code, to := goTo(t, c, address); code != http.StatusUnauthorized || to != "" {
			t.Errorf("%s: %d %s", name, code, to)
		}
		if code, _ := goTo(t, c, b.HTTPURL()+web.Prefix+"/groups"); code != http.StatusUnauthorized {
			t.Errorf("%s: is let in", name)
		}
	}
	ann := visitor(t)
	refused("another browser", visitor(t), leave(ann))
	eve := visitor(t)
	leave(eve)
	refused("a browser that left for another login", eve, leave(ann))
	refused("without code", ann, strings.Split(leave(ann), "?")[0]+"?state=x")
	refused("a code that is none", ann, strings.Replace(leave(ann), "code=", "code=x", 1))
	twice := leave(ann)
	if code, _ := goTo(t, ann, twice); code != http.StatusSeeOther {
		t.Errorf("the first time: %d", code)
	}
	refused("twice", visitor(t), twice)
	for name, change := range map[string]func(logintest.Claims){
		"another nonce":    func(c logintest.Claims) { c["nonce"] = "x" },
		"no nonce":         func(c logintest.Claims) { delete(c, "nonce") },
		"another audience": func(c logintest.Claims) { c["aud"] = "mail" },
		"another issuer":   func(c logintest.Claims) { c["iss"] = "https://evil.example.org" },
		"a name of spaces": func(c logintest.Claims) { c["sub"] = " " },
		"the past":         func(c logintest.Claims) { c["exp"] = time.Now().Add(-time.Hour).Unix() },
	} {
		o.Change = change
		c := visitor(t)
		refused(name, c, leave(c))
	}
	o.Change, o.Secret = nil, "another"
	c := visitor(t)
	refused("another secret", c, leave(c))
}

func TestSettingsOfAnIssuerThatAreWrong(t *testing.T) {
	for text, set := range map[string]map[string]string{
		"must begin with":                  {"muster.http.oidc.issuer": "example.org", "muster.http.oidc.client.id": "x"},
		"needs muster.http.oidc.client.id": {"muster.http.oidc.issuer": "https://example.org"},
	} {
		set["muster.http.listener"] = "127.0.0.1:0"
		wantNoStart(t, set, text)
	}
	b := startHTTP(t, map[string]string{"muster.http.oidc.issuer": "http://127.0.0.1:1", "muster.http.oidc.client.id": "x"})
	if code, _ := ask(t, b, "/session/oidc"); code != http.StatusServiceUnavailable {
		t.Errorf("an issuer that is not there: %d", code)
	}
	if code, _ := ask(t, startHTTP(t, nil), "/session/oidc"); code != http.StatusNotFound {
		t.Errorf("without issuer: %d", code)
	}
}
