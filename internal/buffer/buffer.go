// Package buffer keeps buffers for those who need them again and again: frames of
// requests, batches on their way to a store, and what was read on its way to clients.
// What was not given back is left to the garbage collector.
package buffer

import (
	"math/bits"
	"sync"
)

// Buffers have sizes that are powers of two, from Least to Most. What is larger is rare,
// and not kept.
const (
	Least = 1 << 10
	Most  = 1 << 21
)

// mostFrame is the same of Get, whose callers count what they ask for and not what they
// get.
const mostFrame = 1 << 20

// pools has buffers of each size, at their full length.
var pools [22]sync.Pool

func class(n int) int { return bits.Len(uint(max(n, Least) - 1)) }

// Get returns n bytes, and the buffer that they are in, which is to be put back; nil if
// they are too many to be kept.
func Get(n int) ([]byte, *[]byte) {
	if n > mostFrame {
		return make([]byte, n), nil
	}
	b := get(class(n))
	return (*b)[:n], b
}

func get(class int) *[]byte {
	if b, ok := pools[class].Get().(*[]byte); ok {
		return b
	}
	fresh := make([]byte, 1<<class)
	return &fresh
}

// Put takes back what Get returned.
func Put(b *[]byte) {
	if b != nil {
		pools[class(len(*b))].Put(b)
	}
}

// Empty returns an empty buffer with room for n bytes, for callers that pass it on as
// bytes alone.
func Empty(n int) []byte {
	if n > Most {
		return make([]byte, 0, n)
	}
	return (*get(class(n)))[:0]
}

// Copy returns a copy of b, in a buffer.
func Copy(b []byte) []byte { return append(Empty(len(b)), b...) }

// Free takes back what Empty or Copy returned. Other bytes are left alone.
func Free(b []byte) {
	if c := class(cap(b)); cap(b) <= Most && cap(b) == 1<<c {
		b = b[:cap(b)]
		pools[c].Put(&b)
	}
}
