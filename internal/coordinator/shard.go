package coordinator

import (
	"sync"
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
	ended
)

// shard is one partition's groups. Whoever brings an input takes the lock, has
// the core step, and carries out the effects; for most requests the answer is
// there when the lock is given back, and no other goroutine had to be woken.
// Nothing that may wait for a disk, a network or another lock happens under it.
type shard struct {
	c           *Coordinator
	index       int32
	leaderEpoch int32
	log         Log
	stop        chan struct{}  // closed when it ends
	loaded      chan struct{}  // closed after the first load
	background  sync.WaitGroup // loads, and appends that begin
	phase       atomic.Int32   // changes under mu

	mu      sync.Mutex
	core    *group.Shard
	epoch   int // how often it was loaded, so that what belongs to an earlier life is ignored
	timers  timers
	wake    *time.Timer
	due     time.Time // for which wake is set
	asking  question  // the request that the core handles right now
	waiting map[group.RequestID]*waiter
	gather  batch         // records not yet on their way
	flying  batch         // records on their way to the disk
	inAir   bool          // there are some
	later   []group.Event // that came while it loaded
}

// question is a request that is being handled, and its answer if there is one at
// once.
type question struct {
	id   group.RequestID
	resp kmsg.Response
}

// waiter is a request that waits for its answer.
type waiter struct {
	req   kmsg.Request
	reply chan kmsg.Response
}

func newShard(c *Coordinator, index, leaderEpoch int32) *shard {
	return &shard{
		c: c, index: index, leaderEpoch: leaderEpoch, log: c.opts.Log(index),
		stop: make(chan struct{}), loaded: make(chan struct{}),
	}
}

// start loads the shard in the background.
func (s *shard) start() {
	s.background.Go(func() {
		if s.load() {
			close(s.loaded)
		}
	})
}

// end stops the shard and answers who waits. Nothing is appended once what is in
// the background has come to an end.
func (s *shard) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase.Store(ended)
	close(s.stop)
	s.failAll(kerr.NotCoordinator)
	if s.wake != nil {
		s.wake.Stop()
	}
}

// ask has a request handled. The answer is there at once, or will come through
// the channel.
func (s *shard) ask(from Client, req kmsg.Request) (kmsg.Response, <-chan kmsg.Response) {
	id := group.RequestID(s.c.lastID.Add(1))
	s.mu.Lock()
	if s.phase.Load() != active {
		s.mu.Unlock()
		return Failed(req, kerr.NotCoordinator), nil
	}
	s.asking = question{id: id}
	s.step(group.Request{ID: id, ClientID: from.ID, Host: from.Host, Msg: req})
	resp := s.asking.resp
	s.asking = question{}
	var reply chan kmsg.Response
	if resp == nil {
		reply = make(chan kmsg.Response, 1)
		s.waiting[id] = &waiter{req, reply}
	}
	s.finish()
	return resp, reply
}

// handle has an event handled, after the load if there is one. It does not wait
// for the log.
func (s *shard) handle(e group.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.phase.Load() {
	case active:
		s.step(e)
		s.settle()
	case loading:
		s.later = append(s.later, e)
	}
}

// fire fires the timers that are due.
func (s *shard) fire() {
	s.mu.Lock()
	s.due = time.Time{}
	if s.phase.Load() == active {
		now := s.c.opts.Now()
		for t, ok := s.timers.due(now); ok; t, ok = s.timers.due(now) {
			s.step(group.TimerFired{Key: t.Key, Seq: t.Seq})
		}
	}
	s.finish()
}

// finish ends what began with taking the lock: it sets the clock, gives the lock
// back, and sends records on their way.
func (s *shard) finish() {
	s.setClock()
	records, ok := s.depart()
	epoch := s.epoch
	s.mu.Unlock()
	if ok {
		s.send(records, epoch)
	}
}

// settle is finish for who keeps the lock, or must not wait for the log.
func (s *shard) settle() {
	s.setClock()
	if records, ok := s.depart(); ok {
		go s.send(records, s.epoch)
	}
}

// setClock has the shard woken when the next timer is due. Most inputs are
// heartbeats, which change no timer.
func (s *shard) setClock() {
	if at := s.timers.next(); !at.Equal(s.due) && s.phase.Load() == active {
		s.due = at
		s.setWake(at.Sub(s.c.opts.Now()))
	}
}

func (s *shard) setWake(in time.Duration) {
	switch {
	case s.due.IsZero():
		s.wake.Stop()
	case s.wake == nil:
		s.wake = time.AfterFunc(in, s.fire)
	default:
		s.wake.Reset(in)
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
		if r.ID == s.asking.id {
			s.asking.resp = r.Msg
		} else if w := s.waiting[r.ID]; w != nil {
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
