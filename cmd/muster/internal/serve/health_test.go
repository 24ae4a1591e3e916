package serve

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheAddressOfHealth(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:9021":          "http://127.0.0.1:9021/healthz",
		"0.0.0.0:80":              "http://127.0.0.1:80/healthz",
		"[::]:80":                 "http://127.0.0.1:80/healthz",
		":80":                     "http://127.0.0.1:80/healthz",
		"https://0.0.0.0:9021":    "https://127.0.0.1:9021/healthz",
		"https://muster.lan:9021": "https://muster.lan:9021/healthz",
		"http://[::1]:80/":        "http://[::1]:80/healthz",
		"muster":                  "",
		"off":                     "",
		"ftp://127.0.0.1:1":       "",
		"127.0.0.1:":              "",
	} {
		if got, err := healthURL(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", address, got, err, want)
		}
	}
}

func TestAnUnhealthyBrokerSaysWhy(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
	}{
		{http.StatusOK, `{"status":"ok"}`, ""},
		{http.StatusServiceUnavailable, `{"problems":["the disk is gone","Redis as well"]}`, "the disk is gone\nRedis as well"},
		{http.StatusServiceUnavailable, "busy", "answers 503 Service Unavailable"},
		{http.StatusNotFound, "{}", "answers 404 Not Found"},
	} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				t.Errorf("asked for %s", r.URL.Path)
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body)) // What arrives is looked at.
		}))
		err := checkHealth(t.Context(), server.URL+"/healthz")
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d %s: %v, want %q", c.status, c.body, err, c.want)
		}
		server.Close()
	}
}
