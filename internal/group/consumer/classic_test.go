package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/subscription"
)

// An assignment has the version of the subscription, up to the newest that there is.
func TestAssignmentsHaveTheVersionOfTheSubscription(t *testing.T) {
	for meta, want := range map[int16]int16{0: 0, 1: 1, 3: 3, 7: 3, -1: 0} {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version = meta
		a, ok := subscription.ParseAssignment(AssignmentBytes(nil, nil, m.AppendTo(nil)))
		if !ok || a.Version != want {
			t.Errorf("a subscription of version %d has an assignment of version %d (%t), not %d", meta, a.Version, ok, want)
		}
	}
}
