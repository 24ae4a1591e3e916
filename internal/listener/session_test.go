package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// door lets connections in under names, with a limit until their first frame.
type door struct {
	patience time.Duration // for a login; 0 for the usual
	err      error
	entered  chan *tls.ConnectionState
	failed   atomic.Int32
}

func (d *door) Failed(*Client, error) { d.failed.Add(1) }

type guest struct{ limit int }

func (g *guest) Limit() int { return g.limit }

func (g *guest) User() string {
	if g.limit > 0 {
		return ""
	}
	return "User:guest"
}

func (d *door) Enter(_ *Client, state *tls.ConnectionState) (Session, error) {
	d.entered <- state
	return &guest{limit: 100}, d.err
}

// host answers "last" as the last answer of a connection; any other lifts the limit.
type host struct{ budgets chan *budget }

func (h host) Handle(_ context.Context, c *Client, frame []byte) (*protocol.Response, error) {
	resp := protocol.Bare(frame)
	if string(frame) == "last" {
		resp.EndAfter(errors.New("the test says so"))
	}
	h.budgets <- c.conn.frame.budget
	c.Session.(*guest).limit = 0
	return resp, nil
}

func startGate(t *testing.T, d *door) (*Server, host, string) {
	t.Helper()
	h := host{make(chan *budget, 10)}
	s := NewServer(Options{Handler: h, Logger: slog.New(slog.DiscardHandler), MaxRequest: 1000, MaxConnections: 10, MaxPerHost: 10, login: d.patience})
	addr, serve, err := s.Listen("L", "127.0.0.1:0", nil, d)
	must(t, err)
	serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return s, h, addr.String()
}

// ended says whether the server has ended the connection.
func ended(c io.Reader) bool {
	n, err := c.Read(make([]byte, 1))
	return n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestASessionLimitsFramesAndEndsItsConnection(t *testing.T) {
	d := &door{entered: make(chan *tls.ConnectionState, 10)}
	s, h, addr := startGate(t, d)
	c := dial(t, addr)
	sendFrame(t, c, make([]byte, 101))
	assert.True(t, ended(c), "a frame above the limit of the session is answered")
	c = dial(t, addr)
	for _, size := range []int{100, 101, 1000} { // The first one lifts the limit.
		sendFrame(t, c, make([]byte, size))
		if _, err := io.ReadFull(c, make([]byte, 4+size)); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
	}
	for i, want := range []*budget{s.beforeLogin, s.budget, s.budget} {
		assert.Equal(t, <-h.budgets, want, "frame %d counts against another budget", i)
	}
	sendFrame(t, c, make([]byte, 1001))
	assert.True(t, ended(c), "a frame above the limit of all is answered")
	c = dial(t, addr)
	sendFrame(t, c, []byte("last"))
	if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
		t.Fatalf("the last answer: %v", err)
	}
	assert.True(t, ended(c), "the connection goes on after its last answer")
}

func TestWhoTheGateRefusesIsNotServed(t *testing.T) {
	d := &door{err: errors.New("not you"), entered: make(chan *tls.ConnectionState, 10)}
	_, _, addr := startGate(t, d)
	c := dial(t, addr)
	assert.True(t, ended(c), "a connection that the gate refuses is served")
	if state := <-d.entered; state != nil {
		t.Errorf("without TLS there is %+v", state)
	}
}

func TestAHandshakeThatDoesNotComeEndsTheConnection(t *testing.T) {
	_, addr := startHandler(t, Options{login: 50 * time.Millisecond}, handlerFunc(echo), certified(t))
	silent := dial(t, addr)
	if !ended(silent) { // Long before it may no longer be idle.
		t.Error("a client that never speaks is kept")
	}
	_, addr = startHandler(t, Options{}, handlerFunc(echo), certified(t))
	c := tls.Client(dial(t, addr), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is this test's own.
	sendFrame(t, c, []byte("x"))
	assert.Equal(t, string(readFrame(t, c)), "x")
}

func TestALoginThatDoesNotComeEndsTheConnection(t *testing.T) {
	_, _, addr := startGate(t, &door{entered: make(chan *tls.ConnectionState, 10), patience: 50 * time.Millisecond})
	assert.True(t, ended(dial(t, addr)), "a client that does not log in is kept")
	_, h, addr := startGate(t, &door{entered: make(chan *tls.ConnectionState, 10)})
	c := dial(t, addr)
	sendFrame(t, c, []byte("in")) // It is logged in by this.
	readFrame(t, c)
	<-h.budgets
}

// counting answers how many frames the connection has sent before.
type counting struct{}

func (counting) Handle(_ context.Context, c *Client, _ []byte) (*protocol.Response, error) {
	place := c.Place()
	n, _ := (*place).(byte)
	*place = n + 1
	return protocol.Bare([]byte{n}), nil
}

func TestWhatIsKeptForAConnectionIsItsOwn(t *testing.T) {
	s := NewServer(Options{Handler: counting{}, Logger: slog.New(slog.DiscardHandler), MaxRequest: 1000, MaxConnections: 10, MaxPerHost: 10})
	addr, serve, err := s.Listen("L", "127.0.0.1:0", nil, nil)
	must(t, err)
	serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	one, other := dial(t, addr.String()), dial(t, addr.String())
	for want := range byte(3) {
		for _, c := range []net.Conn{one, other} {
			sendFrame(t, c, []byte("frame"))
			var answer [5]byte
			if _, err := io.ReadFull(c, answer[:]); err != nil || answer[4] != want {
				t.Errorf("%v, %v, want %d", answer, err, want)
			}
		}
	}
}

// ending tells of the end of a connection that sent something.
type ending chan string

func (e ending) Handle(_ context.Context, c *Client, frame []byte) (*protocol.Response, error) {
	*c.Place() = endingPlace{e, string(frame)}
	return protocol.Bare([]byte("x")), nil
}

type endingPlace struct {
	told ending
	what string
}

func (p endingPlace) Ended() { p.told <- p.what }

func TestWhatIsKeptForAConnectionHearsOfItsEnd(t *testing.T) {
	told := make(ending, 10)
	s := NewServer(Options{Handler: told, Logger: slog.New(slog.DiscardHandler), MaxRequest: 1000, MaxConnections: 10, MaxPerHost: 10})
	addr, serve, err := s.Listen("L", "127.0.0.1:0", nil, nil)
	must(t, err)
	serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	silent, c := dial(t, addr.String()), dial(t, addr.String())
	sendFrame(t, c, []byte("frame"))
	readFrame(t, c)
	must(t, silent.Close())
	must(t, c.Close())
	assert.Equal(t, <-told, "frame")
	assert.Equal(t, len(told), 0, "ends of which one was told")
}
