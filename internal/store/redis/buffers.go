package redis

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// buffers holds copies of batches until Redis has answered, and what was read
// until it was sent. A batch that got no answer is left to the garbage
// collector: the client may still be about to send it.
var buffers bufferPool

// The sizes that are kept, as powers of two. What is larger is rare.
const (
	minBuffer = 10
	maxBuffer = 21
)

type bufferPool [maxBuffer + 1]sync.Pool

// copy returns a copy of b.
func (p *bufferPool) copy(b []byte) []byte { return append(p.get(len(b)), b...) }

// get returns an empty buffer with room for n bytes.
func (p *bufferPool) get(n int) []byte {
	class := max(bits.Len(uint(max(n, 1)-1)), minBuffer)
	if class > maxBuffer {
		return make([]byte, 0, n)
	}
	if kept, ok := p[class].Get().(*[]byte); ok {
		return (*kept)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// free takes a buffer back.
func (p *bufferPool) free(b []byte) {
	if class := bits.Len(uint(cap(b))) - 1; class >= minBuffer && class <= maxBuffer && cap(b) == 1<<class {
		b = b[:0]
		p[class].Put(&b)
	}
}

// heldBytes counts what was read and not yet sent to the client. A client that
// reads slowly, or not at all, keeps it in memory, so the more there is the less the
// next read gets; but never so little that it could not go on.
type heldBytes struct{ atomic.Int64 }

const (
	maxHeld  = 64 << 20
	minRead  = 64 << 10
	heldPart = 8 // One read gets at most this part of what is left.
)

// take reserves room for a read that wants n bytes at most, and says how many it
// gets.
func (h *heldBytes) take(n int) int {
	n = min(n, max(int(maxHeld-h.Load())/heldPart, minRead))
	h.add(n)
	return n
}

func (h *heldBytes) add(n int) { h.Add(int64(n)) }
