package web

import (
	"net/http"
	"strings"
	"testing"

	"muster/internal/watch/list"
)

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

// maxURI is how long path and query may be together.
const maxURI = 8 << 10

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
