package redis

import (
	"math/bits"
	"sync"
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
