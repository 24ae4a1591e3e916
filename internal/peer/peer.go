// Package peer sends requests to the other brokers of the cluster, over the
// listener that clients use as well, and to this broker itself without a network.
//
//	coordinators ─ Send ───────┬─ this broker: its handler, called directly
//	partitions ─── Ask ────────┤  others: some connections for each node and kind of request
//	share groups ─ ShareState ─┘
//
// A connection is opened when there is something to send and closed when there
// has been nothing for a while. Requests on it are pipelined, and answered in
// order; so each has one for itself, up to maxConns, and questions, which are short,
// never share one with markers, which wait for disks. On each connection the broker logs
// in first (login.go), also where clients need not: a broker believes only its like.
//
// Nothing here tries a request again, ShareState aside: that is for those to decide who know
// what it means. Each request ends within a time limit, however silent the other is.
package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
)

const (
	// requestTimeout bounds every request.
	requestTimeout = 10 * time.Second
	// maxInFlight is how many requests of one kind may be under way to a node; more of
	// them wait their turn.
	maxInFlight = 128
	// maxConns is how many connections they have. Only if there are more requests
	// than that does one wait behind another.
	maxConns = 16
	// idleAfter is how long a connection is kept that no one uses.
	idleAfter = time.Minute
)

// Options of a client.
type Options struct {
	Self int32 // node id of this broker
	// Image returns the newest metadata, nil before there is any.
	Image func() *metadata.Image
	// Own has this broker's handler answer a request of its own.
	Own func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	// CreateTopic creates an internal topic; that there is one already is no error. Nil if
	// none is ever needed.
	CreateTopic func(ctx context.Context, name string) error
	// Listener is the name of the one by which brokers reach each other, and TLS
	// how, asked for each connection; nil for plain text.
	Listener string
	TLS      func() *tls.Config
	// Login is how this broker logs in there, asked for each request; nil for not at all,
	// as in tests.
	Login  func() Login
	Logger *slog.Logger
	// Timeout bounds a request, and Idle is how long a connection is kept that
	// no one uses; requestTimeout and idleAfter if they are zero.
	Timeout, Idle time.Duration
}

// Client sends requests to brokers.
type Client struct {
	opts Options
	asks asks

	ctx    context.Context // ends when the client is closed
	cancel context.CancelFunc

	mu     sync.Mutex
	links  map[lane]*link
	owned  sync.WaitGroup // requests that this broker itself handles
	closed bool

	// shareWarned is when it was last logged that share groups have no topic, in nanoseconds.
	shareWarned atomic.Int64
}

// lane is what has connections of its own: a node and an API key.
type lane struct {
	node int32
	key  int16
}

// New returns a client without connections.
func New(opts Options) *Client {
	if opts.Timeout == 0 {
		opts.Timeout = requestTimeout
	}
	if opts.Idle == 0 {
		opts.Idle = idleAfter
	}
	c := &Client{opts: opts, links: map[lane]*link{}, asks: asks{nodes: map[int32]*asking{}}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

var (
	errClosed = errors.New("the broker is closing")
	// errUnknown says that a node is none of the cluster now.
	errUnknown = errors.New("no such broker is alive")
)

// Do has a broker handle a request and returns its answer.
func (c *Client) Do(ctx context.Context, node int32, req kmsg.Request) (resp kmsg.Response, err error) {
	answered := make(chan struct{})
	go c.Send(ctx, node, req, func(r kmsg.Response, e error) {
		resp, err = r, e
		close(answered)
	})
	<-answered
	return resp, err
}

// Send has a broker handle a request and calls done, once, with its answer: while it
// waits for that, or when the time is over or ctx has ended. It may go on for longer,
// so callers have a goroutine for it. The request belongs to whoever handles it.
func (c *Client) Send(ctx context.Context, node int32, req kmsg.Request, done func(kmsg.Response, error)) {
	c.send(ctx, node, req, func(resp kmsg.Response, err error, _ bool) { done(resp, err) })
}

// send is Send that tells done whether another goroutine calls it than the one that
// sends, which is busy still.
func (c *Client) send(ctx context.Context, node int32, req kmsg.Request, done func(resp kmsg.Response, err error, apart bool)) {
	theirs := ctx
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	if theirs != c.ctx {
		defer context.AfterFunc(c.ctx, cancel)()
	}
	if node == machine.ShareCoordinator {
		done(c.ShareState(ctx, req), nil, false)
		return
	}
	if node != c.opts.Self && node != machine.Self {
		resp, err := c.other(ctx, node, req)
		done(resp, c.explain(node, req, err), false)
		return
	}
	// This broker may be busy with the end of the very shard that asks, and its
	// handler wait for a lock that whoever ends the shard holds. So no one waits for
	// it for longer than for others.
	var told atomic.Bool
	defer context.AfterFunc(ctx, func() {
		if !told.Swap(true) {
			done(nil, c.explain(node, req, ctx.Err()), true)
		}
	})()
	resp, err := c.own(ctx, req)
	if !told.Swap(true) {
		done(resp, c.explain(node, req, err), false)
	}
}

// explain says what an error is about.
func (c *Client) explain(node int32, req kmsg.Request, err error) error {
	switch {
	case err == nil:
		return nil
	case c.ctx.Err() != nil:
		err = errClosed
	}
	return fmt.Errorf("%s to broker %d: %w", kmsg.NameForKey(req.Key()), node, err)
}

// other has another broker handle a request.
func (c *Client) other(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	l, err := c.link(lane{node, req.Key()})
	if err != nil {
		return nil, err
	}
	return l.do(ctx, req)
}

// own has this broker handle a request.
func (c *Client) own(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.owned.Add(1)
	c.mu.Unlock()
	defer c.owned.Done()
	return c.opts.Own(ctx, req)
}

// Close closes all connections. Requests under way fail, and this broker handles
// none of them any more.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	links := c.links
	c.links = nil
	c.mu.Unlock()
	c.cancel()
	for _, l := range links {
		l.close()
	}
	c.owned.Wait()
}

func (c *Client) link(to lane) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	l := c.links[to]
	if l == nil {
		l = newLink(c, to)
		c.links[to] = l
	}
	return l, nil
}

// address is where a broker listens for its like.
type address struct {
	host, hostPort string
	// incarnation tells a broker from what it was before it was started again.
	incarnation string
}

func (c *Client) address(node int32) (address, error) {
	image := c.opts.Image()
	if image == nil {
		return address{}, errUnknown
	}
	b := image.Broker(node)
	if b == nil {
		return address{}, errUnknown
	}
	e, ok := b.Endpoint(c.opts.Listener)
	if !ok {
		return address{}, fmt.Errorf("it has no listener named %q (inter.broker.listener.name)", c.opts.Listener)
	}
	return address{e.Host, net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port))), b.Incarnation}, nil
}
