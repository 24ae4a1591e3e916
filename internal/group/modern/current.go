package modern

import "slices"

// Current is where a member has got to.
type Current[P Part[P]] struct {
	Epoch    int32
	Previous int32
	State    MemberState
	Assigned []Held[P]
	Pending  []Held[P] // to be let go of
}

// MemberState is the state of a member, by Kafka's numbers.
type MemberState int8

// IsKnown says whether it is one of these. A newer version may have others.
func (s MemberState) IsKnown() bool { return s >= Stable && s <= Unreleased }

// AssignedParts is what is assigned to a member that has got there, nothing if it is nowhere.
func (n *Current[P]) AssignedParts() []Held[P] {
	if n == nil {
		return nil
	}
	return n.Assigned
}

// The states.
const (
	Stable     MemberState = 0
	Unrevoked  MemberState = 1 // has yet to let go of partitions
	Unreleased MemberState = 2 // waits for others to let go
)

// Has says whether all of these are assigned.
func (n *Current[P]) Has(list []P) bool {
	return !slices.ContainsFunc(list, func(p P) bool { return !Holds(n.Assigned, p) })
}

// Same says whether nothing differs.
func (n *Current[P]) Same(o *Current[P]) bool {
	return n.Epoch == o.Epoch && n.Previous == o.Previous && n.State == o.State && slices.Equal(n.Assigned, o.Assigned) && slices.Equal(n.Pending, o.Pending)
}
