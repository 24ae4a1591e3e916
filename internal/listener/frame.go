package listener

import (
	"errors"
	"io"

	"muster/internal/buffer"
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
	buffer.Put(f.buffer)
	f.bytes, f.buffer = nil, nil
	f.uncount()
}

// uncount takes the frame out of the budget, though it is kept.
func (f *frame) uncount() {
	f.budget.give(f.cost)
	f.cost = 0
}

// read reads a frame of n bytes from a connection whose largest frame so far
// had so many.
func (b *budget) read(r io.Reader, n, largest int, who *arrival) (frame, error) {
	size := min(n, max(firstBuffer, min(largest, trustedBuffer)))
	f := frame{budget: b}
	if size > freeFrame {
		if !b.take(who, size) {
			return frame{}, protocol.ErrMemory
		}
		f.cost = size
	}
	f.bytes, f.buffer = buffer.Get(size)
	at := 0
	for {
		_, err := io.ReadFull(r, f.bytes[at:])
		if at = len(f.bytes); err == nil && at < n {
			if f.grow(min(n, 2*at), who) {
				continue
			}
			err = protocol.ErrMemory
		}
		if f.cost > 0 {
			b.arrived(who)
		}
		if err == nil {
			return f, nil
		}
		f.release()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
}

// grow moves the frame to a larger buffer.
func (f *frame) grow(size int, who *arrival) bool {
	if !f.budget.take(who, size-f.cost) {
		return false
	}
	f.cost = size
	next, kept := buffer.Get(size)
	copy(next, f.bytes)
	buffer.Put(f.buffer)
	f.bytes, f.buffer = next, kept
	return true
}
