package listener

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"muster/internal/assert"
	"muster/internal/protocol"
	"muster/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type handlerFunc func(ctx context.Context, frame []byte) (*protocol.Response, error)

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f handlerFunc) Handle(ctx context.Context, _ *Client, frame []byte) (*protocol.Response, error) {
	return f(ctx, frame)
}

func start(t testing.TB, opts Options, h handlerFunc) (*Server, string) {
	t.Helper()
	return startHandler(t, opts, h, nil)
}

func startHandler(t testing.TB, opts Options, h Handler, tlsConfig *tls.Config) (*Server, string) {
	t.Helper()
	opts.Handler, opts.Logger = h, slog.New(slog.NewTextHandler(t.Output(), nil))
	if opts.MaxRequest == 0 {
		opts.MaxRequest = 1 << 20
	}
	if opts.MaxConnections == 0 {
		opts.MaxConnections = 100
	}
	if opts.MaxPerHost == 0 {
		opts.MaxPerHost = 100
	}
	s := NewServer(opts)
	addr, serve, err := s.Listen("PLAINTEXT", "127.0.0.1:0", tlsConfig, nil)
	must(t, err)
	serve()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s.Shutdown(ctx)
	})
	return s, addr.String()
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return c
}

func sendFrame(t testing.TB, c net.Conn, body []byte) {
	t.Helper()
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		t.Fatal(err)
	}
}

func readFrame(t testing.TB, c io.Reader) []byte {
	t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c, body); err != nil {
		t.Fatal(err)
	}
	return body
}

func wantClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) && errors.Is(err, os.ErrDeadlineExceeded) || n != 0 {
		t.Errorf("read %d bytes, %v", n, err)
	}
}

func bytesResponse(b []byte) *protocol.Response {
	frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
	return &protocol.Response{Parts: []protocol.Part{{Bytes: frame}}}
}

func echo(_ context.Context, frame []byte) (*protocol.Response, error) {
	return bytesResponse(bytes.Clone(frame)), nil
}

func TestFramesOfAllSizesComeBack(t *testing.T) {
	_, addr := start(t, Options{MaxRequest: 8 << 20}, echo)
	c := dial(t, addr)
	for _, n := range []int{1, 100, 4091, 4092, 4093, 70_000, 1 << 20, 1<<20 + 1, 5 << 20} {
		body := bytes.Repeat([]byte{byte(n)}, n)
		sendFrame(t, c, body)
		if got := readFrame(t, c); !bytes.Equal(got, body) {
			t.Fatalf("%d bytes came back as %d", n, len(got))
		}
	}
}

func TestResponsesKeepTheOrderOfRequestsWhenSomeArePending(t *testing.T) {
	release := make(chan *protocol.Response, 10)
	_, addr := start(t, Options{}, func(ctx context.Context, frame []byte) (*protocol.Response, error) {
		if frame[0] == 'p' {
			resp := protocol.NewPending()
			release <- resp
			return resp, nil
		}
		return echo(ctx, frame)
	})
	c := dial(t, addr)
	for _, s := range []string{"p1", "a", "p2", "b"} {
		sendFrame(t, c, []byte(s))
	}
	first, second := <-release, <-release
	body := kmsg.NewPtrHeartbeatResponse()
	second.Complete(&protocol.Request{CorrelationID: 2}, body)
	first.Complete(&protocol.Request{CorrelationID: 1}, body)
	in := bufio.NewReader(c)
	var order []byte
	for range 4 {
		f := readFrame(t, in)
		order = append(order, f[0]|f[min(3, len(f)-1)])
	}
	assert.True(t, bytes.Equal(order, []byte{1, 'a', 2, 'b'}), "order %v", order)
}

