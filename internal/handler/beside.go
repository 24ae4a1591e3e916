package handler

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// beside are goroutines of one request. A panic of one of them is that of the request, whose
// connection it ends: in a goroutine of its own it would end the broker.
type beside struct {
	running  sync.WaitGroup
	mu       sync.Mutex
	panicked any // nil if none did
}

// Go has a function run beside the others.
func (w *beside) Go(f func()) {
	w.running.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.panicked = fmt.Sprintf("%v, in %s", p, debug.Stack())
			}
		}()
		f()
	})
}

// Wait waits for all, and panics if one of them did.
func (w *beside) Wait() {
	w.running.Wait()
	if w.panicked != nil {
		panic(w.panicked)
	}
}
