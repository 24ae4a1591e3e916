package console

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"muster/internal/assert"
)

func get(t *testing.T, method, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestEveryPageIsTheIndex(t *testing.T) {
	for _, p := range []string{"/", "/groups", "/groups?sort=-lag", "/groups/billing", "/groups/a%2Fb", "/groups/..%2f..%2fetc", "/topics", "/topics/orders", "/brokers", "/journal", "/users", "/acls", "/quotas"} {
		w := get(t, http.MethodGet, p)
		assert.True(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), `<div id="app">`), "%s is %d", p, w.Code)
		assert.Equal(t, w.Header().Get("Content-Type"), "text/html; charset=utf-8", "%s", p)
		if got := w.Header().Get("Cache-Control"); got != "no-store" {
			t.Errorf("%s is kept: %q; after an upgrade it would ask for files that are gone", p, got)
		}
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") || strings.Contains(got, "unsafe") {
			t.Errorf("the policy of %s is %q", p, got)
		}
	}
}

func TestWhatIsNoPageIsNotFound(t *testing.T) {
	for _, p := range []string{"/nothing", "/groups/a/b", "/brokers/1", "/assets/", "/assets/nothing.js", "/assets/index.html", "/assets/../index.html", "/assets/..%2findex.html", "/index.html", "/dist/index.html"} {
		w := get(t, http.MethodGet, p)
		assert.True(t, w.Code == http.StatusNotFound, "%s is %d, want 404", p, w.Code)
		// People get a page that leads on.
		if page := strings.Contains(w.Body.String(), `<div id="app">`); page == strings.HasPrefix(p, "/assets/") {
			t.Errorf("%s is a page: %t", p, page)
		}
	}
	if w := get(t, http.MethodPost, "/groups"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("a POST is %d, want 405", w.Code)
	}
}

func TestWhatThePageLoadsIsThereForGood(t *testing.T) {
	index := get(t, http.MethodGet, "/").Body.String()
	loaded := regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(index, -1)
	assert.MustEqual(t, len(loaded), 3, "the page loads %v, want icon, style and script", loaded)
	for _, match := range loaded {
		w := get(t, http.MethodGet, match[1])
		if w.Code != http.StatusOK || w.Body.Len() == 0 || w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s is %d with %d bytes", match[1], w.Code, w.Body.Len())
		}
		if got := w.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("%s is kept %q", match[1], got)
		}
		want := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}[match[1][strings.LastIndex(match[1], "."):]]
		if got := w.Header().Get("Content-Type"); got != want {
			t.Errorf("%s is %q, want %q", match[1], got, want)
		}
		if w := get(t, http.MethodHead, match[1]); w.Code != http.StatusOK || w.Body.Len() != 0 || w.Header().Get("Content-Length") == "" {
			t.Errorf("HEAD %s is %d with %d bytes", match[1], w.Code, w.Body.Len())
		}
	}
}

func TestGzipIsSentToWhoTakesIt(t *testing.T) {
	script := regexp.MustCompile(`/assets/app-\w+\.js`).FindString(get(t, http.MethodGet, "/").Body.String())
	for accept, want := range map[string]string{"gzip, br": "gzip", "br;q=1.0, gzip;q=0.8": "gzip", "*": "gzip", "": "", "br": "", "gzip;q=0": "", "identity": ""} {
		w := get(t, http.MethodGet, script, "Accept-Encoding", accept)
		assert.Equal(t, w.Header().Get("Content-Encoding"), want, "who takes %q gets", accept)
		assert.True(t, w.Header().Get("Vary") != "", "caches are not told that the answer depends on what the client takes")
	}
}
