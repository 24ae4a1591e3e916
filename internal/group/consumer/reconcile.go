package consumer

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/metadata"
)

// Toward is what a member comes to.
func (g *Group) Toward(x *kind.Step, mem *Member) modern.Target[Partition] {
	wants := g.subscribesTo(mem, x.Image)
	return modern.Target[Partition]{
		Wanted: func() []Partition { return g.wantedPartitions(mem, x.Image) },
		Wants:  func(p Partition) bool { return wants(p.Topic) },
		IsFree: func(p Partition) bool { return g.isFree(p, mem) },
	}
}

// isFree says whether a member may be given a partition now. What it was letting go of
// itself it may have back.
func (g *Group) isFree(p Partition, mem *Member) bool {
	owner := g.Owners[p]
	return owner == mem || owner == nil && g.AllHeard()
}

// subscribesTo says which topics a member subscribes to.
func (g *Group) subscribesTo(mem *Member, image *metadata.Image) func(metadata.TopicID) bool {
	var resolved []string
	if r := g.Regexes[mem.pattern()]; r != nil {
		resolved = r.Topics
	}
	var last metadata.TopicID
	wanted, asked := false, false
	return func(id metadata.TopicID) bool {
		if asked && id == last { // Lists are sorted by topic.
			return wanted
		}
		last, asked, wanted = id, true, false
		if image == nil {
			return false
		}
		if t := image.TopicByID(id); t != nil {
			_, named := slices.BinarySearch(mem.Metadata.Topics, t.Name)
			_, matched := slices.BinarySearch(resolved, t.Name)
			wanted = named || matched
		}
		return wanted
	}
}

// wantedPartitions is what of its target a member still subscribes to.
func (g *Group) wantedPartitions(mem *Member, image *metadata.Image) []Partition {
	wants := g.subscribesTo(mem, image)
	out := make([]Partition, 0, len(mem.Target))
	for _, p := range mem.Target {
		if wants(p.Topic) {
			out = append(out, p)
		}
	}
	return out
}
