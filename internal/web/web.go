// Package web answers HTTP requests about the broker: /healthz for load balancers,
// /metrics for dashboards, and /api/v1 for people and programs that want to know how
// groups are, and why, and to do something about it.
//
//	server (bounded, guarded) → mux ─┬ /healthz, /metrics, console
//	                                 └ api: login → slot → route → answer
//
// One table has all routes of the API (route.go): path, question, answer, the right that
// it needs. The OpenAPI document and the TypeScript types are made of it, and a test
// fails if they are out of date. The package knows no engine, asks the broker through
// Reads and Gate, and acts by package act, which sends the very requests of the Kafka
// protocol; what it computes from is a watch.Snapshot, so a list costs the same whatever
// groups do. Whoever asks, memory, time and goroutines are bounded.
package web

import (
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"muster/internal/web/act"
	"muster/internal/web/console"
	"muster/internal/web/fleet"
	"muster/internal/web/problem"
	"muster/internal/web/server"
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
	// records, though no one knows who they are.
	AnonymousFull bool
	Logger        *slog.Logger
	// Panicked is told of each request that made a handler panic; nil if no one wants to know.
	Panicked func()
	// Now is the time; time.Now if nil.
	Now func() time.Time
}

// Server serves the pages.
type Server struct {
	*server.Server
	api   *api
	drain sync.Once
}

// Serve answers on a listener, which becomes its own, until Close.
func Serve(l net.Listener, opts Options) *Server {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s := &Server{api: newAPI(&opts, l.Addr())}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+server.HealthPath, func(w http.ResponseWriter, _ *http.Request) { writeHealth(w, opts.Health()) })
	if metrics := opts.Metrics; metrics != nil {
		if opts.MetricsLogin {
			metrics = s.api.behindLogin(metrics)
		}
		mux.Handle("GET "+server.MetricsPath, metrics)
	}
	s.api.mount(mux)
	mux.Handle("/", console.Handler())
	s.Server = server.Serve(l, server.Options{
		Handler: admitBrokers(opts.Fleet, mux), AllowedHosts: opts.AllowedHosts, Logger: opts.Logger, Panicked: opts.Panicked,
	})
	return s
}

// Drain has the API answer nothing any more, and waits for what it is answering, though not
// for long: after that no one asks the broker for anything but its health.
func (s *Server) Drain() { s.drain.Do(s.api.drain) }

// Close answers what was asked, for a moment, and ends.
func (s *Server) Close() {
	s.Drain()
	s.Server.Close()
}

// Health says how the broker is.
type Health struct {
	Status   string   `json:"status" doc:"ok, or unavailable if there are problems"`
	Node     int32    `json:"node" doc:"the broker's node id"`
	Cluster  string   `json:"cluster,omitempty" doc:"the cluster id"`
	Store    string   `json:"store" doc:"where records are kept"`
	Problems []string `json:"problems,omitempty" doc:"what is wrong, in sentences"`
}

// wellStatus is the status of a broker without problems.
const wellStatus = "ok"

// judged fills in the status.
func (h Health) judged() Health {
	h.Status = wellStatus
	if len(h.Problems) > 0 {
		h.Status = "unavailable"
	}
	return h
}

// writeHealth answers 200 if all is well and 503 if not, so that a client that asks
// need not read the rest.
func writeHealth(w http.ResponseWriter, h Health) {
	code := http.StatusOK
	if len(h.Problems) > 0 {
		code = http.StatusServiceUnavailable
	}
	body, err := problem.Encode(h.judged())
	if err != nil {
		code, body = http.StatusInternalServerError, nil
	}
	problem.Send(w, code, problem.JSON, body)
}
