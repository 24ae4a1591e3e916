package peer

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The pause after a connection that could not be opened, which doubles each time.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = time.Second
)

// link is the way to a node for one kind of request. It opens connections when it
// needs them: a broker answers the requests of one in their order, and a request that
// takes long would hold up those behind it.
type link struct {
	c    *Client
	to   lane
	free chan struct{} // has an element for each request that may be under way
	turn chan struct{} // held by whoever looks at what follows

	conns  []*conn
	pause  time.Duration
	notYet time.Time // before which no one tries again
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
	defer conn.users.Add(-1)
	return conn.do(ctx, req)
}

// get returns a connection for one request: one that no one uses, a new one, or that
// with the fewest users if there are enough.
func (l *link) get(ctx context.Context) (*conn, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	to, err := l.c.address(l.to.node)
	if err != nil {
		return nil, err
	}
	if l.closed {
		return nil, errClosed
	}
	login := l.c.login()
	l.conns = slices.DeleteFunc(l.conns, func(c *conn) bool {
		switch {
		case c.to != to:
			c.end(errMoved)
		case c.login != login && c.users.Load() == 0:
			c.end(errIdle)
		}
		return c.ended()
	})
	best := l.leastUsed(login)
	if best == nil || best.users.Load() > 0 && len(l.conns) < maxConns && !time.Now().Before(l.notYet) {
		if best, err = l.another(ctx, to, best); err != nil {
			return nil, err
		}
	}
	best.users.Add(1)
	return best, nil
}

// leastUsed returns the connection with the fewest requests under way, nil if there is
// none. Those that logged in by a secret that was rotated since end with the requests that
// they have.
func (l *link) leastUsed(login Login) (best *conn) {
	for _, c := range l.conns {
		if c.login != login {
			continue
		}
		if best == nil || c.users.Load() < best.users.Load() {
			best = c
		}
	}
	return best
}

// another opens a connection. If that fails, as it does where the other allows no more
// of them, the one that there is must do.
func (l *link) another(ctx context.Context, to address, has *conn) (*conn, error) {
	if err := wait(ctx, l.notYet); err != nil {
		return nil, err
	}
	conn, err := l.open(ctx, to)
	if err != nil {
		l.pause = min(max(2*l.pause, firstPause), lastPause)
		l.notYet = time.Now().Add(l.pause)
		if has != nil && !has.ended() {
			return has, nil
		}
		return nil, err
	}
	l.conns, l.pause = append(l.conns, conn), 0
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
	if l.c.opts.TLS != nil {
		cfg := l.c.opts.TLS().Clone()
		cfg.ServerName = to.host
		over := tls.Client(socket, cfg)
		if err := over.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, err
		}
		socket = over
	}
	return newConn(ctx, socket, to, l.to.key, l.c.login(), &l.c.opts)
}

// close ends the connection, and there is none afterwards.
func (l *link) close() {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	l.closed = true
	for _, c := range l.conns {
		c.end(errClosed)
	}
}
