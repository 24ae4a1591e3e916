// Package server is the HTTP server of a broker: whoever asks, and however slowly, memory, time
// and connections are bounded, and pages of other sites are kept out.
//
//	listener → conns (bounded) → surviving (panics) → guard (Host, origin, length) → handler
//
// It knows none of the pages, besides that health and metrics have connections of their own.
package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// What a client has time for. Answers are small, and no one is waited for.
const (
	requestTimeout = 5 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 56 << 10 // With the cursor after the longest name of a group, which has 32,767 bytes.
)

// The pages for machines, which have a reserve of connections.
const (
	HealthPath  = "/healthz"
	MetricsPath = "/metrics"
)

// AnswerTimeout bounds the making of an answer.
const AnswerTimeout = 10 * time.Second

// Options of a server.
type Options struct {
	Handler http.Handler
	// AllowedHosts are names by which this broker is reached, besides addresses and
	// those of the machine.
	AllowedHosts []string
	Logger       *slog.Logger
	// Panicked is told of each request that made the handler panic. Optional.
	Panicked func()
}

// Server serves until it is closed.
type Server struct {
	http *http.Server
	addr net.Addr
	done chan struct{}
}

// Serve answers on a listener, which becomes its own, until Close.
func Serve(l net.Listener, opts Options) *Server {
	s := &Server{addr: l.Addr(), done: make(chan struct{})}
	conns := newConns(maxConns)
	s.http = &http.Server{
		Handler:  conns.handler(surviving(newGuard(opts.Handler, l.Addr(), opts.AllowedHosts), &opts)),
		ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelDebug),
		// There is no time for a whole answer: each write of it has one (write.go).
		ReadHeaderTimeout: requestTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnState: conns.changed, ConnContext: conns.opened,
	}
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
