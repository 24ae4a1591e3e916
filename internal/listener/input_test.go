package listener

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"muster/internal/assert"
)

// connected returns both ends of a connection.
func connected(t *testing.T) (here, there *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	near, err := l.Accept()
	must(t, err)
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near.(*net.TCPConn), far.(*net.TCPConn)
}

func TestAnInputHasABufferOnlyForWhatIsInIt(t *testing.T) {
	if !canTry {
		t.Skip("here it has one while it waits")
	}
	here, there := connected(t)
	var in input
	in.init(here, here)
	for _, sent := range [][]byte{[]byte("0123456789"), bytes.Repeat([]byte("x"), 3*inputSize)} {
		assert.MustTrue(t, in.buffer == nil, "there is a buffer before there is something in it")
		if _, err := there.Write(sent); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(&in, got[:4]); err != nil || in.Buffered() == 0 || in.buffer == nil {
			t.Fatalf("%v, %d bytes are there", err, in.Buffered())
		}
		if _, err := io.ReadFull(&in, got[4:]); err != nil || !bytes.Equal(got, sent) || in.Buffered() > 0 {
			t.Fatalf("%v, got %q, and %d more", err, got, in.Buffered())
		}
	}
	_ = here.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, err := in.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) || in.buffer != nil {
		t.Errorf("after a wait: %v, buffer %v", err, in.buffer != nil)
	}
	_ = here.SetReadDeadline(time.Time{})
	there.Close()
	if _, err := in.Read(make([]byte, 4)); !errors.Is(err, io.EOF) || in.buffer != nil {
		t.Errorf("at the end: %v, buffer %v", err, in.buffer != nil)
	}
}

func TestAnInputTellsThatTheConnectionBroke(t *testing.T) {
	here, there := connected(t)
	var in input
	in.init(here, here)
	resetOnClose(there)
	there.Close()
	var broke *net.OpError
	if _, err := in.Read(make([]byte, 4)); !errors.As(err, &broke) {
		t.Errorf("got %v", err)
	}
}
