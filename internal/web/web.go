// Package web answers HTTP requests about the broker. So far there is one page,
// /healthz, for load balancers and others who must know whether to send clients here. It only
// reads, and asks the broker through functions, so that it needs no other package.
package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Health says how the broker is.
type Health struct {
	Status   string   `json:"status"` // ok, or unavailable if there are problems
	Node     int32    `json:"node"`
	Cluster  string   `json:"cluster,omitempty"`
	Store    string   `json:"store"`
	Problems []string `json:"problems,omitempty"`
}

// What a client has time for. The pages are small, and nobody is waited for.
const (
	requestTimeout = 5 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 16 << 10
)

// Server serves the pages.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan struct{}
}

// Serve answers on a listener, which becomes its own, until Close.
func Serve(l net.Listener, health func() Health, logger *slog.Logger) *Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, health()) })
	s := &Server{addr: l.Addr(), done: make(chan struct{}), http: &http.Server{
		Handler: mux, ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
	}}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // It ends by Close.
	}()
	return s
}

// Addr returns where the pages are.
func (s *Server) Addr() net.Addr { return s.addr }

// Close answers what was asked, for a moment, and ends.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.done
}

// writeHealth answers 200 if all is well and 503 if not, so that a client that asks
// need not read the rest.
func writeHealth(w http.ResponseWriter, h Health) {
	code := http.StatusOK
	h.Status = "ok"
	if len(h.Problems) > 0 {
		code, h.Status = http.StatusServiceUnavailable, "unavailable"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	_ = e.Encode(h) // Who asked may be gone.
}
