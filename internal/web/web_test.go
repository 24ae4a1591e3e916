package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"muster/internal/assert"
)

func TestHealthz(t *testing.T) {
	var problems atomic.Pointer[[]string]
	problems.Store(new([]string))
	s := serve(t, newFake(t), func(o *Options) {
		o.Health = func() Health { return Health{Node: 3, Store: "memory", Problems: *problems.Load()} }
	})
	get := func(method, path string) (int, Health) {
		t.Helper()
		resp, body := s.do(method, path)
		var h Health
		if resp.Header.Get("Content-Type") == "application/json" {
			must(t, json.Unmarshal([]byte(body), &h))
		}
		return resp.StatusCode, h
	}
	if code, h := get(http.MethodGet, "/healthz"); code != 200 || h.Status != "ok" || h.Node != 3 || h.Store != "memory" {
		t.Errorf("well: %d, %+v", code, h)
	}
	problems.Store(&[]string{"the disk is full"})
	if code, h := get(http.MethodGet, "/healthz"); code != 503 || h.Status != "unavailable" || len(h.Problems) != 1 {
		t.Errorf("not well: %d, %+v", code, h)
	}
	if code, _ := get(http.MethodPost, "/healthz"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
	if code, _ := get(http.MethodGet, "/other"); code != http.StatusNotFound {
		t.Errorf("another page: %d", code)
	}
}

func TestMetricsAreMountedAndWantNoLogin(t *testing.T) {
	f := newFake(t)
	f.users = map[string]string{"ann": "anns"}
	s := serve(t, f, func(o *Options) {
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1\n")) })
	})
	if resp, body := s.do(http.MethodGet, "/metrics"); resp.StatusCode != http.StatusOK || body != "up 1\n" {
		t.Errorf("metrics: %d %q", resp.StatusCode, body)
	}
	s.fails("/metrics", http.StatusForbidden, host("evil.example.org"))
}

func TestNothingIsReadBeforeTheBrokerIsReadyOrWhenItStops(t *testing.T) {
	f := newFake(t)
	f.notReady = errStarting
	s := serve(t, f)
	if p := s.fails(Prefix+"/groups", http.StatusServiceUnavailable); p.Message != errStarting.Error() {
		t.Errorf("%+v", p)
	}
	f.notReady = nil
	s.Drain()
	s.fails(Prefix+"/groups", http.StatusServiceUnavailable)
	if resp, _ := s.do(http.MethodGet, "/healthz"); resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz while it stops: %d", resp.StatusCode)
	}
}

func TestTheDocumentIsServed(t *testing.T) {
	s := serve(t, newFake(t))
	resp, body := s.do(http.MethodGet, Prefix+"/openapi.json")
	assert.True(t, resp.StatusCode == http.StatusOK && strings.Contains(body, `"/api/v1/groups/{group}/explain"`), "it is %d %.100s", resp.StatusCode, body)
}
