package redis

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"muster/internal/store"
)

// flusher waits for replicas on behalf of all who flush a log: while one wait
// is under way, further ones queue up and then share the next.
type flusher struct {
	mu      sync.Mutex
	waiting []func(error)
	running bool
	stopped *sync.Cond
}

// flushed completes a flush whose turn has come: Redis has acknowledged all
// that was begun before it.
func (l *log) flushed(p *pending) {
	l.mu.Lock()
	err, replicas := p.err, l.replicas
	if err == nil {
		err = l.failed
	}
	l.mu.Unlock()
	if err != nil || replicas <= 1 {
		p.flush(err)
		return
	}
	f := &l.flusher
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting = append(f.waiting, p.flush)
	if f.running {
		return
	}
	if f.stopped == nil {
		f.stopped = sync.NewCond(&f.mu)
	}
	f.running = true
	go l.replicate()
}

// wait waits until no flush is under way.
func (f *flusher) wait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.running {
		f.stopped.Wait()
	}
}

// replicate waits for replicas until no one wants it any more.
func (l *log) replicate() {
	f := &l.flusher
	for {
		f.mu.Lock()
		waiting := f.waiting
		f.waiting = nil
		if len(waiting) == 0 {
			f.running = false
			f.stopped.Broadcast()
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
		err := l.awaitReplicas()
		for _, done := range waiting {
			done(err)
		}
	}
}

// awaitReplicas waits until enough replicas have all that was appended. WAIT
// speaks of what its own connection wrote, so that a small write goes before
// it. That write also looks at the token: if the server is not the one that
// acknowledged the appends but a replica that took its place without them, the
// token is an older one.
func (l *log) awaitReplicas() error {
	l.store.waits <- struct{}{}
	defer func() { <-l.store.waits }()
	l.mu.Lock()
	want := int64(l.replicas - 1)
	l.mu.Unlock()
	counter := l.acknowledged()
	ctx, cancel := context.WithTimeout(context.Background(), l.store.timeout+l.store.replica)
	defer cancel()
	client, keys := l.store.client, []string{l.keys.stream, l.keys.meta, l.keys.mark}
	results := client.DoMulti(ctx,
		l.store.eval(markScript, keys, []string{l.owner}),
		client.B().Wait().Numreplicas(want).Timeout(l.store.replica.Milliseconds()).Build())
	what := "flush " + l.keys.stream
	mark, err := replies(results[0])
	if err != nil {
		return attempt(what, err)
	}
	if len(mark) != 2 {
		return fmt.Errorf("%w: %s: short reply", store.ErrStorage, what)
	}
	if mark[0].text() == "refused" {
		return l.refusal(mark[1].text())
	}
	if at, err := strconv.ParseInt(mark[1].text(), 10, 64); err != nil || at < counter {
		l.fail(store.ErrFailed)
		return fmt.Errorf("%w: %s: a replica without the last appends has become the primary", store.ErrNotReplicated, what)
	}
	got, err := results[1].AsInt64()
	if err != nil {
		return attempt(what, err)
	}
	if got < want {
		return fmt.Errorf("%w: %s: %d of %d replicas within %v", store.ErrNotReplicated, what, got, want, l.store.replica.Round(time.Millisecond))
	}
	return nil
}

// acknowledged returns the counter of the last append that Redis acknowledged.
func (l *log) acknowledged() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail.counter
}
