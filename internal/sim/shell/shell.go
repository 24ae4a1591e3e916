// Package shell carries a pump and its core in a simulated world, as package
// coordinator does in a broker: the event heap does what locks, goroutines and clocks
// do there. What it does not know is where answers, questions and records go: that is
// its host's, and the host decides what goes wrong with them.
package shell

import (
	"slices"
	"time"

	"muster/internal/coordinator/pump"
	"muster/internal/machine"
	"muster/internal/sim/seeds"
)

// Host is where a shell runs.
type Host interface {
	// Input is what a step is given beside its event.
	Input() machine.Input
	// Do does something later for the shell: when its broker can, or never if the shell
	// is gone.
	Do(func())
	// Out takes what the pump lets out.
	Out(life uint64, out pump.Out)
	// Lost is that an append has failed, and with it the life of the core. It is told
	// after all that was let out before.
	Lost()
	// Append has a batch appended, of which the pump must hear by Appended.
	Append(pump.Append)
}

// Shell carries a pump.
type Shell struct {
	Pump *pump.Pump
	Soon bool // an append is about to begin

	w       *seeds.World
	host    Host
	pace    Pace
	wakeFor time.Time
	wakes   int // counts, so that a wake that was set for another time is ignored
}

// Pace is how fast the runtime is.
type Pace struct {
	Moment  time.Duration  // that passes before an append begins, on average
	Skew    time.Duration  // of the clock that the core is given
	Late    func() float64 // the share of timers that are late
	MaxLate time.Duration
	Plant   Plant // a fault of the core, nil for none
}

// New returns a shell whose core is still to be loaded.
func New(w *seeds.World, host Host, pace Pace) *Shell {
	return &Shell{Pump: pump.New(), w: w, host: host, pace: pace}
}

// Begin gives the pump the core that was loaded for a life of it.
func (s *Shell) Begin(life uint64, core machine.Core, loaded machine.Loaded) {
	if s.pace.Plant != nil {
		core = &planted{core, loaded, s.pace.Plant}
	}
	if !s.Pump.Begin(life, core, loaded, s.host.Input()) {
		s.w.Violated("the pump does not take the core that was loaded for it")
	}
}

// Request gives the core a request.
func (s *Shell) Request(r machine.Request) {
	if !s.Pump.Request(s.host.Input(), r) {
		s.w.Violated("the pump does not take a request")
	}
	s.Drain()
}

// Tell gives the core an event.
func (s *Shell) Tell(e machine.Event) {
	s.Pump.Tell(s.host.Input(), e)
	s.Drain()
}

// Sent gives a life of the core the outcome of a send.
func (s *Shell) Sent(life uint64, out machine.Sent) {
	s.Pump.Sent(life, s.host.Input(), out)
	s.Drain()
}

// TaskDone gives a life of the core the result of a task.
func (s *Shell) TaskDone(life uint64, id uint64, result any) {
	s.Pump.TaskDone(life, s.host.Input(), machine.TaskDone{ID: id, Result: result})
	s.Drain()
}

// Appended tells the pump what became of an append, whichever life it is in.
func (s *Shell) Appended(life uint64, in machine.Input, base int64, failed bool) {
	s.Pump.Appended(life, in, base, failed)
	s.Drain()
}

// Drain does what the pump wants done.
func (s *Shell) Drain() {
	out, life := s.Pump.Drain(), s.Pump.Life()
	// What is let out may come back at once, and the pump uses its lists again.
	out.Replies, out.Notes = slices.Clone(out.Replies), slices.Clone(out.Notes)
	out.Sends, out.Tasks = slices.Clone(out.Sends), slices.Clone(out.Tasks)
	s.Pump.Drained()
	s.host.Out(life, out)
	if out.Lost {
		s.host.Lost()
	}
	s.append()
	s.setWake()
}

// append has the next append begin, at once or a moment later: that is for the runtime
// to decide, and what comes meanwhile is part of it.
func (s *Shell) append() {
	begin := func() {
		s.Soon = false
		if a, ok := s.Pump.Append(); ok {
			s.host.Append(a)
		}
	}
	switch {
	case s.Soon || !s.Pump.Ready():
	case s.w.Rand.IntN(2) == 0:
		begin()
	default:
		s.Soon = true
		s.w.Count("append begun a moment later")
		s.w.After(s.w.About(s.pace.Moment), func() { s.host.Do(begin) })
	}
}

// setWake has the pump fire its timers when the next is due, or late.
func (s *Shell) setWake() {
	next := s.Pump.Next()
	if next.IsZero() || next.Equal(s.wakeFor) {
		return
	}
	s.wakeFor = next
	s.wakes++
	at, this := next.Sub(seeds.Start)-s.pace.Skew+s.w.About(time.Millisecond), s.wakes
	if s.w.Chance(s.pace.Late()) {
		at += s.w.Between(0, s.pace.MaxLate)
	}
	s.w.At(at, func() {
		s.host.Do(func() {
			if s.wakes == this {
				s.wakeFor = time.Time{}
				s.Pump.Fire(s.host.Input())
				s.Drain()
			}
		})
	})
}
