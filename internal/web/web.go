// Package web answers HTTP requests about the broker: /healthz for load balancers,
// /metrics for dashboards, and /api/v1 for people and programs that want to know how
// groups are, and why, and to do something about it.
//
//	listener → conns (bounded) → guard (Host, origin, length) → mux ─┬ /healthz, /metrics
//	                                                                 └ api: login → slot → route → answer
//
// One table has all routes of the API (routes.go): path, question, answer, the right that
// it needs. The OpenAPI document and the TypeScript types are made of it, and a test
// fails if they are out of date. The package knows no engine, asks the broker through
// Reads and Gate, and acts through Actions, which sends the very requests of the Kafka
// protocol; what it computes from is a watch.Snapshot, so a list costs the same whatever
// groups do. Whoever asks, memory, time and goroutines are bounded.
package web

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"muster/internal/web/act"
	"muster/internal/web/console"
	"muster/internal/web/fleet"
)

// What a client has time for. Answers are small, and nobody is waited for.
const (
	requestTimeout = 5 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 56 << 10 // With the cursor after the longest name of a group, which has 32,767 bytes.
)

// The pages for machines, which have a reserve of connections.
const (
	healthPath  = "/healthz"
	metricsPath = "/metrics"
)

// Options of a server.
type Options struct {
	Health func() Health
	Reads  Reads
	Gate   Gate
	// Records are what can be read of topics.
	Records Records
	// Actions does what people want done; nil if nothing can be done.
	Actions *act.Acts
	// Fleet asks other brokers; nil if there are none.
	Fleet *fleet.Fleet
	// Metrics answers /metrics; nil if nothing does.
	Metrics http.Handler
	// MetricsLogin says that /metrics needs a login where the API does.
	MetricsLogin bool
	// AllowedHosts are names by which this broker is reached, besides addresses and
	// those of the machine.
	AllowedHosts []string
	// AnonymousFull lets people of other machines change things and see what is in
	// records, though nobody knows who they are.
	AnonymousFull bool
	Logger        *slog.Logger
	// Panicked is told of each request that made a handler panic; nil if no one wants to know.
	Panicked func()
	// Now is the time; time.Now if nil.
	Now func() time.Time
}

// Server serves the pages.
type Server struct {
	http  *http.Server
	api   *api
	addr  net.Addr
	done  chan struct{}
	drain sync.Once
}

// Serve answers on a listener, which becomes its own, until Close.
func Serve(l net.Listener, opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{addr: l.Addr(), done: make(chan struct{}), api: newAPI(&opts, l.Addr())}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+healthPath, func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, opts.Health()) })
	if metrics := opts.Metrics; metrics != nil {
		if opts.MetricsLogin {
			metrics = s.api.behindLogin(metrics)
		}
		mux.Handle("GET "+metricsPath, metrics)
	}
	s.api.mount(mux)
	mux.Handle("/", console.Handler())
	conns := newConns(maxConns)
	s.http = &http.Server{
		Handler:  conns.handler(surviving(newGuard(admitBrokers(opts.Fleet, mux), l.Addr(), opts.AllowedHosts), &opts)),
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

// Drain has the API answer nothing any more, and waits for what it is answering, though not
// for long: after that nobody asks the broker for anything but its health.
func (s *Server) Drain() { s.drain.Do(s.api.drain) }

// Close answers what was asked, for a moment, and ends.
func (s *Server) Close() {
	s.Drain()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.done
}
