package broker_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/logintest"
	"muster/internal/web"
)

// people is a browser without cookies of its own: what it is told to keep is returned.
func people(t *testing.T, b *broker.Broker, trust *tls.Config, method, path, body string, change ...func(*http.Request)) (int, []*http.Cookie) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, b.HTTPURL()+web.Prefix+path, strings.NewReader(body))
	must(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(req)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: trust}}
	resp, err := client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Cookies()
}

func keeps(c []*http.Cookie) func(*http.Request) {
	return func(r *http.Request) {
		for _, one := range c {
			r.AddCookie(&http.Cookie{Name: one.Name, Value: one.Value})
		}
	}
}

// A login by the form ends with the password, with the user and with the logout, and the
// audit log tells of it.
func TestALoginByTheFormEndsWithPasswordUserAndLogout(t *testing.T) {
	b := startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0", "connection.failed.authentication.delay.ms": "0", "super.users": "User:jim"})
	login := func(user, password string) func(*http.Request) {
		t.Helper()
		code, cookies := people(t, b, nil, http.MethodPost, "/session", fmt.Sprintf(`{"user":%q,"password":%q}`, user, password))
		assert.MustTrue(t, code == http.StatusOK && len(cookies) == 1, "%s logs in: %d, %v", user, code, cookies)
		return keeps(cookies)
	}
	sees := func(as func(*http.Request), want int) {
		t.Helper()
		if code, _ := people(t, b, nil, http.MethodGet, "/groups", "", as); code != want {
			t.Errorf("it is %d, want %d", code, want)
		}
	}
	for _, wrong := range []string{`{"user":"ann","password":"wrong"}`, `{"user":"nobody","password":"anns"}`, `{"user":"ann\u0000ann","password":"anns"}`} {
		if code, cookies := people(t, b, nil, http.MethodPost, "/session", wrong); code != http.StatusUnauthorized || len(cookies) != 0 {
			t.Errorf("%s: %d, %v", wrong, code, cookies)
		}
	}
	jim := login("jim", "jims")
	ann, twice := login("ann", "anns"), login("ann", "anns")
	sees(jim, http.StatusOK)
	sees(ann, http.StatusOK)
	if code, _ := people(t, b, nil, http.MethodDelete, "/session", "", twice); code != http.StatusOK {
		t.Errorf("to log out: %d", code)
	}
	sees(twice, http.StatusUnauthorized)
	sees(ann, http.StatusOK)
	for _, h := range []sasl.Hash{sasl.SHA256, sasl.SHA512} {
		must(t, b.SetPassword(t.Context(), "ann", "another", h))
	}
	sees(ann, http.StatusUnauthorized)
	sees(jim, http.StatusOK)
	ann = login("ann", "another")
	sees(ann, http.StatusOK)
	boss := client(t, b, kgo.SASL(fplain.Auth{User: "jim", Pass: "jims"}.AsMechanism()))
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} {
		altered, err := kadm.NewClient(boss).AlterUserSCRAMs(t.Context(), []kadm.DeleteSCRAM{{User: "ann", Mechanism: m}}, nil)
		if err == nil {
			err = altered.Error()
		}
		must(t, err)
	}
	eventually(t, "ann is gone", func(context.Context) error {
		if code, _ := people(t, b, nil, http.MethodGet, "/groups", "", ann); code != http.StatusUnauthorized {
			return fmt.Errorf("it is %d", code)
		}
		return nil
	})
	told := map[string]bool{}
	for _, e := range awaitAuditBy(t, boss, func(e audit.Entry) bool { return e.Kind == audit.UserDeleted }) {
		if e.Via == audit.ViaHTTP {
			told[string(e.Kind)+" "+e.Principal+" "+e.Mechanism] = true
		}
	}
	for _, want := range []string{"login-failed User:nobody COOKIE", "login User:jim COOKIE", "login User:ann COOKIE", "logout User:ann COOKIE"} {
		assert.True(t, told[want], "the audit log has not %q, but %v", want, told)
	}
}

