package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
)

// offsetCount counts offsets by topic, in the order in which they come.
type offsetCount struct {
	topics []journal.TopicCount // the first
	last   string               // topic
	names  int                  // how many topics
	all    int                  // how many partitions
	back   int                  // how many went back
	fresh  int                  // how many had no offset before
}

// add counts one more partition, whose offset was moved by so much.
func (c *offsetCount) add(topic string, moved int64) {
	c.all++
	if moved < 0 {
		c.back++
	}
	if c.names == 0 || c.last != topic {
		c.last = topic
		if c.names++; c.names <= kind.MaxNames {
			c.topics = append(c.topics, journal.TopicCount{Topic: topic})
		}
	}
	if c.names > kind.MaxNames {
		return
	}
	t := &c.topics[len(c.topics)-1]
	t.Partitions++
	switch {
	case moved < 0:
		t.Back++
	case moved > 0:
		t.Forward++
	}
}

// move counts a partition whose offset is about to change.
func (c *offsetCount) move(b *kind.Base, topic string, partition int32, to int64) {
	was, ok := b.Offsets[topic].Get(partition)
	if !ok {
		c.fresh++
		was.Offset = to
	}
	c.add(topic, to-was.Offset)
}

// noteOffsets tells that committed offsets were changed by a client that is no
// member, or are gone.
func (x step) noteOffsets(g kind.Group, kind journal.EntryKind, c offsetCount, cause journal.Cause, by *journal.Who) {
	if c.all > 0 {
		x.noteCount(g, kind, c, cause, by)
	}
	if g.Common().Gone { // A simple group, which was nothing but its offsets.
		x.noteCount(g, journal.KindDeleted, offsetCount{}, cause, by)
	}
}

func (x step) noteCount(g kind.Group, kind journal.EntryKind, c offsetCount, cause journal.Cause, by *journal.Who) {
	e := g.Entry(x.Step, kind)
	e.Cause, e.By = cause, by
	e.Topics, e.TopicN, e.PartitionN = c.topics, c.names, c.all
	x.Out.Notes = append(x.Out.Notes, &e)
}

// outsider says whether a commit is by a client that is no member, to a group that
// has no members: an administrator who resets offsets, or a consumer that only
// stores its offsets there.
func outsider(g kind.Group, m *kmsg.OffsetCommitRequest) bool {
	return g != nil && g.IsEmpty() && m.Generation < 0
}

// resetPause is after how long without commits from outside the next one is told.
const resetPause = 10 * time.Minute

// noteReset tells of a commit by an outsider. To a group that has had members
// that is a reset; but a consumer that does without groups, or a tool that copies
// offsets from elsewhere, commits all the time. Of the same client it is told
// again if an offset goes back, if it is the first of a partition, or after a
// pause. Of a group that never had members, only if an offset goes back.
func (x step) noteReset(g kind.Group, c *offsetCount, by *journal.Who) {
	tell := c.back > 0
	if g.HadMembers() {
		b := g.Common()
		last := b.Reset
		tell = tell || c.fresh > 0 || last == nil || last.By != *by || x.Now.Sub(last.At) >= resetPause
		b.Reset = &kind.Reset{By: *by, At: x.Now}
	}
	if tell {
		x.noteCount(g, journal.KindOffsetsReset, *c, journal.CauseRequest, by)
	}
}
