package modern

import "slices"

// Heartbeat is what a heartbeat says of what its client has.
type Heartbeat[P Part[P]] struct {
	Owned []P  // sorted
	Tells bool // it says what it has
}

// StillOwns says whether the client has not let go of all of these. One that does not say
// what it has still has what it had.
func (h *Heartbeat[P]) StillOwns(list []Held[P]) bool {
	return !h.Tells || slices.ContainsFunc(h.Owned, func(p P) bool { return Holds(list, p) })
}

// Target is what a member comes to, or towards.
type Target[P Part[P]] struct {
	Epoch int32
	// Wanted is what of its target assignment the member still subscribes to.
	Wanted func() []P
	// Wants says whether it still subscribes to what a partition is of.
	Wants func(P) bool
	// IsFree says whether it may be given a partition now.
	IsFree func(P) bool
	// Steps says that a member which has let go of something, and must let go of more, is one
	// epoch further, so that what it was told first cannot be taken for what it is told now.
	Steps bool
	// Unsubscribed says that it may not subscribe any more to what it has.
	Unsubscribed bool
}

// Reconcile brings a member nearer to its target: first it lets go of what it is not to have
// any more, and says so; then it gets what others have let go of.
func (n *Current[P]) Reconcile(h *Heartbeat[P], t *Target[P]) {
	if n.Epoch < 0 { // A static member is back.
		n.Epoch, n.Previous = EpochJoin, EpochJoin
	}
	switch {
	case n.State != Unrevoked || !h.StillOwns(n.Pending):
		n.advance(h, t)
	case t.Unsubscribed:
		n.dropUnsubscribed(t)
	}
}

// dropUnsubscribed has a member that is letting go of partitions let go of those too that it
// does not subscribe to any more, without waiting for a new target.
func (n *Current[P]) dropUnsubscribed(t *Target[P]) {
	kept := make([]Held[P], 0, len(n.Assigned))
	var dropped []Held[P]
	for _, p := range n.Assigned {
		if t.Wants(p.Part) {
			kept = append(kept, p)
		} else {
			dropped = append(dropped, p)
		}
	}
	if len(dropped) > 0 {
		n.Assigned, n.Pending = kept, Merged(n.Pending, dropped)
	}
}

// advance compares what a member has with what it is to have.
func (n *Current[P]) advance(h *Heartbeat[P], t *Target[P]) {
	kept, surplus, missing := Split(n.Assigned, t.Wanted())
	if len(surplus) > 0 && h.StillOwns(surplus) {
		if t.Steps && n.State == Unrevoked {
			n.Previous, n.Epoch = n.Epoch, n.Epoch+1
		}
		n.State, n.Assigned, n.Pending = Unrevoked, kept, surplus
		return
	}
	var granted []Held[P]
	n.State, n.Pending = Stable, nil
	for _, p := range missing {
		if t.IsFree(p) {
			granted = append(granted, Held[P]{p, t.Epoch})
		} else {
			n.State = Unreleased
		}
	}
	n.Assigned = Merged(kept, granted)
	if n.Epoch != t.Epoch {
		n.Previous, n.Epoch = n.Epoch, t.Epoch
	}
}

// EpochCheck is how the epoch that a heartbeat names compares with its member's.
type EpochCheck int8

// What a member that names an epoch may do.
const (
	EpochFine    EpochCheck = iota // it goes on
	EpochUnknown                   // a newer version left the member in a state that is not known
	EpochGreater                   // it is told to begin anew, as with the others
	EpochSmaller
	EpochAhead // its client has something of which nothing is stored any more
)

// Check says whether a member may go on from the epoch that it names, with what it has. The
// epoch before its own is as good if the answer that told it of its own was lost: then it has
// nothing that it should not have. Of a member that was loaded, and not heard of since, the
// log may have lost what its client has.
func (m *Member[P]) Check(epoch int32, h *Heartbeat[P]) EpochCheck {
	now := m.Now()
	switch {
	case !now.State.IsKnown() && (!h.Tells || len(h.Owned) > 0): // From nothing it can go on.
		return EpochUnknown
	case epoch == now.Epoch && m.Unheard && h.Tells && !now.covers(h.Owned):
		return EpochAhead
	case epoch == EpochJoin || epoch == now.Epoch:
		return EpochFine
	case epoch > now.Epoch:
		return EpochGreater
	case epoch == now.Previous && h.Tells && now.Has(h.Owned):
		return EpochFine
	}
	return EpochSmaller
}

// covers says whether all of these are assigned, or yet to be let go of.
func (n *Current[P]) covers(list []P) bool {
	return !slices.ContainsFunc(list, func(p P) bool { return !Holds(n.Assigned, p) && !Holds(n.Pending, p) })
}
