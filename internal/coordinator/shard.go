package coordinator

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// Phases of a shard's life.
const (
	loading int32 = iota
	active
)

// inboxSize is how many inputs wait for a shard before senders do.
const inboxSize = 256

// shard is one partition's groups with the goroutine that owns them.
type shard struct {
	c           *Coordinator
	index       int32
	leaderEpoch int32
	log         Log
	inbox       chan item
	stop        chan struct{}
	stopped     chan struct{}
	loaded      chan struct{} // closed after the first load
	phase       atomic.Int32

	// Owned by run.
	core    *group.Shard
	epoch   int // how often it was loaded, so that what belongs to an earlier life is ignored
	timers  timers
	waiting map[group.RequestID]*waiter
	gather  batch // records not yet on their way
	flying  batch // records on their way to the disk
	inAir   bool
}

// waiter is a request that waits for its answer.
type waiter struct {
	req   kmsg.Request
	reply chan kmsg.Response
}

// item is something for a shard to handle: an event, or the outcome of an
// append.
type item struct {
	event  group.Event
	id     group.RequestID
	waiter *waiter

	appended bool
	epoch    int
	err      error
}

func newShard(c *Coordinator, index, leaderEpoch int32) *shard {
	return &shard{
		c: c, index: index, leaderEpoch: leaderEpoch, log: c.opts.Log(index),
		inbox: make(chan item, inboxSize), stop: make(chan struct{}), stopped: make(chan struct{}), loaded: make(chan struct{}),
	}
}

// post hands an item to the shard, unless it has stopped.
func (s *shard) post(i item) {
	select {
	case s.inbox <- i:
	case <-s.stopped:
	}
}

// run is the shard's goroutine.
func (s *shard) run() {
	defer close(s.stopped)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wake := time.NewTimer(time.Hour)
	defer wake.Stop()
	if !s.load(ctx) {
		return
	}
	close(s.loaded)
	var due time.Time // for which wake is set
	for {
		s.flush(ctx)
		// Most inputs are heartbeats, which change no timer.
		if at := s.timers.next(); !at.Equal(due) {
			due = at
			wake.Reset(at.Sub(s.c.opts.Now()))
		}
		select {
		case <-s.stop:
			s.failAll(kerr.NotCoordinator)
			return
		case i := <-s.inbox:
			s.handle(ctx, i)
			s.drain(ctx)
		case <-wake.C:
			due = time.Time{}
			s.fire()
		}
	}
}

// drain handles what else is there already, so that its records share a batch.
func (s *shard) drain(ctx context.Context) {
	for range inboxSize {
		select {
		case i := <-s.inbox:
			s.handle(ctx, i)
		default:
			return
		}
	}
}

func (s *shard) handle(ctx context.Context, i item) {
	if i.appended {
		s.appended(ctx, i)
		return
	}
	if i.waiter != nil {
		s.waiting[i.id] = i.waiter
	}
	s.step(i.event)
}

// fire fires the timers that are due.
func (s *shard) fire() {
	now := s.c.opts.Now()
	for {
		t, ok := s.timers.due(now)
		if !ok {
			return
		}
		s.step(group.TimerFired{Key: t.Key, Seq: t.Seq})
	}
}

// step gives the core an event and takes in its effects.
func (s *shard) step(e group.Event) {
	in := group.Input{Now: s.c.opts.Now(), Event: e}
	if group.NeedsFresh(e) {
		in.Fresh = fresh()
	}
	fx := s.core.Step(in)
	for _, t := range fx.Timers {
		s.timers.set(t)
	}
	s.gather.records = append(s.gather.records, fx.Records...)
	switch {
	case len(s.gather.records) > 0:
		s.gather.replies = append(s.gather.replies, fx.Replies...)
	case s.inAir:
		s.flying.replies = append(s.flying.replies, fx.Replies...)
	default:
		s.release(fx.Replies)
	}
	if len(fx.Journal) > 0 && s.c.opts.Journal != nil {
		s.gather.journal = append(s.gather.journal, fx.Journal...)
	}
}

// release sends replies to who waits for them.
func (s *shard) release(replies []group.Reply) {
	for _, r := range replies {
		if w := s.waiting[r.ID]; w != nil {
			delete(s.waiting, r.ID)
			w.reply <- r.Msg
		}
	}
}

// failAll answers everybody who waits with an error.
func (s *shard) failAll(err *kerr.Error) {
	for id, w := range s.waiting {
		delete(s.waiting, id)
		w.reply <- Failed(w.req, err)
	}
}
