package server

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"muster/internal/fair"
	"muster/internal/web/problem"
)

const (
	// maxConns is how many connections there are at a time. A browser has six, a balancer
	// one or two. It is more than all classes of requests together may have, so there is
	// always a connection that the broker waits for, which can go.
	maxConns = 256
	// MaxServed is how many requests are being served at a time, and maxOwnServed how many
	// of one address.
	MaxServed    = 176
	maxOwnServed = MaxServed * 2 / 3
	// maxHealth and maxMetrics are the reserves of /healthz and /metrics.
	maxHealth     = 32
	maxOwnHealth  = maxHealth / 2
	maxMetrics    = 16
	maxOwnMetrics = maxMetrics / 2
)

// conns bounds the connections, and the requests that are being served. When there are too
// many, one goes for which the broker waits: for its next request, for the rest of one, or
// until it takes more of an answer. Of these it is the one of the address with the most
// connections that has kept the broker waiting for longest. So who opens connections and
// says nothing, or only half, does not keep others out.
type conns struct {
	mu      sync.Mutex
	max     int
	all     map[net.Conn]*held
	of      map[string]int // by neighbourhood
	waiting *list.List     // of *held, the longest waited for first

	health, metrics, others class
}

// class is a kind of requests, which has a number of places.
type class struct {
	most, own int
	all       int
	of        map[string]int // by neighbourhood
}

// held is a connection. The lock of conns guards it.
type held struct {
	conns   *conns
	conn    net.Conn
	from    string        // its neighbourhood
	waits   *list.Element // nil while it is the broker's turn
	serving *class        // of the request that is being served; nil for none
}

func newConns(most int) *conns {
	return &conns{
		max: most, all: map[net.Conn]*held{}, of: map[string]int{}, waiting: list.New(),
		health:  class{most: maxHealth, own: maxOwnHealth, of: map[string]int{}},
		metrics: class{most: maxMetrics, own: maxOwnMetrics, of: map[string]int{}},
		others:  class{most: MaxServed, own: maxOwnServed, of: map[string]int{}},
	}
}

type heldKey struct{}

// opened is http.Server.ConnContext, which is called first for each connection.
func (c *conns) opened(ctx context.Context, conn net.Conn) context.Context {
	h := &held{conns: c, conn: conn, from: fair.Neighbourhood(conn.RemoteAddr().String())}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[conn] = h
	c.of[h.from]++
	c.wait(h)
	if len(c.all) > c.max {
		c.evict(func(*held) bool { return true })
	}
	return context.WithValue(ctx, heldKey{}, h)
}

// changed is http.Server.ConnState.
func (c *conns) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.all[conn]
	switch {
	case h == nil: // It was closed by evict.
	case state == http.StateActive, state == http.StateIdle:
		// The first byte of a request has come, or an answer has gone. What follows is
		// waited for anew.
		c.wait(h)
	case state == http.StateHijacked, state == http.StateClosed:
		c.forget(h)
	}
}

// wait notes that the broker waits for a connection from now on, and resume that it does
// not any more.
func (c *conns) wait(h *held) {
	c.resume(h)
	h.waits = c.waiting.PushBack(h)
}

func (c *conns) resume(h *held) {
	if h.waits != nil {
		c.waiting.Remove(h.waits)
		h.waits = nil
	}
}

// forget does not count a connection any more.
func (c *conns) forget(h *held) {
	if c.all[h.conn] != h {
		return
	}
	c.resume(h)
	c.leave(h)
	delete(c.all, h.conn)
	if c.of[h.from]--; c.of[h.from] == 0 {
		delete(c.of, h.from)
	}
}

// leave gives back the place of a request.
func (c *conns) leave(h *held) {
	s := h.serving
	if s == nil {
		return
	}
	h.serving = nil
	s.all--
	if s.of[h.from]--; s.of[h.from] == 0 {
		delete(s.of, h.from)
	}
}

// evict closes a connection for which the broker waits, of those that may go, and says
// whether there was one. It does not count any more from now on.
func (c *conns) evict(may func(*held) bool) bool {
	var out *held
	for e := c.waiting.Front(); e != nil; e = e.Next() {
		if h := e.Value.(*held); may(h) && (out == nil || c.of[h.from] > c.of[out.from]) {
			out = h
		}
	}
	if out == nil {
		return false
	}
	c.forget(out)
	hangUp(out.conn)
	return true
}

// classOf returns the class of a request.
func (c *conns) classOf(r *http.Request) *class {
	switch r.URL.Path {
	case HealthPath:
		return &c.health
	case MetricsPath:
		return &c.metrics
	}
	return &c.others
}

// enter takes a place for a request, from a slow one if need be, and says whether it could.
func (c *conns) enter(h *held, s *class) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[h.conn] != h {
		return false // It was closed a moment ago.
	}
	own := s.of[h.from] >= s.own
	if (own || s.all >= s.most) && !c.evict(func(o *held) bool { return o.serving == s && (!own || o.from == h.from) }) {
		return false
	}
	c.resume(h)
	h.serving = s
	s.all++
	s.of[h.from]++
	return true
}

// handler has next serve requests for which there is a place.
func (c *conns) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := heldOf(r)
		if !c.enter(h, c.classOf(r)) {
			// What else it brings is not waited for.
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			problem.Write(paced(w, nil), problem.Busy())
			return
		}
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.all[h.conn] == h {
				c.leave(h)
				c.wait(h) // The rest of its body may be to come.
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// heldOf returns the connection of a request; nil if it does not count.
func heldOf(r *http.Request) *held {
	h, _ := r.Context().Value(heldKey{}).(*held)
	return h
}

// await notes that the broker waits for the connection while do runs.
func (h *held) await(do func() (int, error)) (int, error) {
	if h == nil {
		return do() // A test has none.
	}
	turn := func(change func(*held)) {
		h.conns.mu.Lock()
		defer h.conns.mu.Unlock()
		if h.conns.all[h.conn] == h {
			change(h)
		}
	}
	turn(h.conns.wait)
	defer turn(h.conns.resume)
	return do()
}

// hangUp closes a connection without a word: one of TLS would wait until the other side
// has taken the last.
func hangUp(conn net.Conn) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	_ = conn.Close()
}
