package web

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

func TestHealthz(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var problems atomic.Pointer[[]string]
	problems.Store(new([]string))
	s := Serve(l, func() Health { return Health{Node: 3, Store: "memory", Problems: *problems.Load()} }, slog.New(slog.DiscardHandler))
	defer s.Close()
	get := func(method, path string) (int, Health) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var h Health
		if resp.Header.Get("Content-Type") == "application/json" {
			if err := json.NewDecoder(resp.Body).Decode(&h); err != nil {
				t.Fatal(err)
			}
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

func TestCloseDoesNotWaitForIdleConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := Serve(l, func() Health { return Health{} }, slog.New(slog.DiscardHandler))
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Close()
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
