package peer

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The pause after a connection that could not be opened, which doubles each time.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// link is the way to a node for one kind of request. It opens a connection when
// it needs one.
type link struct {
	c    *Client
	to   lane
	free chan struct{} // has an element for each request that may be under way
	turn chan struct{} // held by whoever looks at what follows

	conn   *conn
	pause  time.Duration
	notYet time.Time // before which nobody tries again
	closed bool
}

func newLink(c *Client, to lane) *link {
	l := &link{c: c, to: to, free: make(chan struct{}, maxInFlight), turn: make(chan struct{}, 1)}
	for range maxInFlight {
		l.free <- struct{}{}
	}
	return l
}

// do sends a request and waits for the answer.
func (l *link) do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	select {
	case <-l.free:
		defer func() { l.free <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return conn.do(ctx, req, l.c.secret())
}

// get returns the connection, a new one if there is none that works.
func (l *link) get(ctx context.Context) (*conn, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	to, err := l.c.address(l.to.node)
	switch {
	case err != nil:
		return nil, err
	case l.closed:
		return nil, errClosed
	case l.conn != nil && l.conn.to == to && !l.conn.ended():
		return l.conn, nil
	case l.conn != nil:
		l.conn.end(errMoved)
		l.conn = nil
	}
	if err := wait(ctx, l.notYet); err != nil {
		return nil, err
	}
	conn, err := l.open(ctx, to)
	if err != nil {
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.notYet = time.Now().Add(l.pause)
		return nil, err
	}
	l.conn, l.pause = conn, 0
	return conn, nil
}

// wait waits until a time.
func wait(ctx context.Context, until time.Time) error {
	left := time.Until(until)
	if left <= 0 {
		return nil
	}
	t := time.NewTimer(left)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// open opens a connection and asks which versions the broker serves.
func (l *link) open(ctx context.Context, to address) (*conn, error) {
	var dialer net.Dialer
	socket, err := dialer.DialContext(ctx, "tcp", to.hostPort)
	if err != nil {
		return nil, err
	}
	if cfg := l.c.opts.TLS; cfg != nil {
		cfg = cfg.Clone()
		cfg.ServerName = to.host
		over := tls.Client(socket, cfg)
		if err := over.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, err
		}
		socket = over
	}
	return newConn(ctx, socket, to, &l.c.opts)
}

// close ends the connection, and there is none afterwards.
func (l *link) close() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.closed = true
	if l.conn != nil {
		l.conn.end(errClosed)
	}
}