func TestRecordsInAFileArriveWhole(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MB
	name := filepath.Join(t.TempDir(), "segment")
	must(t, os.WriteFile(name, content, 0o600))
	f, err := os.Open(name)
	must(t, err)
	defer f.Close()
	released := make(chan struct{}, 1)
	_, addr := start(t, Options{}, func(context.Context, []byte) (*protocol.Response, error) {
		recs := store.FileRecords(osFile{f}, 5, len(content)-5, func() { released <- struct{}{} })
		head := binary.BigEndian.AppendUint32(nil, uint32(len(content)-5+3))
		return &protocol.Response{Parts: []protocol.Part{{Bytes: append(head, "abc"...)}, {Records: recs}}}, nil
	})
	c := dial(t, addr)
	sendFrame(t, c, []byte("x"))
	if got := readFrame(t, c); !bytes.Equal(got, append([]byte("abc"), content[5:]...)) {
		t.Errorf("got %d bytes", len(got))
	}
	<-released
}

type osFile struct{ *os.File }

func (f osFile) Fd() (uintptr, bool) { return f.File.Fd(), true }

func TestBadFramesEndTheirConnectionOnly(t *testing.T) {
	_, addr := start(t, Options{MaxRequest: 1000}, echo)
	good := dial(t, addr)
	for _, head := range [][]byte{{0xff, 0xff, 0xff, 0xff}, {0, 0, 4, 0}, {0x7f, 0xff, 0xff, 0xff}, []byte("GET "), {0x16, 3, 1, 2}} {
		bad := dial(t, addr)
		if _, err := bad.Write(head); err != nil {
			t.Fatal(err)
		}
		wantClosed(t, bad)
		sendFrame(t, good, []byte("still here"))
		assert.Equal(t, string(readFrame(t, good)), "still here")
	}
}

func TestConnectionsAboveTheLimitAreRefused(t *testing.T) {
	for name, opts := range map[string]Options{
		"max.connections": {MaxConnections: 2}, "max.connections.per.ip": {MaxPerHost: 2}, "descriptors": {KeepFree: maxDescriptors() - 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, addr := start(t, opts, echo)
			a, b := dial(t, addr), dial(t, addr)
			for _, c := range []net.Conn{a, b} {
				sendFrame(t, c, []byte("x"))
				readFrame(t, c)
			}
			wantClosed(t, dial(t, addr))
			assert.Equal(t, s.Connections(), 2, "connections")
		})
	}
}

// Connections that ended count no more, or an address could not come back in the end.
func TestAConnectionThatEndedLeavesRoomForAnotherOfItsAddress(t *testing.T) {
	s, addr := start(t, Options{MaxPerHost: 1}, echo)
	for range 3 {
		c := dial(t, addr)
		sendFrame(t, c, []byte("x"))
		readFrame(t, c)
		wantClosed(t, dial(t, addr))
		c.Close()
		waitFor(t, "the connection is gone", func() bool { return s.Connections() == 0 })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, len(s.perHost), 0, "counted without a connection: %v", s.perHost)
}

func TestLimitsOfConnectionsCanChange(t *testing.T) {
	s, addr := start(t, Options{}, echo)
	admitted := func(c net.Conn) {
		t.Helper()
		sendFrame(t, c, []byte("x"))
		readFrame(t, c)
	}
	a := dial(t, addr)
	admitted(a)
	s.SetLimits(100, 1)
	wantClosed(t, dial(t, addr))
	admitted(a)
	s.SetLimits(100, 2)
	admitted(dial(t, addr))
	s.SetLimits(2, 100)
	wantClosed(t, dial(t, addr))
	s.SetLimits(3, 100)
	admitted(dial(t, addr))
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	_, addr := start(t, Options{IdleTimeout: 2 * time.Second}, echo)
	c := dial(t, addr)
	sendFrame(t, c, []byte("x"))
	readFrame(t, c)
	wantClosed(t, c)
}

