package group

import (
	"testing"

	"muster/internal/machine"
)

// A load is about all groups at once, and what it needed room for is not kept
// for the heartbeats that come after it.
func TestTheRoomOfALargeStepIsGivenBack(t *testing.T) {
	s, beat := beats(t)
	s.step.out = machine.Effects{
		Replies: make([]machine.Reply, 10_000), Timers: make([]machine.Timer, 10_000), Notes: s.step.out.Notes,
	}
	s.step.records = make([]machine.Record, 10_000)
	beat()
	if x := &s.step; cap(x.out.Replies) > keep || cap(x.out.Timers) > keep || cap(x.records) > keep {
		t.Errorf("room is kept for %d replies, %d timers and %d records", cap(x.out.Replies), cap(x.out.Timers), cap(x.records))
	}
}
