package protocol

import (
	"encoding/binary"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/store"
)

// ErrAway ends a connection that a broker has no answer for at present, so that the client
// tries again, here or elsewhere.
var ErrAway = errors.New("this one is leaving, or has yet to join again")

// Response is an answer on its way to the socket: frame bytes, and between them
// records that may lie in a file. A pending response is completed later,
// when the outcome is known.
type Response struct {
	Parts []Part
	ready chan struct{} // nil if the response was never pending
	size  int           // what it takes while it is pending
	only  [1]Part       // room for Parts, of which most responses have one
	done  func()        // nil, or called by Release
	last  error         // nil, or why the connection ends after it
}

// EndAfter says that the connection ends when the response has been written, and why.
func (resp *Response) EndAfter(reason error) { resp.last = reason }

// Ends returns why the connection ends after the response, nil if it does not.
func (resp *Response) Ends() error { return resp.last }

// Bare makes a frame of bytes alone, as those of a login before there was a request for it.
func Bare(body []byte) *Response {
	resp := &Response{}
	resp.set(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return resp
}

// Records is a run of record batches on its way out.
type Records = store.Records

// Part is a piece of a frame: bytes, or records.
type Part struct {
	Bytes   []byte
	Records Records // used if Bytes is nil
}

// Encode makes the frame of an answer to r.
func (r *Request) Encode(resp kmsg.Response) *Response {
	out := &Response{}
	out.set(r.frame(resp))
	return out
}

// set makes the response one frame of bytes.
func (resp *Response) set(frame []byte) {
	resp.only[0].Bytes = frame
	resp.Parts = resp.only[:]
}

func (r *Request) frame(resp kmsg.Response) []byte {
	b := make([]byte, 0, 96) // Most answers are short.
	b = r.AppendHeader(b, resp.IsFlexible())
	b = resp.AppendTo(b)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// AppendHeader appends room for the frame's length and the response header. The
// header of ApiVersions is the old one in every version, since a client reads
// that answer before it knows what the broker speaks.
func (r *Request) AppendHeader(b []byte, flexible bool) []byte {
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(r.CorrelationID))
	if flexible && r.Key != KeyApiVersions {
		b = append(b, 0)
	}
	return b
}

// NewPending returns a response that is completed later.
func NewPending() *Response { return &Response{ready: make(chan struct{})} }

// Weigh says how much memory a pending response takes until it is written.
func (resp *Response) Weigh(bytes int) { resp.size = bytes }

// Memory returns how much memory the response takes.
func (resp *Response) Memory() int {
	if resp.Pending() {
		return resp.size
	}
	n := 0
	for i := range resp.Parts {
		n += len(resp.Parts[i].Bytes) + len(resp.Parts[i].Records.Bytes)
	}
	return n
}

// Size returns how large the frame of a response is that is not pending.
func (resp *Response) Size() (n int) {
	for i := range resp.Parts {
		if p := &resp.Parts[i]; p.Bytes != nil {
			n += len(p.Bytes)
		} else {
			n += p.Records.Len
		}
	}
	return n
}

// Complete fills in a pending response. It must be called exactly once.
func (resp *Response) Complete(r *Request, body kmsg.Response) {
	resp.set(r.frame(body))
	close(resp.ready)
}

// Pending says whether the response must be waited for.
func (resp *Response) Pending() bool {
	if resp.ready == nil {
		return false
	}
	select {
	case <-resp.ready:
		return false
	default:
		return true
	}
}

// Ready returns a channel that is closed when a pending response is complete.
func (resp *Response) Ready() <-chan struct{} { return resp.ready }

// OnRelease has something done when the response is released.
func (resp *Response) OnRelease(done func()) { resp.done = done }

// Release gives up the records of a response that was written or will not be. It
// must be called once.
func (resp *Response) Release() {
	if resp.done != nil {
		resp.done()
	}
	for i := range resp.Parts {
		resp.Parts[i].Records.Release()
	}
}
