package redis

import (
	"context"
	"sync"
	"time"
)

// While the server's clock is behind the last id of a stream, the server gives ids with
// that time and a growing sequence to others who append. Ids whose sequence is too large
// have no offset, and Kafka clients would never see those entries. The clock is behind
// where others append too and our ids are chosen ahead of it (pace), where this broker
// appends more than a millisecond has room for, and where it was set back. So the owner
// of the log looks at the stream until the clock has caught up, and moves it on to the
// next millisecond in time, whether somebody reads the log or not.

// keeper looks at a stream whose last id is ahead of the clock. It has a goroutine only
// then.
type keeper struct {
	running bool // guarded by the log's mu
	cancel  context.CancelFunc
	work    sync.WaitGroup
}

// How long a keeper waits between two looks. Redis appends some 250 entries in a
// millisecond at most; where nobody does, a look now and then is enough.
const (
	keepBusy = time.Millisecond
	keepCalm = 4 * time.Millisecond
	// keepLong is for a clock that is behind by more than our ids are ever ahead.
	keepLong = 50 * time.Millisecond
	longer   = 2 * time.Second
)

// keep starts a keeper if the id of an offset is ahead of the server's time, in ms. The
// lock is held.
func (l *log) keep(last, now int64) {
	k := &l.keeper
	if k.running || l.closed || l.ended || int64(l.id(last).ms) <= now {
		return
	}
	var ctx context.Context
	ctx, k.cancel = context.WithCancel(context.Background())
	k.running = true
	k.work.Go(func() { l.keepUp(ctx) })
}

// keepUp looks at the stream until the clock has caught up with it. Who cannot look does
// not go on: the next append begins anew.
func (l *log) keepUp(ctx context.Context) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.keeper.running = false
		l.keeper.cancel()
	}()
	var before entryID
	for {
		last, ahead, err := l.look(ctx, max(l.perMilli()/4, 1))
		if err != nil || ahead <= 0 {
			return
		}
		pause := keepBusy
		switch {
		case last != before:
		case ahead > longer:
			pause = keepLong
		default:
			pause = keepCalm
		}
		before = last
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// stopKeeping ends the keeper.
func (l *log) stopKeeping() {
	l.mu.Lock()
	if l.keeper.running {
		l.keeper.cancel()
	}
	l.mu.Unlock()
	l.keeper.work.Wait()
}
