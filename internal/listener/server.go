// Package listener owns the sockets: it accepts connections, reads frames,
// hands them to a handler, and writes the answers in the order of the requests.
//
// Each connection has one goroutine that reads a frame, lets the handler work
// on it, and writes the answer. A handler that waits (a parked Fetch or
// JoinGroup) thereby keeps its connection from reading on, as in Kafka. Only a
// pending response, which Produce gives while it waits for the disk, lets the
// goroutine go on to the next frame; then a second goroutine writes what
// becomes ready, until nothing is outstanding. While a handler waits, the
// connection is checked from time to time, and the request ends when its client
// hangs up (Client.Park).
//
// What clients can make the broker hold is bounded: by the frame limit, by budgets
// of bytes over all connections (for requests that are read or handled, for those
// that wait, and for answers), by a bound on the answers of one connection, and by
// deadlines for half-sent frames and for clients that do not read.
package listener

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/protocol"
)

// Client is who a request comes from.
type Client struct {
	Listener string // name of the listener
	Host     string // the client's address without port
	Number   uint32 // of the connection, in the order in which they came
	LastID   string // for the handler: the client id of the last request
	// Session is what the listener's gate has made of the connection, nil where there is none.
	Session Session

	place any
	conn  *conn
}

// Handler serves requests.
type Handler interface {
	// Handle serves the request in frame, which it may use, and change, until
	// it returns or releases it. It returns the answer, nil if there is none to send, or an
	// error that ends the connection.
	Handle(ctx context.Context, c *Client, frame []byte) (*protocol.Response, error)
}

// Options of a server.
type Options struct {
	Handler        Handler
	Logger         *slog.Logger
	MaxRequest     int           // socket.request.max.bytes
	IdleTimeout    time.Duration // connections.max.idle.ms; zero or less: never
	MaxConnections int           // max.connections
	MaxPerHost     int           // max.connections.per.ip
	// KeepFree is how many of the process's descriptors are not for connections.
	KeepFree int
	// Arrivals limits how often connections begin; nil for as often as they like.
	Arrivals Arrivals
	// Meter hears of requests that were answered; nil if no one wants to know.
	Meter Meter
	// Panicked is told of each request that made the handler panic; nil if no one wants to know.
	Panicked func()
	// After is how the server waits until connections may go on: time.After if it
	// is nil.
	After func(time.Duration) <-chan time.Time

	// FrameTimeout is how long the rest of a frame may take once it has begun; 0 for
	// frameTimeout.
	FrameTimeout time.Duration

	login time.Duration // loginTimeout if it is 0; for tests
}

// frameTimeout is how long the rest of a frame may take once it has begun. An
// answer may be left unread for as long as a connection may be idle: a consumer
// that reads nothing while it works on what it has is not at fault.
const frameTimeout = 30 * time.Second

// Server serves connections on any number of listeners.
type Server struct {
	opts     Options
	sockets  int           // that there are descriptors for
	rest     time.Duration // frameTimeout, but for tests
	patience time.Duration // lingerTime, but for tests
	login    time.Duration // loginTimeout, but for tests
	budget   *budget       // of requests that are read or handled
	parked   *budget       // of requests that wait
	// beforeLogin is the budget of requests from those who have yet to log in.
	beforeLogin *budget
	answers     *answers
	ctx         context.Context // ends when the server shuts down
	stop        context.CancelFunc
	refused     limitedLog
	after       func(time.Duration) <-chan time.Time

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*conn]struct{}
	perHost   map[string]int
	perName   map[string]int // connections by the name of their listener
	number    uint32         // of the last connection
	overrides map[string]int // of MaxPerHost
	held      int            // connections that are not served, and not yet closed
	draining  atomic.Bool
	running   sync.WaitGroup
}

