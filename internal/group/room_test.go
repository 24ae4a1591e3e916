package group

import (
	"testing"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// A load is about all groups at once, and what it needed room for is not kept
// for the heartbeats that come after it.
func TestTheRoomOfALargeStepIsGivenBack(t *testing.T) {
	s, beat := beats(t)
	s.step.Out = machine.Effects{
		Replies: make([]machine.Reply, 10_000), Timers: make([]machine.Timer, 10_000), Notes: s.step.Out.Notes,
	}
	s.step.Records = make([]machine.Record, 10_000)
	beat()
	if x := &s.step; cap(x.Out.Replies) > kind.Keep || cap(x.Out.Timers) > kind.Keep || cap(x.Records) > kind.Keep {
		t.Errorf("room is kept for %d replies, %d timers and %d records", cap(x.Out.Replies), cap(x.Out.Timers), cap(x.Records))
	}
}
