package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator/pump"
	"muster/internal/machine"
)

// Phases of a shard's life.
const (
	loading int32 = iota
	active
	ended
)

// shard is one partition. The goroutine that has an input takes the lock, has the
// pump step the core, and carries out the effects; for most requests the answer is
// there when the lock is released, and no other goroutine had to be woken.
// Nothing that may wait for a disk, a network or another lock happens under it.
type shard struct {
	c           *Coordinator
	index       int32
	leaderEpoch int32
	log         Log
	restarts    Restarting      // the same; nil if it never does
	ctx         context.Context // ends with the shard
	cancel      context.CancelFunc
	loaded      chan struct{}  // closed after the first load
	background  sync.WaitGroup // loads, sends, tasks, and appends that begin
	maxBatch    atomic.Int64   // of the log, as of the last load: to ask for it takes a lock
	phase       atomic.Int32   // the pump's, for those who do not hold the lock

	mu      sync.Mutex
	pump    *pump.Pump
	wake    *time.Timer
	due     time.Time // for which wake is set
	asking  question  // the request that the core handles right now
	weight  int64     // of the core, as it was last counted
	soon    bool      // someone is about to begin the next append
	waiting map[machine.RequestID]chan kmsg.Response
	news    []news // that is still to be told

	telling sync.Mutex // of news, in its order; taken before mu
}

// news is what the core tells, and who waits for an answer that goes out after it.
type news struct {
	notes   []machine.Note
	answers []func()
}

// question is a request that is being handled, and its answer if there is one at
// once.
type question struct {
	id   machine.RequestID
	resp kmsg.Response
}

func newShard(c *Coordinator, index, leaderEpoch int32) *shard {
	s := &shard{
		c: c, index: index, leaderEpoch: leaderEpoch, log: c.opts.Log(index),
		loaded: make(chan struct{}), pump: pump.New(), waiting: map[machine.RequestID]chan kmsg.Response{},
	}
	s.pump.Rescue(s.panicked)
	s.restarts, _ = s.log.(Restarting)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// start loads the shard in the background.
func (s *shard) start() {
	life := s.pump.Life()
	s.background.Go(func() {
		if s.load(life) {
			close(s.loaded)
		}
	})
}

// end stops the shard and answers the requests that wait. Nothing is appended once
// the work in the background has ended.
func (s *shard) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pump.End()
	s.phase.Store(ended)
	s.weigh()
	s.cancel()
	s.failAll()
	if s.wake != nil {
		s.wake.Stop()
	}
}

// input returns what a step is given beside its event, all but the image.
func (s *shard) input() machine.Input {
	return machine.Input{Now: s.c.opts.Now(), MaxBatch: int(s.maxBatch.Load())}
}

// lock takes the lock and adds the image. One that was taken before might be
// older than what the core has been told of meanwhile, or than what its log says,
// and what an older image lacks looks as if it had been deleted.
func (s *shard) lock(in *machine.Input) {
	s.mu.Lock()
	in.Image = s.c.opts.Image()
	in.Others = s.c.weight.Load() - s.weight
}

// ask has a request handled and waits for its answer. It returns nil if the
// shard cannot answer any more, or ctx ends first.
func (s *shard) ask(ctx context.Context, from Client, req kmsg.Request) kmsg.Response {
	r := machine.Request{ID: machine.RequestID(s.c.lastID.Add(1)), ClientID: from.ID, Host: from.Host, Asker: from.Asker, Msg: req}
	in := s.input()
	if s.c.opts.Core.NeedsRandom(req) {
		_, _ = rand.Read(in.Random[:]) // Never fails, by its documentation.
	}
	s.lock(&in)
	s.asking = question{id: r.ID}
	if !s.pump.Request(in, r) {
		s.asking = question{}
		s.mu.Unlock()
		return nil
	}
	s.carryOut()
	resp := s.asking.resp
	s.asking = question{}
	var reply chan kmsg.Response
	if resp == nil && s.phase.Load() != active { // The core is lost, and no one would answer.
		s.release()
		return nil
	}
	if resp == nil {
		reply = make(chan kmsg.Response, 1)
		s.waiting[r.ID] = reply
	}
	s.unlock()
	if resp != nil {
		return resp
	}
	select {
	case resp := <-reply:
		return resp
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.waiting, r.ID)
		return nil
	}
}

// with gives the pump something under the lock, and carries out the effects.
func (s *shard) with(give func(*pump.Pump, machine.Input)) {
	in := s.input()
	s.lock(&in)
	give(s.pump, in)
	s.carryOut()
	s.unlock()
}

