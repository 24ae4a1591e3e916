package group

import "slices"

// maxFenced is how many member ids that were fenced a static member remembers.
const maxFenced = 8

// fencing is the member ids with which somebody else came in a static member's
// name and was told FENCED_INSTANCE_ID.
type fencing struct {
	ids  []string // the latest, so that each is told of once
	told int      // how many, since the member itself took its place
}

func (f *fencing) isNew(id string) bool {
	if f.told == maxFenced || slices.Contains(f.ids, id) {
		return false
	}
	f.told++
	f.ids = append(f.ids[max(len(f.ids)-maxFenced+1, 0):], id)
	return true
}
