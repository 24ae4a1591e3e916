package redis

import (
	"math/bits"
	"sync"
)

// buffers holds copies of batches until Redis has answered. One that got no
// answer is left to the garbage collector: the client may still be about to
// send it.
var buffers bufferPool

// The sizes that are kept, as powers of two. What is larger is rare.
const (
	minBuffer = 10
	maxBuffer = 21
)

type bufferPool [maxBuffer + 1]sync.Pool

// copy returns a copy of b.
func (p *bufferPool) copy(b []byte) []byte {
	class := max(bits.Len(uint(max(len(b), 1)-1)), minBuffer)
	if class > maxBuffer {
		return append([]byte(nil), b...)
	}
	if kept, ok := p[class].Get().(*[]byte); ok {
		return append((*kept)[:0], b...)
	}
	return append(make([]byte, 0, 1<<class), b...)
}

// free takes a copy back.
func (p *bufferPool) free(b []byte) {
	if class := bits.Len(uint(cap(b))) - 1; class >= minBuffer && class <= maxBuffer && cap(b) == 1<<class {
		b = b[:0]
		p[class].Put(&b)
	}
}
