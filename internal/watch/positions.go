package watch

import (
	"cmp"
	"iter"
	"slices"
	"sort"

	"muster/internal/metadata"
	"muster/internal/watch/lag"
)

// ownedPart is a partition that a member has.
type ownedPart struct {
	Part
	member *Member
}

func (p Part) compare(q Part) int {
	return cmp.Or(cmp.Compare(p.Topic, q.Topic), cmp.Compare(p.Partition, q.Partition))
}

// locate makes the positions of a group: where it has committed, and what its members have
// without a commit.
func (x *pass) locate(g *Group) {
	x.owned, x.positions, x.elsewhere = x.owned[:0], x.positions[:0], false
	for i := range g.Members {
		for _, p := range g.Members[i].Parts {
			x.owned = append(x.owned, ownedPart{p, &g.Members[i]})
		}
	}
	if inOrder := func(a, b ownedPart) int { return a.compare(b.Part) }; !slices.IsSortedFunc(x.owned, inOrder) {
		sort.SliceStable(x.owned, func(i, j int) bool { return inOrder(x.owned[i], x.owned[j]) < 0 })
	}
	// Where two have a partition, because one has yet to let go of it, either will do.
	x.owned = slices.CompactFunc(x.owned, func(a, b ownedPart) bool { return a.Part == b.Part })
	for i, j := 0, 0; i < len(g.Offsets) || j < len(x.owned); {
		var offset *Offset
		var owned *ownedPart
		c := x.next(g, i, j)
		if c <= 0 {
			offset = &g.Offsets[i]
			i++
		}
		if c >= 0 {
			owned = &x.owned[j]
			j++
		}
		x.positions = append(x.positions, x.position(g, offset, owned))
	}
}

// next says which of two lists goes on: that of offsets, that of what members have, or
// both.
func (x *pass) next(g *Group, i, j int) int {
	switch {
	case i == len(g.Offsets):
		return 1
	case j == len(x.owned):
		return -1
	}
	return g.Offsets[i].compare(x.owned[j].Part)
}

// position makes one of a committed offset, of a partition that a member has, or of both.
func (x *pass) position(g *Group, o *Offset, owned *ownedPart) lag.Position {
	p := lag.Position{Committed: lag.None}
	if o != nil {
		p.Topic, p.Partition, p.Committed, p.CommittedAt = o.Topic, o.Partition, o.Committed, o.At
		p.Behind = x.known(g.Row.Name, PartitionOffset{p.Topic, p.Partition, p.Committed})
	} else {
		p.Topic, p.Partition = owned.Topic, owned.Partition
	}
	exists, leader := x.leader(p.Topic, p.Partition)
	elsewhere := exists && leader != x.w.opts.Node && leader != metadata.NoBroker
	if elsewhere {
		x.elsewhere = true
		x.askNext(Part{p.Topic, p.Partition}, owned)
	}
	switch {
	case !g.Tells:
	case owned == nil:
		// A group that has left a topic leaves its offsets behind, which no one is to read.
		if _, subscribed := slices.BinarySearch(g.Topics, p.Topic); subscribed {
			p.Owner = lag.OwnerNone
		}
	default:
		if f := x.fetched(owned, elsewhere); f.Known {
			p.Owner, p.Fetched = lag.OwnerMember, f.At // Else no one knows whether it fetches, and it is not blamed.
		}
	}
	return p
}

// behind returns what was counted from a place on, nil if nothing was.
func (x *pass) behind(p PartitionOffset) *lag.Count {
	if len(x.counts) == 0 {
		return nil
	}
	c, ok := x.counts[p]
	if !ok {
		return nil
	}
	count := c.Count // So that only what was counted is made on the heap.
	return &count
}

// fetched returns when a member last fetched what it has. Of what another broker leads,
// that one has told.
func (x *pass) fetched(owned *ownedPart, elsewhere bool) Fetched {
	if !elsewhere {
		return x.w.opts.Source.Fetched(owned.member.Reader, owned.Topic, owned.Partition)
	}
	a := x.answers[owned.Part]
	if a == nil || !a.Known {
		return Fetched{}
	}
	if i := slices.Index(a.readers, owned.member.Reader); i >= 0 && i < len(a.Fetched) {
		return a.Fetched[i]
	}
	return Fetched{}
}

// eachTopic goes over the topics that a group reads or has committed, in order. The
// positions are its own.
func (x *pass) eachTopic(g *Group) iter.Seq[string] {
	return func(yield func(string) bool) {
		i, j := 0, 0
		for i < len(x.positions) || j < len(g.Topics) {
			var topic string
			switch {
			case i == len(x.positions):
				topic = g.Topics[j]
			case j == len(g.Topics):
				topic = x.positions[i].Topic
			default:
				topic = min(x.positions[i].Topic, g.Topics[j])
			}
			for i < len(x.positions) && x.positions[i].Topic == topic {
				i++
			}
			for j < len(g.Topics) && g.Topics[j] == topic {
				j++
			}
			if !yield(topic) {
				return
			}
		}
	}
}
