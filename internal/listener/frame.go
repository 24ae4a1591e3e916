package listener

import (
	"errors"
	"io"
	"math/bits"
	"sync"

	"muster/internal/protocol"
)

const (
	// frameBudget bounds the memory of all large requests that are being read or
	// handled: their frames, and what is made of them.
	frameBudget = 512 << 20
	// freeFrame is the size up to which a frame is not counted.
	freeFrame = 16 << 10
	// firstBuffer is what a frame gets before its bytes have arrived. More comes
	// as they do, so that memory is held only for what a client really sent. A
	// connection that has sent larger frames before gets up to trustedBuffer at
	// once, which spares it the copies.
	firstBuffer   = freeFrame
	trustedBuffer = 1 << 20
)

// frame is a request's bytes. It counts against a budget until it is released.
type frame struct {
	bytes  []byte
	buffer *[]byte // that they are in, nil if none of the pools
	budget *budget
	cost   int // of all
	held   int // besides the bytes
}

// release gives up the frame; a second time it does nothing.
func (f *frame) release() {
	buffers.put(f.buffer)
	f.bytes, f.buffer = nil, nil
	f.uncount()
}

// uncount takes the frame out of the budget, though it is kept.
func (f *frame) uncount() {
	f.budget.give(f.cost)
	f.cost = 0
}

// budget is an amount of memory that frames share. A request that finds it used up waits.
type budget struct {
	mu    sync.Mutex
	more  *sync.Cond
	free  int
	total int
}

func newBudget(total int) *budget {
	b := &budget{free: total, total: total}
	b.more = sync.NewCond(&b.mu)
	return b
}

func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.free < n && b.free < b.total {
		b.more.Wait()
	}
	b.free -= n
}

// takeMore is for a request that has some of the budget already. Waiting would let
// two of them wait for each other, so it fails instead.
func (b *budget) takeMore(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.free < n {
		return false
	}
	b.free -= n
	return true
}

func (b *budget) give(n int) {
	if n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.more.Broadcast()
}

// read reads a frame of n bytes from a connection whose largest frame so far
// had so many.
func (b *budget) read(r io.Reader, n, largest int) (frame, error) {
	size := min(n, max(firstBuffer, min(largest, trustedBuffer)))
	f := frame{budget: b}
	if size > freeFrame {
		b.take(size)
		f.cost = size
	}
	f.bytes, f.buffer = buffers.get(size)
	at := 0
	for {
		if _, err := io.ReadFull(r, f.bytes[at:]); err != nil {
			f.release()
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return frame{}, err
		}
		at = len(f.bytes)
		if at == n {
			return f, nil
		}
		if !f.grow(min(n, 2*at)) {
			f.release()
			return frame{}, protocol.ErrMemory
		}
	}
}

// grow moves the frame to a larger buffer.
func (f *frame) grow(size int) bool {
	if !f.budget.takeMore(size - f.cost) {
		return false
	}
	f.cost = size
	next, buffer := buffers.get(size)
	copy(next, f.bytes)
	buffers.put(f.buffer)
	f.bytes, f.buffer = next, buffer
	return true
}

// bufferPools keeps buffers of sizes that are powers of two, from 1 KB to 1 MB.
type bufferPools struct{ pools [21]sync.Pool }

const minClass = 10

var buffers bufferPools

func sizeClass(n int) int { return max(bits.Len(uint(max(n, 1)-1)), minClass) }

// get returns n bytes, and the buffer that they are in, which is to be put back; nil
// if there is none of that size.
func (p *bufferPools) get(n int) ([]byte, *[]byte) {
	class := sizeClass(n)
	if class >= len(p.pools) {
		return make([]byte, n), nil
	}
	b, ok := p.pools[class].Get().(*[]byte)
	if !ok {
		fresh := make([]byte, 1<<class)
		b = &fresh
	}
	return (*b)[:n], b
}

func (p *bufferPools) put(b *[]byte) {
	if b != nil {
		p.pools[sizeClass(len(*b))].Put(b)
	}
}
