package listener

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
	"muster/internal/logintest"
	"muster/internal/protocol"
)

// certified makes a certificate for a test's listener.
func certified(t *testing.T) *tls.Config {
	t.Helper()
	a, err := logintest.NewAuthority()
	must(t, err)
	own, err := a.Issue("listener")
	must(t, err)
	return &tls.Config{Certificates: []tls.Certificate{own}}
}

// parker is a handler that parks the requests that say so, until it is told to
// go on or the context ends.
type parker struct {
	bytes   int // that a request keeps while it waits
	served  atomic.Int32
	parked  chan *conn
	goOn    chan struct{}
	ended   chan error
	refused chan struct{}
}

func newParker() *parker {
	return &parker{parked: make(chan *conn), goOn: make(chan struct{}), ended: make(chan error, 100), refused: make(chan struct{}, 100)}
}

func (p *parker) Handle(ctx context.Context, c *Client, frame []byte) (*protocol.Response, error) {
	p.served.Add(1)
	if !bytes.HasPrefix(frame, []byte("park")) {
		return echo(ctx, frame)
	}
	body := bytes.Clone(frame)
	parked, done, ok := c.Park(ctx, p.bytes)
	if !ok {
		p.refused <- struct{}{}
		return echo(ctx, body)
	}
	defer done()
	select {
	case p.parked <- c.conn:
	case <-ctx.Done():
	}
	select {
	case <-p.goOn:
	case <-parked.Done():
		p.ended <- parked.Err()
	}
	return echo(ctx, body)
}

// waitFor waits for something that other goroutines bring about.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); {
		assert.MustFalse(t, time.Now().After(deadline), "%s: not within 20 s", what)
		<-time.After(time.Millisecond)
	}
}

func TestARequestThatWaitsEndsWithItsClient(t *testing.T) {
	for _, secure := range []bool{false, true} {
		for name, behind := range map[string]int{"alone": 0, "with a request behind it": 10, "with more behind it than is buffered": 20_000} {
			p := newParker()
			s, addr := startHandler(t, Options{}, p, map[bool]*tls.Config{true: certified(t)}[secure])
			var c net.Conn = dial(t, addr)
			if secure {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is this test's own.
			}
			sendFrame(t, c, []byte("park"))
			<-p.parked
			if behind > 0 {
				sendFrame(t, c, make([]byte, behind))
			}
			c.Close()
			assert.Error(t, (<-p.ended), "%s: the context ended without error", name)
			waitFor(t, name+": the connection is closed", func() bool { return s.Connections() == 0 })
			assert.Equal(t, p.served.Load(), 1, "%s: requests of a client that has gone were handled", name)
		}
	}
}

func TestAConnectionIsLookedAtUntilTheWaitIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, hungUp := 0, make(chan struct{})
		w := &watch{gone: func() bool { looks++; return looks == 3 }, hungUp: func() { close(hungUp) }}
		w.start()
		began := time.Now()
		<-hungUp
		assert.Equal(t, time.Since(began), 3*lookEvery, "noticed after")
		w.stop()

		looks, w = -100, &watch{gone: w.gone, hungUp: w.hungUp}
		w.start()
		time.Sleep(2*lookEvery + lookEvery/2) // In synctest's time.
		w.stop()
		time.Sleep(10 * lookEvery)
		assert.Equal(t, looks, -98, "looked %d times in a wait of two and a half intervals", looks+100)
	})
}

func TestRequestsBehindOneThatWaitsAreAnsweredInOrder(t *testing.T) {
	p := newParker()
	_, addr := startHandler(t, Options{}, p, nil)
	c := dial(t, addr)
	sendFrame(t, c, []byte("park"))
	conn := <-p.parked
	large := bytes.Repeat([]byte("x"), 100_000)
	for _, body := range [][]byte{[]byte("a"), large, []byte("b")} {
		sendFrame(t, c, body)
	}
	assert.False(t, conn.hungUp(), "a client that sends on is taken for gone")
	p.goOn <- struct{}{}
	for _, want := range [][]byte{[]byte("park"), []byte("a"), large, []byte("b")} {
		if got := readFrame(t, c); !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, %.10q, want %.10q", len(got), got, want)
		}
	}
}