// NewServer returns a server that listens nowhere yet.
func NewServer(opts Options) *Server {
	ctx, stop := context.WithCancel(context.Background())
	after := opts.After
	if after == nil {
		after = time.After
	}
	return &Server{
		opts: opts, rest: cmp.Or(opts.FrameTimeout, frameTimeout), patience: lingerTime, login: cmp.Or(opts.login, loginTimeout), sockets: max(maxDescriptors()-opts.KeepFree, 1), budget: newBudget(frameBudget), parked: newBudget(parkedBudget), beforeLogin: newBudget(beforeLoginBudget), answers: newAnswers(answerBudget), ctx: ctx, stop: stop,
		refused: limitedLog{logger: opts.Logger}, after: after,
		conns: map[*conn]struct{}{}, perHost: map[string]int{}, perName: map[string]int{},
	}
}

// Listen opens a listener under a name, with TLS if a configuration is given, and
// with a gate if clients are to say who they are, and returns the address it has.
// Serve must follow.
func (s *Server) Listen(name, addr string, tlsConfig *tls.Config, gate Gate) (net.Addr, func(), error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.perName[name] = 0
	s.mu.Unlock()
	serve := func() { s.running.Go(func() { s.accept(name, l, tlsConfig, gate) }) }
	return l.Addr(), serve, nil
}

// accept takes connections until the listener is closed.
func (s *Server) accept(name string, l net.Listener, tlsConfig *tls.Config, gate Gate) {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Most likely too many open files: wait for some to be closed.
			s.opts.Logger.Warn("cannot accept a connection", "listener", name, "error", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		host, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
		if !s.arrived(name, host, nc.(*net.TCPConn)) {
			continue
		}
		c := &conn{server: s, client: Client{Listener: name, Host: host}, tcp: nc.(*net.TCPConn), net: nc, gate: gate}
		c.client.conn, c.unread.conn = c, c
		if !s.add(c) {
			if s.draining.Load() {
				resetOnClose(c.tcp)
			}
			nc.Close()
			continue
		}
		tune(c.tcp)
		if tlsConfig != nil {
			c.net = tls.Server(nc, tlsConfig)
		}
		s.running.Go(func() {
			defer s.remove(c)
			c.serve()
		})
	}
}

// add counts a connection in, unless there are too many.
func (s *Server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining.Load():
		return false
	case len(s.conns) >= s.opts.MaxConnections:
		s.refused.warn("connection refused: max.connections reached", "host", c.client.Host, "limit", s.opts.MaxConnections)
		return false
	case len(s.conns)+s.held >= s.sockets:
		s.refused.warn("connection refused: the other open files need the rest of what the process may open", "host", c.client.Host, "limit", s.sockets)
		return false
	case s.perHost[c.client.Host] >= s.perHostLimit(c.client.Host):
		s.refused.warn("connection refused: max.connections.per.ip reached", "host", c.client.Host, "limit", s.perHostLimit(c.client.Host))
		return false
	}
	s.conns[c] = struct{}{}
	s.perHost[c.client.Host]++
	s.perName[c.client.Listener]++
	s.number++
	c.client.Number = s.number
	return true
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.perName[c.client.Listener]--
	if s.perHost[c.client.Host]--; s.perHost[c.client.Host] == 0 {
		delete(s.perHost, c.client.Host)
	}
}

// SetLimits changes how many connections there may be, in all and from one
// address. Connections above the new limits stay.
func (s *Server) SetLimits(maxConnections, maxPerHost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.MaxConnections, s.opts.MaxPerHost = maxConnections, maxPerHost
}

// Connections returns how many connections there are.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Shutdown stops accepting, lets every connection finish the requests it has
// sent, and closes them. When ctx ends first, what is left is cut off.
func (s *Server) Shutdown(ctx context.Context) {
	s.draining.Store(true)
	s.stop()
	s.mu.Lock()
	for _, l := range s.listeners {
		l.Close()
	}
	for c := range s.conns {
		c.interruptIdle()
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		c.resetIfNew()
		c.tcp.Close()
	}
	s.mu.Unlock()
	<-done
}
