package interop

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// wireTimeout bounds the wait for one answer.
const wireTimeout = 30 * time.Second

// wire is a connection on which a test writes its own requests, of the versions
// it wants, and sees every answer.
type wire struct {
	net.Conn
	t       testing.TB
	format  *kmsg.RequestFormatter
	nextID  int32
	pending []pendingRequest
}

type pendingRequest struct {
	id   int32
	resp kmsg.Response
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func dial(t testing.TB, addr string) *wire {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, wireTimeout)
	must(t, err)
	return newWire(t, c)
}

func newWire(t testing.TB, c net.Conn) *wire {
	t.Cleanup(func() { c.Close() })
	return &wire{Conn: c, t: t, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("interop"))}
}

// send writes a request at the version set in it, and expects an answer.
func (w *wire) send(req kmsg.Request) {
	w.t.Helper()
	w.pending = append(w.pending, pendingRequest{w.sendOnly(req), req.ResponseKind()})
}

// sendOnly writes a request that is not answered, and returns its correlation
// id.
func (w *wire) sendOnly(req kmsg.Request) int32 {
	w.t.Helper()
	w.nextID++
	if _, err := w.Write(w.format.AppendRequest(nil, req, w.nextID)); err != nil {
		w.t.Fatalf("send %s: %v", kmsg.NameForKey(req.Key()), err)
	}
	return w.nextID
}

// receive reads the answer to the oldest request that is not yet answered.
func (w *wire) receive() kmsg.Response {
	w.t.Helper()
	p := w.pending[0]
	w.pending = w.pending[1:]
	name := kmsg.NameForKey(p.resp.Key())
	frame, err := w.frame()
	assert.Must(w.t, err, "receive %s", name)
	body, err := openResponse(frame, p.id, p.resp)
	if err == nil {
		err = p.resp.ReadFrom(body)
	}
	if err != nil {
		w.t.Fatalf("receive %s v%d: %v", name, p.resp.GetVersion(), err)
	}
	return p.resp
}

// openResponse checks a response's header and returns its body.
func openResponse(frame []byte, id int32, resp kmsg.Response) ([]byte, error) {
	if len(frame) < 4 {
		return nil, fmt.Errorf("a response of %d bytes", len(frame))
	}
	if got := int32(binary.BigEndian.Uint32(frame)); got != id {
		return nil, fmt.Errorf("correlation id %d, want %d", got, id)
	}
	body := frame[4:]
	// ApiVersions has the old header for ever, so that every client can read it.
	if resp.IsFlexible() && resp.Key() != kmsg.ApiVersions.Int16() {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("no empty tag section in the response header")
		}
		body = body[1:]
	}
	return body, nil
}

// frame reads one frame.
func (w *wire) frame() ([]byte, error) {
	if err := w.SetReadDeadline(time.Now().Add(wireTimeout)); err != nil {
		return nil, err
	}
	var head [4]byte
	if _, err := io.ReadFull(w, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(w, frame)
	return frame, err
}

// wantClosed checks that the broker closes the connection without another word.
func (w *wire) wantClosed() {
	w.t.Helper()
	if frame, err := w.frame(); err == nil {
		w.t.Fatalf("the broker answered with %d bytes instead of closing the connection", len(frame))
	} else if errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatalf("the broker did not close the connection: %v", err)
	}
}

// ask sends a request and returns its answer, with the answer's own type.
func ask[R kmsg.Response](w *wire, req kmsg.Request) R {
	w.t.Helper()
	w.send(req)
	return next[R](w)
}

// next receives the next answer, with its own type.
func next[R kmsg.Response](w *wire) R {
	w.t.Helper()
	resp := w.receive()
	r, ok := resp.(R)
	assert.MustTrue(w.t, ok, "the answer is a %T", resp)
	return r
}

// wantCode compares an error code; a nil error stands for success.
func wantCode(t testing.TB, what string, code int16, want error) {
	t.Helper()
	if got := kerr.ErrorForCode(code); got != want {
		t.Errorf("%s: error code %d (%v), want %v", what, code, got, want)
	}
}
