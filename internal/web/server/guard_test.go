package server

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"muster/internal/assert"
)

// site is a server whose handler answers everything.
type site struct {
	t *testing.T
	*Server
}

func serve(t *testing.T, addr string, allowed ...string) *site {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	assert.Must(t, err)
	s := Serve(l, Options{
		Handler:      http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("well\n")) }),
		AllowedHosts: allowed, Logger: slog.New(slog.DiscardHandler),
	})
	t.Cleanup(s.Close)
	return &site{t, s}
}

// reply is an answer without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// do sends a request and returns the answer.
func (s *site) do(method, path string, change ...func(*http.Request)) (reply, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.Addr().String()+path, http.NoBody)
	assert.Must(s.t, err)
	req.Close = true
	for _, c := range change {
		c(req)
	}
	resp, err := http.DefaultClient.Do(req)
	assert.Must(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	assert.Must(s.t, err)
	return reply{resp.StatusCode, resp.Header}, string(body)
}

func (s *site) get(path string, change ...func(*http.Request)) int {
	s.t.Helper()
	resp, _ := s.do(http.MethodGet, path, change...)
	return resp.StatusCode
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func TestForeignHostsAreRefused(t *testing.T) {
	s := serve(t, "127.0.0.1:0", "Muster.Example.org")
	for _, name := range []string{"evil.example.org", "evil.example.org:9021", "127.0.0.1.evil.org", "localhost.evil.org", "10.0.0.1", "muster.example.org.evil.org", "[::2]:9021"} {
		if resp, body := s.do(http.MethodGet, "/page", host(name)); resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "host_not_allowed") {
			t.Errorf("%q: %d %s", name, resp.StatusCode, body)
		}
	}
	for _, name := range []string{"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.1.2.3:9021", "[::1]:9021", "a.localhost", "muster.example.org:80", "muster.example.org."} {
		if resp, body := s.do(http.MethodGet, "/page", host(name)); resp.StatusCode != http.StatusOK {
			t.Errorf("%q: %d %s", name, resp.StatusCode, body)
		}
	}
	if resp, _ := s.do(http.MethodGet, "/healthz", host("probe.example.org")); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz by another name: %d", resp.StatusCode)
	}
}

// Beyond loopback an address is as good as any: it is no name that could be made to mean
// something else.
func TestHostsOfAListenerForOthers(t *testing.T) {
	g := newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4zero}, nil).(*guard)
	for name, want := range map[string]bool{"10.1.2.3:9021": true, "[2001:db8::1]": true, "localhost": true, "evil.example.org": false, "": false} {
		if g.knows(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
	assert.True(t, newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4zero}, []string{"*"}).(*guard).knows("evil.example.org"), "* does not allow all")
}

// Those who scrape find a broker by names that it cannot know; pages that make their names
// mean its address are opened by browsers.
func TestMetricsAreScrapedUnderAnyNameButNotByABrowser(t *testing.T) {
	far := serve(t, "0.0.0.0:0")
	if resp, body := far.do(http.MethodGet, MetricsPath, host("muster:9021")); resp.StatusCode != http.StatusOK {
		t.Errorf("a scraper gets %d %s", resp.StatusCode, body)
	}
	for _, h := range [][2]string{{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"}, {"Origin", "http://evil.example.org"}, {"Referer", "http://evil.example.org/"}, {"Cookie", "a=b"}, {"Sec-Fetch-Site", "same-origin"}} {
		if code := far.get(MetricsPath, host("evil.example.org"), header(h[0], h[1])); code != http.StatusForbidden {
			t.Errorf("under another, with %s: %d", h[0], code)
		}
		if resp, _ := far.do(http.MethodGet, MetricsPath, header(h[0], h[1])); resp.StatusCode != http.StatusOK {
			t.Errorf("under a name that is known, with %s: %d", h[0], resp.StatusCode)
		}
	}
	if resp, body := far.do(http.MethodGet, "/page", host("muster:9021")); resp.StatusCode != http.StatusForbidden || !strings.Contains(body, `\"muster\"`) || !strings.Contains(body, "muster.http.allowed.hosts") {
		t.Errorf("of the rest it says %d %s", resp.StatusCode, body)
	}
	assert.Equal(t, serve(t, "127.0.0.1:0").get(MetricsPath, host("muster:9021")), http.StatusForbidden, "on loopback")
}

func TestOtherOriginsMayNotSendAnything(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example.org"}} {
		set := func(r *http.Request) { r.Header.Set(header[0], header[1]) }
		if resp, body := s.do(http.MethodPost, "/page", set); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %d %s", header, resp.StatusCode, body)
		}
		if resp, _ := s.do(http.MethodGet, "/page", set); resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: may be read", header)
		}
	}
	if resp, _ := s.do(http.MethodPost, "/page"); resp.StatusCode != http.StatusOK {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestAForeignHostInAnAbsoluteAddressIsRefused(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	c, err := net.Dial("tcp", s.Addr().String())
	assert.Must(t, err)
	defer c.Close()
	fmt.Fprint(c, "GET http://evil.example.org/page HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	assert.Must(t, err)
	defer resp.Body.Close()
	assert.Equal(t, resp.StatusCode, http.StatusForbidden)
}

func TestEveryAnswerHasTheHeadersThatBindBrowsers(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	for _, path := range []string{HealthPath, "/", "/page?q=" + strings.Repeat("a", maxURI)} {
		resp, _ := s.do(http.MethodGet, path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if !strings.HasPrefix(resp.Header.Get(name), want) {
				t.Errorf("%.20s: %s is %q", path, name, resp.Header.Get(name))
			}
		}
	}
}

func TestLongAddressesAreRefused(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	long := strings.Repeat("a", maxURI)
	for path, want := range map[string]int{"/?q=" + long: http.StatusRequestURITooLong, "/" + long: http.StatusRequestURITooLong, "/?after=" + long: http.StatusOK, "/?after=b&q=" + long: http.StatusRequestURITooLong} {
		assert.Equal(t, s.get(path), want, "%.20s", path)
	}
}

func TestCloseDoesNotWaitForIdleConnections(t *testing.T) {
	s := serve(t, "127.0.0.1:0")
	c, err := net.Dial("tcp", s.Addr().String())
	assert.Must(t, err)
	defer c.Close()
	s.Close()
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
