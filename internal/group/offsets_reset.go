package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// resetLive handles an OffsetCommit that moves the offsets of a group which has members. Who
// sent it is answered when they are moved, or will not be.
func (x step) resetLive(r *machine.Request, m *kmsg.OffsetCommitRequest, ask journal.ResetAsk) {
	g := x.Groups[m.Group]
	live := &kind.LiveReset{ID: r.ID, Ask: ask, By: *kind.By(r), Resp: kmsg.NewPtrOffsetCommitResponse(), Check: x.shard.checkReset}
	live.Resp.Version = m.Version
	live.Tell = func(ks *kind.Step, g kind.Group) {
		step{ks, x.shard}.noteMoved(g, ask.Plan, live.Method, live.Moved(), &live.By)
	}
	bad := false
	for i := range m.Topics {
		t := &m.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			o := schema.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, ExpireTimestamp: -1}
			move := kind.ResetMove{TopicID: t.TopicID, Record: &schema.OffsetRecord{Group: m.Group, Topic: t.Topic, Partition: p.Partition, Value: &o}}
			if move.Err = x.fillOffset(move.Record, p.Metadata); move.Err != nil {
				bad = true
			}
			live.Moves = append(live.Moves, move)
		}
	}
	can, ok := g.(kind.Resettable)
	switch {
	case m.Generation >= 0 || m.MemberID != "" || m.InstanceID != nil:
		live.Refuse(x.Step, "a member cannot reset its own group")
	case bad:
		live.Refuse(x.Step, "some of the offsets cannot be stored")
	case len(live.Moves) == 0:
		x.Reply(r.ID, live.Resp)
	case !ok:
		live.Refuse(x.Step, "a group of type "+string(g.Kind())+" can be reset only while it has no members")
	default:
		x.Weigh(m.Group) // It may lose members.
		if why := can.BeginReset(x.Step, live); why != "" {
			live.Refuse(x.Step, why)
		}
	}
}

// checkReset says whether an offset of a reset can still be stored, and removes what would
// take it along: the topic may be gone by now, or be another.
func (s *Shard) checkReset(ks *kind.Step, rec *schema.OffsetRecord) *kerr.Error {
	x := step{ks, s}
	if x.Image != nil {
		if isStale(rec.Value, x.Image.Topic(rec.Topic)) {
			return kerr.UnknownTopicOrPartition
		}
	}
	x.forgetStale(rec)
	return nil
}

// noteMoved tells of a reset: of all that it has moved, so that it can be undone.
func (x step) noteMoved(g kind.Group, plan string, method journal.ResetMethod, moved []journal.Moved, by *journal.Who) {
	var c offsetCount
	for i := range moved {
		m := &moved[i]
		if m.Before < 0 {
			c.add(m.Topic, 0)
			continue
		}
		c.add(m.Topic, m.After-m.Before)
	}
	x.noteCount(g, journal.KindOffsetsReset, c, journal.CauseRequest, by)
	x.Out.Notes[len(x.Out.Notes)-1].(*journal.Entry).Reset = &journal.Reset{Plan: plan, Method: method, Moved: moved}
}

// movedBy is what a commit moves.
func movedBy(g kind.Group, topic string, partition int32, to int64) journal.Moved {
	before := int64(-1)
	if g != nil {
		if o, ok := g.Common().Offsets[topic].Get(partition); ok {
			before = o.Offset
		}
	}
	return journal.Moved{Topic: topic, Partition: partition, Before: before, After: to}
}
