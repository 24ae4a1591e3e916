package web

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"muster/internal/watch/list"
)

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func TestForeignHostsAreRefused(t *testing.T) {
	s := serve(t, newFake(t), func(o *Options) { o.AllowedHosts = []string{"Muster.Example.org"} })
	for _, name := range []string{"evil.example.org", "evil.example.org:9021", "127.0.0.1.evil.org", "localhost.evil.org", "10.0.0.1", "muster.example.org.evil.org", "[::2]:9021"} {
		p := s.fails(Prefix+"/groups", http.StatusForbidden, host(name))
		if p.Code != "host_not_allowed" {
			t.Errorf("%q: %+v", name, p)
		}
	}
	for _, name := range []string{"localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.1.2.3:9021", "[::1]:9021", "a.localhost", "muster.example.org:80", "muster.example.org."} {
		if resp, body := s.do(http.MethodGet, Prefix+"/groups", host(name)); resp.StatusCode != http.StatusOK {
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
	if g := newGuard(http.NotFoundHandler(), &net.TCPAddr{IP: net.IPv4zero}, []string{"*"}).(*guard); !g.knows("evil.example.org") {
		t.Error("* does not allow all")
	}
}

// Those who scrape find a broker by names that it cannot know; pages that make their names
// mean its address are opened by browsers.
func TestMetricsAreScrapedUnderAnyNameButNotByABrowser(t *testing.T) {
	metrics := func(o *Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	far := serveOn(t, l, newFake(t), metrics)
	if resp, body := far.do(http.MethodGet, metricsPath, host("muster:9021")); resp.StatusCode != http.StatusOK {
		t.Errorf("a scraper gets %d %s", resp.StatusCode, body)
	}
	for _, h := range [][2]string{{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"}, {"Origin", "http://evil.example.org"}, {"Referer", "http://evil.example.org/"}, {"Cookie", "a=b"}, {"Sec-Fetch-Site", "same-origin"}} {
		far.fails(metricsPath, http.StatusForbidden, host("evil.example.org"), header(h[0], h[1]))
		if resp, _ := far.do(http.MethodGet, metricsPath, header(h[0], h[1])); resp.StatusCode != http.StatusOK {
			t.Errorf("under a name that is known, with %s: %d", h[0], resp.StatusCode)
		}
	}
	if p := far.fails(Prefix+"/groups", http.StatusForbidden, host("muster:9021")); !strings.Contains(p.Message, `"muster"`) || !strings.Contains(p.Message, "muster.http.allowed.hosts") {
		t.Errorf("of the rest it says %q", p.Message)
	}
	serve(t, newFake(t), metrics).fails(metricsPath, http.StatusForbidden, host("muster:9021"))
}

func TestOtherOriginsMayNotSendAnything(t *testing.T) {
	s := serve(t, newFake(t))
	for _, header := range [][2]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "http://evil.example.org"}} {
		set := func(r *http.Request) { r.Header.Set(header[0], header[1]) }
		if resp, body := s.do(http.MethodPost, Prefix+"/groups", set); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%v: %d %s", header, resp.StatusCode, body)
		}
		if resp, _ := s.do(http.MethodGet, Prefix+"/groups", set); resp.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%v: may be read", header)
		}
	}
	if resp, _ := s.do(http.MethodPost, Prefix+"/groups"); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
		t.Errorf("POST: %d", resp.StatusCode)
	}
}

func TestEveryAnswerHasTheHeadersThatBindBrowsers(t *testing.T) {
	s := serve(t, newFake(t))
	for _, path := range []string{"/healthz", "/", Prefix + "/groups", Prefix + "/nothing", Prefix + "/groups/nobody", Prefix + "/openapi.json"} {
		resp, _ := s.do(http.MethodGet, path)
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if !strings.HasPrefix(resp.Header.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, resp.Header.Get(name))
			}
		}
	}
}