// The tokens of a Kafka listener are logins over HTTP too.
func TestATokenIsALoginOverHTTP(t *testing.T) {
	i := newIssuer(t)
	b := start(t, map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER", "connection.failed.authentication.delay.ms": "0",
		"sasl.oauthbearer.jwks.endpoint.url": i.url, "sasl.oauthbearer.expected.audience": "kafka", "muster.http.listener": "127.0.0.1:0",
	})
	other := newIssuer(t)
	soon := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		token string
		want  int
	}{
		"a token":               {i.sign(jose.ES256, i.Key, logintest.KeyID, soon), http.StatusOK},
		"one that ended":        {i.sign(jose.ES256, i.Key, logintest.KeyID, time.Now().Add(-time.Hour)), http.StatusUnauthorized},
		"one for somebody else": {i.signFor("mail", jose.ES256, i.Key, logintest.KeyID, soon), http.StatusUnauthorized},
		"one of another issuer": {other.sign(jose.ES256, other.Key, logintest.KeyID, soon), http.StatusUnauthorized},
		"one without signature": {"eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.", http.StatusUnauthorized},
		"nothing":               {"", http.StatusUnauthorized},
		"something else":        {strings.Repeat("x", 8000), http.StatusUnauthorized},
	} {
		if code, _ := people(t, b, nil, http.MethodGet, "/groups", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.token) }); code != c.want {
			t.Errorf("%s: %d, want %d", name, code, c.want)
		}
	}
}

// Under TLS the cookie is only for TLS, and a new certificate is used without a start.
func TestHTTPOverTLS(t *testing.T) {
	a := newAuthority(t)
	keystore, _ := a.files()
	b := startSASL(t, map[string]string{"muster.http.listener": "https://127.0.0.1:0", "muster.http.ssl.keystore.location": keystore})
	if !strings.HasPrefix(b.HTTPURL(), "https://127.0.0.1:") {
		t.Fatalf("it is at %s", b.HTTPURL())
	}
	trust := &tls.Config{RootCAs: a.Pool()}
	code, cookies := people(t, b, trust, http.MethodPost, "/session", `{"user":"ann","password":"anns"}`)
	if code != http.StatusOK || len(cookies) != 1 || !cookies[0].Secure || !cookies[0].HttpOnly || !strings.HasPrefix(cookies[0].Name, "__Host-") {
		t.Fatalf("the login: %d, %v", code, cookies)
	}
	if code, _ := people(t, b, trust, http.MethodGet, "/groups", "", keeps(cookies)); code != http.StatusOK {
		t.Errorf("with the cookie: %d", code)
	}
	resp, err := http.Get("http://" + b.HTTPAddr() + "/healthz")
	must(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, resp.StatusCode, http.StatusBadRequest, "plain text is answered")
	http.DefaultClient.CloseIdleConnections()
	old, err := tls.Dial("tcp", b.HTTPAddr(), &tls.Config{RootCAs: a.Pool(), MaxVersion: tls.VersionTLS11})
	if err == nil {
		_ = old.Close()
		t.Error("TLS 1.1 is spoken")
	}

	next, err := a.IssuePEM("next")
	must(t, err)
	must(t, os.WriteFile(keystore, append(next, bytes.Repeat([]byte("\n"), 7)...), 0o600))
	eventually(t, "the new certificate", func(context.Context) error {
		c, err := tls.Dial("tcp", b.HTTPAddr(), trust)
		if err != nil {
			return err
		}
		defer c.Close()
		if name := c.ConnectionState().PeerCertificates[0].Subject.CommonName; name != "next" {
			return fmt.Errorf("it is of %s", name)
		}
		return nil
	})
}

func TestSettingsOfHTTPOverTLSThatAreWrong(t *testing.T) {
	for text, set := range map[string]map[string]string{
		"https needs muster.http.ssl.keystore.location": {"muster.http.listener": "https://127.0.0.1:0"},
		"muster.http.ssl.keystore.location: ":           {"muster.http.listener": "https://127.0.0.1:0", "muster.http.ssl.keystore.location": "/nowhere.pem"},
		"after http:// or https://":                     {"muster.http.listener": "ftp://127.0.0.1:0"},
		"muster.http.anonymous must be one of":          {"muster.http.anonymous": "some"},
	} {
		wantNoStart(t, set, text)
	}
}