func TestAFrameThatTricklesInEndsItsConnection(t *testing.T) {
	s, addr := start(t, Options{}, echo) // Idle connections may stay.
	s.rest = 100 * time.Millisecond
	slow, idle := dial(t, addr), dial(t, addr)
	for n := 0; ; n++ {
		if _, err := slow.Write([]byte{0, 0, 1, 0, 1}[min(n, 4) : min(n, 4)+1]); err != nil {
			break // Closed, before the 256 bytes were there.
		}
		assert.MustTrue(t, n <= 4+256, "a frame may take for ever")
		<-time.After(20 * time.Millisecond)
	}
	sendFrame(t, idle, []byte("x"))
	assert.Equal(t, string(readFrame(t, idle)), "x")
}

func TestWhoLeavesAnAnswerUnreadIsIdle(t *testing.T) {
	const more = 64 << 20 // than a socket keeps
	released := make(chan struct{})
	_, addr := start(t, Options{IdleTimeout: 2 * time.Second}, func(context.Context, []byte) (*protocol.Response, error) {
		recs := store.HeldRecords(make([]byte, more), func() { close(released) })
		return &protocol.Response{Parts: []protocol.Part{{Records: recs}}}, nil
	})
	c := dial(t, addr)
	sendFrame(t, c, []byte("x"))
	<-released
	if n, _ := io.Copy(io.Discard, c); n >= more {
		t.Errorf("%d bytes came", n)
	}
}

func TestShutdownAnswersWhatIsInFlight(t *testing.T) {
	entered := make(chan struct{})
	s, addr := start(t, Options{}, func(ctx context.Context, frame []byte) (*protocol.Response, error) {
		if string(frame) == "wait" {
			close(entered)
			<-ctx.Done() // A parked fetch ends when the server drains.
		}
		return echo(ctx, frame)
	})
	idle, busy := dial(t, addr), dial(t, addr)
	sendFrame(t, idle, []byte("x"))
	readFrame(t, idle)
	sendFrame(t, busy, []byte("wait"))
	<-entered
	s.Shutdown(t.Context())
	assert.Equal(t, string(readFrame(t, busy)), "wait")
	wantClosed(t, busy)
	wantClosed(t, idle)
}

func TestAHandlersErrorEndsTheConnectionAfterEarlierAnswers(t *testing.T) {
	pending := protocol.NewPending()
	failed := make(chan struct{})
	_, addr := start(t, Options{}, func(_ context.Context, frame []byte) (*protocol.Response, error) {
		if frame[0] == 'p' {
			return pending, nil
		}
		close(failed)
		return nil, errors.New("no such thing")
	})
	c := dial(t, addr)
	sendFrame(t, c, []byte("p"))
	sendFrame(t, c, []byte("x"))
	<-failed
	pending.Complete(&protocol.Request{CorrelationID: 1}, kmsg.NewPtrHeartbeatResponse())
	if got := readFrame(t, c); got[3] != 1 {
		t.Errorf("got %v", got)
	}
	wantClosed(t, c)
}

func TestLargeFramesShareABudgetAndGiveItBack(t *testing.T) {
	b := newBudget(3 << 20)
	read := func(n int) (frame, error) {
		return b.read(bufio.NewReader(bytes.NewReader(make([]byte, n))), n, 0, &arrival{owner: "a", giveWay: func() {}})
	}
	f, err := read(2 << 20)
	assert.MustTrue(t, err == nil && b.free == 1<<20, "free %d, %v", b.free, err)
	second := make(chan error, 1)
	go func() {
		f, err := read(2 << 20)
		f.release()
		second <- err
	}()
	waitFor(t, "the second one waits", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.waiting == 1
	})
	f.release()
	if err := <-second; err != nil || b.free != 3<<20 {
		t.Errorf("a second large frame: %v; free %d after release", err, b.free)
	}
	if _, err := b.read(bufio.NewReader(bytes.NewReader(make([]byte, 10))), 1<<20, 1<<20, &arrival{}); !errors.Is(err, io.ErrUnexpectedEOF) || b.free != 3<<20 {
		t.Errorf("a frame cut short: %v, free %d", err, b.free)
	}
}
