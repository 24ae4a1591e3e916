package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// startLast starts a server whose every answer is a connection's last.
func startLast(t *testing.T, config *tls.Config) (*Server, string) {
	t.Helper()
	return startHandler(t, Options{}, handlerFunc(func(context.Context, []byte) (*protocol.Response, error) {
		resp := bytesResponse([]byte("the last"))
		resp.EndAfter(errors.New("the test says so"))
		return resp, nil
	}), config)
}

// A client that does not wait for answers is told of the last one, and then of the end,
// whatever it has sent besides.
func TestTheLastAnswerReachesWhoSentMore(t *testing.T) {
	for name, config := range map[string]*tls.Config{"plain text": nil, "TLS": certified(t)} {
		s, addr := startLast(t, config)
		s.patience = time.Hour
		c := dial(t, addr)
		if config != nil {
			c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is this test's own.
		}
		more := append([]byte{0, 0, 0, 1, 'x'}, make([]byte, maxLinger/2)...)
		if _, err := c.Write(more); err != nil {
			t.Fatal(err)
		}
		assert.Equal(t, string(readFrame(t, c)), "the last", "%s", name)
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: after the last answer: %v", name, err)
		}
	}
}

// gone waits until a server has no connections.
func gone(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for s.Connections() > 0 {
		assert.Must(t, ctx.Err(), "the connection stays")
		runtime.Gosched()
	}
}

func TestAConnectionDoesNotLingerForEver(t *testing.T) {
	s, addr := startLast(t, nil)
	last := func() net.Conn {
		c := dial(t, addr)
		sendFrame(t, c, []byte("x"))
		readFrame(t, c)
		return c
	}
	last() // It sends nothing, and does not close.
	gone(t, s)

	s.patience = time.Hour
	c := last()
	for sent, err := 0, error(nil); err == nil; { // It sends without end.
		var n int
		n, err = c.Write(make([]byte, 64<<10))
		if sent += n; sent > 100*maxLinger {
			t.Fatal("all of it is taken")
		}
	}
	gone(t, s)

	c = last()
	c.Close()
	gone(t, s)

	last()
	s.Shutdown(t.Context()) // It does not wait.
	gone(t, s)
}

// The gate hears of clients that TLS turns away.
func TestTheGateHearsOfFailedHandshakes(t *testing.T) {
	d := &door{entered: make(chan *tls.ConnectionState, 10)}
	s := NewServer(Options{Handler: host{make(chan *budget, 1)}, Logger: slog.New(slog.DiscardHandler), MaxRequest: 1000, MaxConnections: 10, MaxPerHost: 10})
	addr, serve, err := s.Listen("L", "127.0.0.1:0", certified(t), d)
	must(t, err)
	serve()
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	c := dial(t, addr.String())
	if _, err := c.Write([]byte("this is no TLS")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c)
	gone(t, s)
	if n := d.failed.Load(); n != 1 || len(d.entered) > 0 {
		t.Errorf("it heard of %d failures, and let in %d", n, len(d.entered))
	}
	trusting := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // The certificate is this test's own.
	must(t, tls.Client(dial(t, addr.String()), trusting).HandshakeContext(t.Context()))
	if state := <-d.entered; state == nil || d.failed.Load() != 1 {
		t.Errorf("a good client: %v, and %d failures", state, d.failed.Load())
	}
}

// A last answer that is given while the server shuts down does not make it wait.
func TestAServerThatShutsDownDoesNotLinger(t *testing.T) {
	entered := make(chan struct{})
	s, addr := start(t, Options{}, func(ctx context.Context, _ []byte) (*protocol.Response, error) {
		close(entered)
		<-ctx.Done()
		resp := bytesResponse([]byte("the last"))
		resp.EndAfter(errors.New("the test says so"))
		return resp, nil
	})
	s.patience = time.Hour
	c := dial(t, addr)
	sendFrame(t, c, []byte("x"))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.Shutdown(ctx)
	assert.NoError(t, ctx.Err(), "it waits for the client")
	assert.Equal(t, string(readFrame(t, c)), "the last")
}
