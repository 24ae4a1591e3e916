package group

import (
	"testing"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Silence is stored in milliseconds, and loads are not at whole ones. A member that lives
// must not be given up early for that.
func TestSilenceIsNeverCountedForLongerThanItWas(t *testing.T) {
	const session = 45 * time.Second
	loaded := stableGroup(t)
	g := loaded.classic("g")
	for m := g.Members.First; m != nil; m = m.Next {
		m.Session = session
	}
	log := []machine.Batch{{Records: []machine.Record{g.Record()}}}
	for _, odd := range []time.Duration{0, 1, time.Microsecond, time.Millisecond - 1} {
		s, start := replayed(log, kind.DefaultConfig()), time.UnixMilli(1_700_000_000_000).Add(odd)
		fx := s.Step(machine.Input{Now: start, Event: machine.Loaded{}})
		for _, timer := range append([]machine.Timer(nil), fx.Timers...) {
			if timer.Key.Kind != kind.TimerSession {
				continue
			}
			out := s.Step(machine.Input{Now: timer.At, Event: machine.TimerFired{Key: timer.Key, Seq: timer.Seq}})
			if len(out.Batches) != 1 || len(out.Batches[0].Records) != 1 {
				t.Fatalf("a member that is silent writes %+v", out.Batches)
			}
			lasted, counts := out.Batches[0].Records[0].(*schema.SilenceRecord).Value.Lasted, timer.At.Sub(start)-kind.ReturnTime
			if lasted > counts || lasted <= counts-2*time.Millisecond {
				t.Errorf("loaded at %s, silent for %s, stored are %s", odd, counts, lasted)
			}
		}
	}
}
