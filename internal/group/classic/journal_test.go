package classic

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

// The client may put what it likes into a reason; the journal keeps a part.
func TestJournalCutsReasons(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"closing", "closing"},
		{strings.Repeat("x", 255), strings.Repeat("x", 255)},
		{strings.Repeat("x", 256), strings.Repeat("x", 255)},
		{strings.Repeat("é", 300), strings.Repeat("é", 255)},
	} {
		if got := Trigger(journal.TriggerLeft, &Member{}, &c.in).Reason; got != c.want {
			t.Errorf("a reason of %d bytes is kept as %d bytes", len(c.in), len(got))
		}
	}
	m := &Member{}
	if got := Trigger(journal.TriggerLeft, m, nil).Reason; got != "" {
		t.Errorf("no reason is kept as %q", got)
	}
}

// The account of a rebalance has where so many were, and no more.
func TestARebalanceTellsOfSoManyPartitions(t *testing.T) {
	var r Rebalance
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
		g := New(kind.Base{ID: "g"})
		g.State, g.ProtocolType, g.Offsets = Stable, protocolType, map[string]*kind.TopicOffsets{"t": {Parts: map[int32]kind.Kept{0: {At: 5}}}}
		if got := g.positions(&kind.Step{}, &Member{Assigned: assigned}); len(got) != want {
			t.Errorf("%s: %v", protocolType, got)
		}
	}
}