// tell has an event handled that is about everybody. It does not wait for the
// log.
func (s *shard) tell(e machine.Event) {
	in := s.input()
	s.lock(&in)
	s.pump.Tell(in, e)
	s.carryOut()
	s.appendSoon()
	s.release()
}

// fire fires the timers that are due.
func (s *shard) fire() {
	s.with(func(p *pump.Pump, in machine.Input) {
		s.due = time.Time{}
		p.Fire(in)
	})
}

// carryOut does what the pump wants done, all but what may wait.
func (s *shard) carryOut() {
	out := s.pump.Drain()
	told := len(out.Notes) > 0 && s.c.opts.Notes != nil
	var later []func()
	for _, r := range out.Replies {
		reply := s.waiting[r.ID]
		switch {
		case r.ID == s.asking.id:
			s.asking.resp = r.Msg
			continue
		case reply == nil:
			continue
		case told:
			later = append(later, func() { reply <- r.Msg })
		default:
			reply <- r.Msg
		}
		delete(s.waiting, r.ID)
	}
	if told {
		s.news = append(s.news, news{slices.Clone(out.Notes), later})
	}
	life := s.pump.Life()
	for _, m := range out.Sends {
		s.background.Add(1)
		go s.send(life, m)
	}
	for _, t := range out.Tasks {
		s.background.Go(func() { s.task(life, t) })
	}
	if out.Lost {
		s.failAll()
		s.phase.Store(loading)
		s.background.Go(func() { s.load(life) })
	}
	s.pump.Drained()
	s.weigh()
	s.setClock()
}

// release gives the lock back, and then passes on what the core tells: that takes
// longer than most steps, and others need not wait for it. Who is answered knows that
// it was told before.
func (s *shard) release() {
	quiet := len(s.news) == 0
	s.mu.Unlock()
	if quiet {
		return
	}
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	list := s.news
	s.news = nil
	s.mu.Unlock()
	for _, n := range list {
		s.c.opts.Notes(s.index, n.notes)
		for _, answer := range n.answers {
			answer()
		}
	}
}

// panicked tells of a defect of the core. The shard is loaded again.
func (s *shard) panicked(v any) {
	s.c.opts.Logger.Error("the coordinator of "+s.c.opts.Core.Name+" panicked; loading the shard again", "shard", s.index,
		"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	if told := s.c.opts.Panicked; told != nil {
		told()
	}
}

// weigh counts what the core holds among what all do.
func (s *shard) weigh() {
	if now := s.pump.Weight(); now != s.weight {
		s.c.weight.Add(now - s.weight)
		s.weight = now
	}
}

// send has another broker, or this one, handle a request of the core. The shard's
// end waits for the outcome, not for a handler that goes on after that.
func (s *shard) send(life uint64, m machine.Send) {
	done := func(resp kmsg.Response, err error) {
		defer s.background.Done()
		s.with(func(p *pump.Pump, in machine.Input) { p.Sent(life, in, machine.Sent{ID: m.ID, Msg: resp, Err: err}) })
	}
	if s.c.opts.Send == nil {
		done(nil, errors.New("this broker sends nothing to others"))
		return
	}
	s.c.opts.Send(s.ctx, m.To, m.Msg, done)
}

// task does work of the core that would hold the lock for too long.
func (s *shard) task(life uint64, t machine.Task) {
	select {
	case s.c.tasks <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	result, ok := s.run(t)
	<-s.c.tasks
	s.with(func(p *pump.Pump, in machine.Input) {
		switch {
		case ok:
			p.TaskDone(life, in, machine.TaskDone{ID: t.ID, Result: result})
		case p.Life() == life:
			p.Reload() // The core waits for a result that never comes.
		}
	})
}

// run runs a task; false says that it panicked.
func (s *shard) run(t machine.Task) (result any, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(v)
			result, ok = nil, false
		}
	}()
	return t.Run(), true
}

// setClock has the shard woken when the next timer is due. Most inputs are
// heartbeats, which change no timer.
func (s *shard) setClock() {
	at := s.pump.Next()
	if at.Equal(s.due) {
		return
	}
	s.due = at
	in := at.Sub(s.c.opts.Now())
	switch {
	case at.IsZero():
		s.wake.Stop()
	case s.wake == nil:
		s.wake = time.AfterFunc(in, s.fire)
	default:
		s.wake.Reset(in)
	}
}

// failAll tells everybody who waits that the shard cannot answer.
func (s *shard) failAll() {
	for id, reply := range s.waiting {
		delete(s.waiting, id)
		reply <- nil
	}
}
