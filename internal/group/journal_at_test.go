package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

func TestOfVeryManyPartitionsNothingIsTold(t *testing.T) {
	for n, want := range map[int32]int{kind.MaxAt: kind.MaxAt, kind.MaxAt + 1: 0} {
		g := classic.New(kind.Base{ID: "g"})
		g.Offsets = map[string]*kind.TopicOffsets{"t": {Parts: map[int32]kind.Kept{}}}
		w, x := kind.Whereabouts{B: &g.Base}, &kind.Step{}
		w.Add("u", 0)
		for p := range n {
			g.Offsets["t"].Parts[p] = kind.Kept{At: 5}
			w.Add("t", p)
		}
		if got := x.TellAt(&w); len(got) != want || len(w.List) > kind.MaxAt {
			t.Errorf("%d partitions: %d are told", n, len(got))
		}
		if got := x.TellAt(&w); got != nil {
			t.Errorf("a second member of the step: %d are told", len(got))
		}
	}
}

// The account of a rebalance has where so many were, and no more.
func TestARebalanceTellsOfSoManyPartitions(t *testing.T) {
	var r classic.Rebalance
	for range 3 {
		r.Add(journal.Trigger{At: make([]journal.Position, kind.MaxAt/2)})
	}
	if len(r.Why) != 3 || len(r.Why[1].At) != kind.MaxAt/2 || r.Why[2].At != nil {
		t.Errorf("%d, %d and %d", len(r.Why[0].At), len(r.Why[1].At), len(r.Why[2].At))
	}
}

// What members of another kind than consumers have is theirs.
func TestOnlyConsumersHavePartitions(t *testing.T) {
	assigned := (&kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{0}}}}).AppendTo(nil)
	for protocolType, want := range map[string]int{subscription.ConsumerType: 1, "connect": 0} {
		g := classic.New(kind.Base{ID: "g"})
		g.State, g.ProtocolType, g.Offsets = classic.Stable, protocolType, map[string]*kind.TopicOffsets{"t": {Parts: map[int32]kind.Kept{0: {At: 5}}}}
		if got := g.AtClassic(&kind.Step{}, &classic.Member{Assigned: assigned}); len(got) != want {
			t.Errorf("%s: %v", protocolType, got)
		}
	}
}
