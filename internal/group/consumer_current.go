package group

import "slices"

// consumerNow is where a member has got to.
type consumerNow struct {
	epoch    int32
	previous int32
	state    memberState
	assigned []heldPart
	pending  []heldPart // to be let go of
}

// memberState is the state of a member of a consumer group, by Kafka's numbers.
type memberState int8

// isKnown says whether it is one of these. A newer version may have others.
func (s memberState) isKnown() bool { return s >= memberStable && s <= memberUnreleased }

// places is what is assigned to a member that has got there, nothing if it is nowhere.
func (n *consumerNow) places() []heldPart {
	if n == nil {
		return nil
	}
	return n.assigned
}

const (
	memberStable     memberState = 0
	memberUnrevoked  memberState = 1 // has yet to let go of partitions
	memberUnreleased memberState = 2 // waits for others to let go
)

// The epochs by which a member says that it leaves.
const (
	epochJoin        = 0
	epochLeave       = -1
	epochLeaveStatic = -2
)

// has says whether all of these are assigned.
func (n *consumerNow) has(list []part) bool {
	return !slices.ContainsFunc(list, func(p part) bool { return !holds(n.assigned, p) })
}

func (n *consumerNow) same(o *consumerNow) bool {
	return n.epoch == o.epoch && n.previous == o.previous && n.state == o.state && slices.Equal(n.assigned, o.assigned) && slices.Equal(n.pending, o.pending)
}
