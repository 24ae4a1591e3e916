package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// shareLedger is what was written, delivered and accepted of a topic.
type shareLedger struct {
	mu         sync.Mutex
	limit      int32
	written    map[slot]map[int64]bool
	accepted   map[slot]map[int64]bool // acknowledged as such
	said       map[slot]map[int64]bool // whether it is acknowledged or not
	deliveries int
	errs       []error
}

func newShareLedger(limit int32) *shareLedger {
	return &shareLedger{limit: limit, written: map[slot]map[int64]bool{}, accepted: map[slot]map[int64]bool{}, said: map[slot]map[int64]bool{}}
}

func mark(of map[slot]map[int64]bool, r *kgo.Record) {
	at := slot{r.Topic, r.Partition}
	if of[at] == nil {
		of[at] = map[int64]bool{}
	}
	of[at][r.Offset] = true
}

func (l *shareLedger) wrote(r *kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mark(l.written, r)
}

// before returns what was accepted before a poll: those of them that
// the poll returns were delivered again.
func (l *shareLedger) before() map[slot]map[int64]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[slot]map[int64]bool{}
	for at, all := range l.accepted {
		out[at] = make(map[int64]bool, len(all))
		for offset := range all {
			out[at][offset] = true
		}
	}
	return out
}

func (l *shareLedger) delivered(r *kgo.Record, before map[slot]map[int64]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deliveries++
	at := slot{r.Topic, r.Partition}
	if before[at][r.Offset] {
		l.errs = append(l.errs, fmt.Errorf("%v offset %d was delivered after it was accepted", at, r.Offset))
	}
	if n := r.DeliveryCount(); n < 1 || n > l.limit {
		l.errs = append(l.errs, fmt.Errorf("%v offset %d has the delivery count %d", at, r.Offset, n))
	}
}

// say notes that members are about to accept records. Of some the broker is killed before it
// answers, and what it stored is accepted all the same.
func (l *shareLedger) say(records []*kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range records {
		mark(l.said, r)
	}
}

// accept notes an accept that was acknowledged. There is one of each record.
func (l *shareLedger) accept(r *kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := slot{r.Topic, r.Partition}
	if l.accepted[at][r.Offset] {
		l.errs = append(l.errs, fmt.Errorf("%v offset %d was accepted twice", at, r.Offset))
	}
	mark(l.accepted, r)
}

// counts returns how many were written, and accepted.
func (l *shareLedger) counts() (written, accepted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, all := range l.written {
		written += len(all)
	}
	for _, all := range l.accepted {
		accepted += len(all)
	}
	return written, accepted
}

// work has a member accept all that it is given.
func (l *shareLedger) work(ctx context.Context, m *sharer) {
	for ctx.Err() == nil {
		before := l.before()
		records := m.PollFetches(ctx).Records()
		for _, r := range records {
			l.delivered(r, before)
		}
		l.say(records)
		failed, err := m.say(ctx, kgo.AckAccept, records...)
		if err != nil {
			continue
		}
		for _, r := range records {
			if failed[r.Partition] == nil {
				l.accept(r)
			}
		}
	}
}

// TestShareGroupsSurviveKills has members accept records while the broker is killed: each
// record is delivered until someone has accepted it, and never after the broker said that it
// is accepted.
func TestShareGroupsSurviveKills(t *testing.T) {
	const limit, perKill = 10, 600
	data, addr := t.TempDir(), fixedPort(t)
	flags := append([]string{"--listen", addr}, append(shortLease, shareSettings...)...)
	b := serve(t, data, flags...)
	g := newShareGroup(t, addr, "killed", 2, "share.delivery.count.limit", fmt.Sprint(limit))
	l := newShareLedger(limit)
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for range 3 {
		m := g.join()
		working.Go(func() { l.work(ctx, m) })
	}
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	write := func() {
		for i := range perKill {
			g.cl.Produce(ctx, &kgo.Record{Topic: g.name, Partition: int32(i % 2), Value: []byte(filler[:60])}, func(r *kgo.Record, err error) {
				if assert.NoError(t, err, "writing"); err == nil {
					l.wrote(r)
				}
			})
		}
	}
	for range often(3) {
		_, had := l.counts()
		write()
		waitFor(t, "some to be accepted", func() error {
			if _, accepted := l.counts(); accepted < had+perKill/6 {
				return fmt.Errorf("%d are accepted", accepted-had)
			}
			return nil
		})
		b.kill()
		b = serve(t, data, flags...)
	}
	write()
	must(t, g.cl.Flush(ctx))
	g.isDone()
	stop()
	working.Wait()
	written, accepted := l.counts()
	t.Logf("%d records written, %d deliveries, %d acknowledged accepts", written, l.deliveries, accepted)
	for _, err := range l.errs {
		t.Error(err)
	}
	for at, all := range l.written {
		for offset := range all {
			assert.MustTrue(t, l.said[at][offset], "%v offset %d is done with, and no one has accepted it", at, offset)
		}
	}
}
