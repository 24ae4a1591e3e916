// Package peer sends requests to the other brokers of the cluster, over the
// listener that clients use as well, and to this broker itself without a network.
//
//	coordinators ─ Do ──┬─ this broker: its handler, called directly
//	partitions ─── Ask ─┘  others: some connections for each node and kind of request
//
// A connection is opened when there is something to send and closed when there
// has been nothing for a while. Requests on it are pipelined, and answered in
// order; so each has one for itself, up to maxConns, and questions, which are short,
// never share one with markers, which wait for disks. A request names the secret of the cluster where that matters
// (protocol.TagSecret): a broker believes only its like.
//
// Nothing here tries a request again: that is for those to decide who know what
// it means. Each request ends within a time limit, however silent the other is.
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
	// idleAfter is how long a connection is kept that nobody uses.
	idleAfter = time.Minute
)

// Options of a client.
type Options struct {
	Self int32 // node id of this broker
	// Image returns the newest metadata, nil before there is any.
	Image func() *metadata.Image
	// Own has this broker's handler answer a request of its own.
	Own func(ctx context.Context, req kmsg.Request) (kmsg.Response, error)
	// Listener is the name of the one by which brokers reach each other, and TLS
	// how, asked for each connection; nil for plain text.
	Listener string
	TLS      func() *tls.Config
	Logger   *slog.Logger
	// Timeout bounds a request, and Idle is how long a connection is kept that
	// nobody uses; requestTimeout and idleAfter if they are zero.
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

// Do has a broker handle a request and returns its answer. The request is not
// changed.
func (c *Client) Do(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	do := c.other
	if node == c.opts.Self || node == machine.Self {
		do = c.own
	}
	resp, err := do(ctx, node, req)
	switch {
	case err == nil:
		return resp, nil
	case c.ctx.Err() != nil:
		err = errClosed
	}
	return nil, fmt.Errorf("%s to broker %d: %w", kmsg.NameForKey(req.Key()), node, err)
}

// other has another broker handle a request.
func (c *Client) other(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	l, err := c.link(lane{node, req.Key()})
	if err != nil {
		return nil, err
	}
	return l.do(ctx, req)
}

// own has this broker handle a request, and waits for it no longer than for others.
// It may be busy with the end of the very shard that asks, and the handler wait for
// a lock that whoever ends the shard holds.
func (c *Client) own(ctx context.Context, _ int32, req kmsg.Request) (kmsg.Response, error) {
	type outcome struct {
		resp kmsg.Response
		err  error
	}
	done := make(chan outcome, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errClosed
	}
	c.owned.Go(func() {
		resp, err := c.opts.Own(ctx, req)
		done <- outcome{resp, err}
	})
	c.mu.Unlock()
	select {
	case o := <-done:
		return o.resp, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// secret is what brokers of the cluster know each other by.
func (c *Client) secret() string {
	if image := c.opts.Image(); image != nil {
		return image.Secret
	}
	return ""
}
