package listener

import (
	"context"
	"sync"
	"time"
)

const (
	// parkedBudget bounds the memory of all large requests that wait for other
	// clients.
	parkedBudget = 256 << 20
	// holdShare is the part of frameBudget that a single request may hold besides
	// its frame.
	holdShare = 4
	// lookEvery is how often a connection whose request waits is looked at. A
	// consumer's usual wait of half a second is over before the first look, and
	// thus costs no system call.
	lookEvery = time.Second
)

// Hold counts memory that the request takes besides its frame, until it has been
// handled; false says that there is no room for it among all requests, or that it
// would take too much of that alone.
func (c *Client) Hold(bytes int) bool {
	if bytes <= freeFrame {
		return true
	}
	f := &c.conn.frame
	if f.held+bytes > f.budget.total/holdShare || !f.budget.takeMore(bytes) {
		return false
	}
	f.held += bytes
	f.cost += bytes
	return true
}

// Release gives up the frame of the request before it has been handled.
func (c *Client) Release() { c.conn.frame.release() }

// Park says that the request waits for what other clients do, and keeps so many
// bytes meanwhile. They no longer count among the requests that are read or
// handled, so that no one is turned away because others wait; false says that too
// much waits already. The context ends when the client hangs up: no one reads
// from the connection during the wait. done ends the wait.
func (c *Client) Park(ctx context.Context, bytes int) (parked context.Context, done func(), ok bool) {
	s := c.conn.server
	if bytes <= freeFrame {
		bytes = 0
	}
	if !s.parked.takeMore(bytes) {
		return nil, nil, false
	}
	c.conn.frame.uncount()
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{gone: c.conn.hungUp, hungUp: func() {
		c.conn.gone.Store(true)
		cancel()
	}}
	w.start()
	return ctx, func() {
		w.stop()
		cancel()
		s.parked.give(bytes)
	}, true
}

// watch checks a connection from time to time. It does not read from it: what the
// client sends after the request that waits is for the goroutine that serves.
type watch struct {
	gone   func() bool
	hungUp func() // called at most once

	mu    sync.Mutex
	timer *time.Timer // nil after the end
}

func (w *watch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(lookEvery, w.look)
}

func (w *watch) look() {
	gone := w.gone()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.timer == nil:
	case gone:
		w.hungUp()
	default:
		w.timer.Reset(lookEvery)
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.timer = nil
}
