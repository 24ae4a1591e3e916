package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

func TestOfVeryManyPartitionsNothingIsTold(t *testing.T) {
	for n, want := range map[int32]int{maxAt: maxAt, maxAt + 1: 0} {
		g := newClassicGroup(base{id: "g"})
		g.offsets = map[string]*topicOffsets{"t": {parts: map[int32]kept{}}}
		w, x := whereabouts{b: &g.base}, &step{}
		w.add("u", 0)
		for p := range n {
			g.offsets["t"].parts[p] = kept{at: 5}
			w.add("t", p)
		}
		if got := x.tellAt(&w); len(got) != want || len(w.list) > maxAt {
			t.Errorf("%d partitions: %d are told", n, len(got))
		}
		if got := x.tellAt(&w); got != nil {
			t.Errorf("a second member of the step: %d are told", len(got))
		}
	}
}

// The account of a rebalance has where so many were, and no more.
func TestARebalanceTellsOfSoManyPartitions(t *testing.T) {
	var r rebalance
	for range 3 {
		r.add(journal.Trigger{At: make([]journal.Position, maxAt/2)})
	}
	if len(r.why) != 3 || len(r.why[1].At) != maxAt/2 || r.why[2].At != nil {
		t.Errorf("%d, %d and %d", len(r.why[0].At), len(r.why[1].At), len(r.why[2].At))
	}
}

// What members of another kind than consumers have is theirs.
func TestOnlyConsumersHavePartitions(t *testing.T) {
	assigned := (&kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{0}}}}).AppendTo(nil)
	for kind, want := range map[string]int{consumerType: 1, "connect": 0} {
		g := newClassicGroup(base{id: "g"})
		g.state, g.protocolType, g.offsets = Stable, kind, map[string]*topicOffsets{"t": {parts: map[int32]kept{0: {at: 5}}}}
		if got := g.atClassic(&step{}, &member{assigned: assigned}); len(got) != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}