func TestLongAndTrickyPathsAreRefused(t *testing.T) {
	s := serve(t, newFake(t))
	s.fails(Prefix+"/groups?q="+strings.Repeat("a", maxURI), http.StatusRequestURITooLong)
	s.fails(Prefix+"/groups/"+strings.Repeat("a", maxURI), http.StatusRequestURITooLong)
	s.fails(Prefix+"/groups?after=AAAA&q="+strings.Repeat("a", maxURI), http.StatusRequestURITooLong)
	for path, want := range map[string]int{
		Prefix + "/groups/%2e%2e":                                    http.StatusNotFound, // There is no group of that name.
		Prefix + "/groups/..%2f..%2fhealthz":                         http.StatusNotFound,
		Prefix + "/groups/a%00b":                                     http.StatusNotFound,
		Prefix + "/groups/":                                          http.StatusNotFound,
		Prefix + "/groups/billing/":                                  http.StatusNotFound,
		Prefix + "/groups/billing%2fjournal":                         http.StatusNotFound,
		Prefix + "/../../etc/passwd":                                 http.StatusTemporaryRedirect,
		"/api/v2/groups":                                             http.StatusNotFound,
		Prefix + "/groups/billing/journal/x":                         http.StatusNotFound,
		Prefix + "//groups":                                          http.StatusTemporaryRedirect,
		Prefix + "/groups;x=1":                                       http.StatusNotFound,
		Prefix + "/groups?%zz=1":                                     http.StatusBadRequest,
		Prefix + "/groups?a;b":                                       http.StatusBadRequest,
		Prefix + "/groups?nothing=1":                                 http.StatusBadRequest,
		Prefix + "/groups?limit=1&limit=2":                           http.StatusBadRequest,
		Prefix + "/groups?limit=-1":                                  http.StatusBadRequest,
		Prefix + "/groups?limit=1001":                                http.StatusBadRequest,
		Prefix + "/groups?limit=9999999999999":                       http.StatusBadRequest,
		Prefix + "/groups?sort=size":                                 http.StatusBadRequest,
		Prefix + "/groups?after=x":                                   http.StatusBadRequest,
		Prefix + "/groups?format=xml":                                http.StatusBadRequest,
		Prefix + "/groups?q=" + strings.Repeat("a", 300):             http.StatusBadRequest,
		Prefix + "/groups?state=" + strings.Repeat("a,", 100):        http.StatusBadRequest,
		Prefix + "/groups/billing/journal?since=-1h":                 http.StatusBadRequest,
		Prefix + "/groups/billing/journal?all=maybe":                 http.StatusBadRequest,
		Prefix + "/groups/billing/history?partition=0":               http.StatusBadRequest,
		Prefix + "/groups/billing/history?topic=orders&partition=-1": http.StatusBadRequest,
		Prefix + "/groups/billing/history?resolution=1s":             http.StatusBadRequest,
		Prefix + "/groups/billing?format=csv":                        http.StatusBadRequest,
	} {
		if resp, body := s.do(http.MethodGet, path); resp.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, resp.StatusCode, body, want)
		}
	}
}

func TestAForeignHostInAnAbsoluteAddressIsRefused(t *testing.T) {
	s := serve(t, newFake(t))
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "GET http://evil.example.org%s/groups HTTP/1.1\r\nHost: localhost\r\n\r\n", Prefix)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("it is %d", resp.StatusCode)
	}
}

// A page that ends with the longest name that a group can have is not the last that can be read.
func TestPagesGoOnAfterGroupsWithLongNames(t *testing.T) {
	f := newFake(t)
	f.snapshot.Groups = list.Build([]list.GroupRow{{Name: strings.Repeat("a", 32767)}, {Name: "b"}})
	s := serve(t, f)
	page := read[GroupList](s, "/groups?limit=1")
	if page = read[GroupList](s, "/groups?limit=1&after="+page.Next); len(page.Groups) != 1 || page.Groups[0].Name != "b" {
		t.Errorf("then come %+v", page.Groups)
	}
}
