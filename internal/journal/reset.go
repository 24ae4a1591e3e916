package journal

// Reset is what an entry tells of a reset: that it begins, what it moved, or why it moved nothing.
type Reset struct {
	Plan   string      `json:"plan"` // its name
	Method ResetMethod `json:"method,omitempty"`
	Reason string      `json:"reason,omitempty"` // why it was not applied
	// Moved is all of the offsets, however many: by it a reset is undone.
	Moved []Moved `json:"moved,omitempty"`
}

// Moved is a committed offset that a reset has moved. Offsets are strings, since JavaScript's
// numbers are too small.
type Moved struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Before    int64  `json:"before,string"` // -1 if nothing was committed
	After     int64  `json:"after,string"`
}

// ResetMethod is how members are brought to read from where a reset has moved them.
type ResetMethod string

// The methods. A group that had no members needs none.
const (
	ResetRebalance ResetMethod = "rebalance" // members give up everything when they join again, and ask where to begin
	ResetWithhold  ResetMethod = "withhold"  // the partitions are assigned to no one, until no member has them
	ResetRemove    ResetMethod = "remove"    // members that had the partitions are removed
)

func (r *Reset) size() int {
	if r == nil {
		return 0
	}
	n := itemSize + len(r.Plan) + len(r.Method) + len(r.Reason)
	for i := range r.Moved {
		n += itemSize + len(r.Moved[i].Topic)
	}
	return n
}