func TestARequestThatWaitsLeavesTheBudgetOfThoseThatAreRead(t *testing.T) {
	p := newParker()
	p.bytes = 1 << 20
	s, addr := startHandler(t, Options{MaxRequest: 2 << 20}, p, nil)
	s.budget = newBudget(2 << 20)
	s.parked = newBudget(3 << 20)
	body := append([]byte("park"), make([]byte, 1<<20)...)
	var conns []net.Conn
	for range 3 { // More than the budget of requests that are read.
		c := dial(t, addr)
		conns = append(conns, c)
		sendFrame(t, c, body)
		<-p.parked
	}
	if s.budget.free != s.budget.total || s.parked.free != 0 {
		t.Errorf("free: %d for requests that are read, %d for those that wait", s.budget.free, s.parked.free)
	}
	late := dial(t, addr)
	sendFrame(t, late, body)
	<-p.refused
	if got := readFrame(t, late); !bytes.Equal(got, body) {
		t.Errorf("who may not wait got %d bytes", len(got))
	}
	for range conns {
		p.goOn <- struct{}{}
	}
	for _, c := range conns {
		readFrame(t, c)
	}
	assert.Equal(t, s.parked.free, s.parked.total, "bytes free for requests that wait, after all")
}

func TestNoRequestHoldsWhatOthersHave(t *testing.T) {
	b := newBudget(holdShare << 20)
	c := &conn{frame: frame{budget: b}}
	c.client.conn = c
	b.takeMore(3<<20 + 1)
	assert.False(t, c.client.Hold(1<<20), "there was room for more than there is")
	assert.True(t, c.client.Hold(1<<20-1) && b.free == 0, "there was no room, with %d bytes free", b.free)
	c.frame.uncount()
	assert.Equal(t, b.free, 1<<20-1, "bytes free in the end")
}

func TestWhatARequestHoldsCountsUntilItIsHandled(t *testing.T) {
	held := make(chan bool, 1)
	s, addr := startHandler(t, Options{}, clientFunc(func(ctx context.Context, c *Client, frame []byte) (*protocol.Response, error) {
		resp, err := echo(ctx, frame)
		if resp.Parts[0].Bytes[4] == 'r' {
			c.Release()
			held <- c.conn.server.budget.free == c.conn.server.budget.total
			return resp, err
		}
		held <- c.Hold(1<<20) && c.Hold(freeFrame) && !c.Hold(1<<20) && c.conn.server.budget.free < 3<<20
		return resp, err
	}), nil)
	s.budget = newBudget(holdShare << 20)
	c := dial(t, addr)
	for _, kind := range []string{"h", "r"} {
		sendFrame(t, c, bytes.Repeat([]byte(kind), 100_000))
		assert.True(t, <-held, "the budget is not kept")
		readFrame(t, c)
		assert.True(t, s.budget.free == s.budget.total, "%d of %d bytes free after the request", s.budget.free, s.budget.total)
	}
}

type clientFunc func(context.Context, *Client, []byte) (*protocol.Response, error)

func (f clientFunc) Handle(ctx context.Context, c *Client, frame []byte) (*protocol.Response, error) {
	return f(ctx, c, frame)
}

// BenchmarkAnswerAtOnce is the way of a request that no one waits for.
func BenchmarkAnswerAtOnce(b *testing.B) {
	benchmarkRoundTrips(b, handlerFunc(echo))
}

func benchmarkRoundTrips(b *testing.B, h Handler) {
	_, addr := startHandler(b, Options{}, h, nil)
	c := dial(b, addr)
	body := make([]byte, 100)
	for b.Loop() {
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		sendFrame(b, c, body)
		readFrame(b, c)
	}
}
