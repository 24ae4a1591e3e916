package kind

import "slices"

// maxFenced is how many member ids that were fenced a static member remembers.
const maxFenced = 8

// Fencing is the member ids with which someone else came in a static member's
// name and was told FENCED_INSTANCE_ID.
type Fencing struct {
	ids  []string // the latest, so that each is told of once
	Told int      // how many, since the member itself took its place
}

func (f *Fencing) IsNew(id string) bool {
	if f.Told == maxFenced || slices.Contains(f.ids, id) {
		return false
	}
	f.Told++
	f.ids = append(f.ids[max(len(f.ids)-maxFenced+1, 0):], id)
	return true
}
