package shares

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator/pump"
	"muster/internal/machine"
	"muster/internal/share/state"
	"muster/internal/sim/shell"
)

// shard is the core of a broker that coordinates, or did.
type shard struct {
	*shell.Shell
	w       *world
	epoch   int32
	kind    machine.Definition
	core    *state.Shard // nil while it loads
	gone    bool
	appends int // under way
	waiting map[machine.RequestID]call
}

// call is a request that is not answered.
type call struct {
	req   kmsg.Request
	reply func(kmsg.Response)
}

func newShard(w *world, epoch int32) *shard {
	s := &shard{w: w, epoch: epoch, kind: state.Definition(func() state.Config { return w.cfg }), waiting: map[machine.RequestID]call{}}
	s.Shell = shell.New(w.World, s, shell.Pace{
		Moment: time.Millisecond, Late: func() float64 { return w.faults.late }, MaxLate: time.Second, Plant: w.plant,
	})
	return s
}

// Input implements shell.Host.
func (s *shard) Input() machine.Input {
	return machine.Input{Now: s.w.Clock(), Image: s.w.image, MaxBatch: 1 << 20}
}

// Do implements shell.Host.
func (s *shard) Do(run func()) {
	if !s.gone {
		run()
	}
}

func (s *shard) load() {
	life := s.Pump.Life()
	s.w.After(s.w.About(10*time.Millisecond), func() {
		s.Do(func() {
			if s.Pump.Life() != life {
				return
			}
			s.core = s.replay()
			s.w.Count("load")
			s.Begin(life, s.core, machine.Loaded{Epoch: s.epoch})
			s.Drain()
		})
	})
}

// replay reads the log into a core.
func (s *shard) replay() *state.Shard {
	core := s.kind.New().(*state.Shard)
	for _, b := range s.w.stored() {
		stored, err := pump.Decode(slices.Clone(b), s.kind.Decode, func(offset int64, err error) { s.w.Violated("record at %d cannot be read: %v", offset, err) })
		if err != nil {
			s.w.Violated("a batch cannot be read: %v", err)
		}
		core.Replay(stored)
	}
	if err := core.CheckInvariants(); err != nil {
		s.w.Violated("after a replay: %v", err)
	}
	return core
}

// checkReplay holds a core against what its log says, if it has nothing else in mind.
func (s *shard) checkReplay() {
	if s.gone || !s.Pump.Active() || s.appends > 0 || s.Pump.Ready() || s.epoch != s.w.epoch {
		return
	}
	if err := s.core.CheckInvariants(); err != nil {
		s.w.Violated("%v", err)
	}
	if s.core.Digest() != s.replay().Digest() {
		s.w.Violated("the log does not say what the coordinator knows")
	}
	s.w.Count("replay compared")
}

func (s *shard) request(req kmsg.Request, reply func(kmsg.Response)) {
	if !s.Pump.Active() {
		reply(s.kind.Fail(req, kerr.CoordinatorLoadInProgress))
		return
	}
	id := machine.RequestID(s.w.nextID())
	s.waiting[id] = call{req, reply}
	s.Request(machine.Request{ID: id, Msg: req})
}

func (s *shard) end() {
	s.Pump.End()
	s.gone = true
	s.failAll()
}

func (s *shard) failAll() {
	calls := s.waiting
	s.waiting = map[machine.RequestID]call{}
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		calls[id].reply(s.kind.Fail(calls[id].req, kerr.NotCoordinator))
	}
}

// Out implements shell.Host.
func (s *shard) Out(_ uint64, out pump.Out) {
	for _, r := range out.Replies {
		c, ok := s.waiting[r.ID]
		if !ok {
			s.w.Violated("request %d is answered that does not wait", r.ID)
		}
		delete(s.waiting, r.ID)
		c.reply(r.Msg)
	}
	for _, p := range machine.NotesOf[state.Prune](out.Notes) {
		s.w.After(s.w.About(20*time.Millisecond), func() { s.Do(func() { s.prune(p.Before) }) })
	}
}

// prune cuts the log, if this is the leader still.
func (s *shard) prune(before int64) {
	start, next := s.w.start(), s.w.end()
	if before > next {
		s.w.Violated("all before %d is not needed, and the log ends at %d", before, next)
	}
	if before > start {
		s.w.Count("log cut")
		s.w.Tracef("the log begins at %d", before)
		s.w.ops = append(s.w.ops, op{trim: before})
	}
	s.checkReplay()
}

// Lost implements shell.Host.
func (s *shard) Lost() {
	s.w.Count("core lost")
	s.failAll()
	s.load()
}

// Append implements shell.Host.
func (s *shard) Append(a pump.Append) {
	w := s.w
	b, err := pump.Encode(&a.Batch, w.Clock())
	if err != nil {
		w.Violated("a batch cannot be encoded: %v", err)
	}
	s.appends++
	fails, stored := w.Chance(w.faults.failed), w.Rand.IntN(2) == 0
	w.After(w.About(3*time.Millisecond), func() {
		base := int64(-1)
		if s.epoch != w.epoch {
			fails = true // Another leads.
		} else if !fails || stored {
			base = w.end()
			batch := b
			batch.SetBaseOffset(base)
			w.ops = append(w.ops, op{batch: batch})
		}
		w.After(w.About(time.Millisecond), func() {
			s.appends--
			s.Do(func() {
				if fails {
					w.Count("append failed")
				}
				s.Appended(a.Life, s.Input(), base, fails)
				if w.Rand.IntN(20) == 0 {
					s.checkReplay()
				}
			})
		})
	})
}
