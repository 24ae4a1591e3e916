package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// beats returns a shard with a Stable group of two, and a function that has a
// healthy member beat.
func beats(t testing.TB) (*Shard, func() machine.Effects) {
	s := stableGroup(t)
	g := s.groups["g"]
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, "g", g.members.first.id, g.generation
	in := machine.Input{Now: g.members.first.deadline.Add(-g.members.first.session), Event: machine.Request{ID: 7, ClientID: "a", Host: "10.0.0.1", Msg: req}}
	return s, func() machine.Effects { return s.Step(in) }
}

// A heartbeat is what a broker does most. It may allocate its answer, and
// nothing else: no record, no timer, nothing for the journal.
func TestHeartbeatCostsItsAnswer(t *testing.T) {
	_, beat := beats(t)
	fx := beat()
	if len(fx.Replies) != 1 || fx.Replies[0].Msg.(*kmsg.HeartbeatResponse).ErrorCode != 0 {
		t.Fatalf("the answer is %+v", fx.Replies)
	}
	if len(fx.Batches)+len(fx.Timers)+len(fx.Journal) > 0 {
		t.Errorf("a heartbeat has effects: %+v", fx)
	}
	// The answer, the list that it is in, and the step.
	if n := testing.AllocsPerRun(1000, func() { beat() }); n > 3 {
		t.Errorf("a heartbeat allocates %v times", n)
	}
}

func BenchmarkHeartbeat(b *testing.B) {
	_, beat := beats(b)
	b.ReportAllocs()
	for b.Loop() {
		beat()
	}
}
