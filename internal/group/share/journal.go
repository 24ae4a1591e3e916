package share

import (
	"muster/internal/group/kind"
	"muster/internal/journal"
)

// counted counts share partitions by topic, for the journal.
type counted struct {
	list       []journal.TopicCount // the first
	last       string
	names, all int
}

// add counts one more partition; those of a topic come in a row.
func (c *counted) add(topic string) {
	if c.names == 0 || c.last != topic {
		c.last = topic
		if c.names++; c.names <= kind.MaxNames {
			c.list = append(c.list, journal.TopicCount{Topic: topic})
		}
	}
	if c.all++; c.names <= kind.MaxNames {
		c.list[len(c.list)-1].Partitions++
	}
}

// note tells that someone has changed the offsets of a group.
func (c *counted) note(x *kind.Step, g *Group, what journal.EntryKind, by *journal.Who) {
	if c.all == 0 || g.Gone {
		return
	}
	e := g.Entry(x, what)
	e.Cause, e.By = journal.CauseRequest, by
	e.Topics, e.TopicN, e.PartitionN = c.list, c.names, c.all
	x.Out.Notes = append(x.Out.Notes, &e)
}
