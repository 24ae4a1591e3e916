package group

import (
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// commitGroupNotFound is the version of OffsetCommit from which an unknown group
// is reported as such; before that, as an old generation.
const commitGroupNotFound = 9

// commit handles OffsetCommit. Topics and partitions that do not exist have been
// taken out before.
func (x step) commit(r *machine.Request, m *kmsg.OffsetCommitRequest) {
	resp := kmsg.NewPtrOffsetCommitResponse()
	resp.Version = m.Version
	replacing := replaces(m)
	var err *kerr.Error
	if !replacing {
		err = x.checkCommit(r, m)
	}
	g := x.Groups[m.Group]
	ask, named := journal.ResetAskOf(&m.UnknownTags)
	if named && !replacing && g != nil && !g.IsEmpty() {
		x.resetLive(r, m, ask)
		return
	}
	var moved []journal.Moved
	var reset *offsetCount // for the journal, if someone from outside commits
	if err == nil && !replacing && !named && outsider(g, m) {
		reset = &offsetCount{}
	}
	for i := range m.Topics {
		t := &m.Topics[i]
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for j := range t.Partitions {
			p := kmsg.NewOffsetCommitResponseTopicPartition()
			p.Partition = t.Partitions[j].Partition
			code := err
			switch {
			case replacing:
				x.replaceOne(m.Group, t.Topic, &t.Partitions[j])
			case code == nil:
				move := movedBy(g, t.Topic, p.Partition, t.Partitions[j].Offset)
				if code = x.commitOne(m, t, &t.Partitions[j], reset); code == nil && named {
					moved = append(moved, move)
				}
			}
			if code != nil {
				p.ErrorCode = code.Code
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	if reset != nil && reset.all > 0 {
		x.noteReset(g, reset, kind.By(r))
	}
	if len(moved) > 0 {
		x.noteMoved(x.Groups[m.Group], ask.Plan, "", moved, kind.By(r))
	}
	x.Reply(r.ID, resp)
}

// checkCommit says whether the client may commit now.
func (x step) checkCommit(r *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error {
	g := x.Groups[m.Group]
	if g == nil {
		switch {
		case m.Generation < 0:
			return nil // A simple group, which the first offset makes.
		case m.Version >= commitGroupNotFound:
			return kerr.GroupIDNotFound
		}
		return kerr.IllegalGeneration
	}
	return g.CheckCommit(x.Step, r, m)
}

// commitOne stores one offset.
func (x step) commitOne(m *kmsg.OffsetCommitRequest, t *kmsg.OffsetCommitRequestTopic, p *kmsg.OffsetCommitRequestTopicPartition, reset *offsetCount) *kerr.Error {
	o := schema.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, CommitTimestamp: x.Now.UnixMilli(), ExpireTimestamp: -1}
	if m.Version >= 2 && m.Version <= 4 && m.RetentionTimeMillis != -1 {
		o.ExpireTimestamp = o.CommitTimestamp + m.RetentionTimeMillis
	}
	rec := &schema.OffsetRecord{Group: m.Group, Topic: t.Topic, Partition: p.Partition, Value: &o}
	if err := x.fillOffset(rec, p.Metadata); err != nil {
		return err
	}
	if reset != nil {
		reset.move(x.Groups[m.Group].Common(), t.Topic, p.Partition, o.Offset)
	}
	if g := x.Groups[m.Group]; g != nil && len(g.Common().Unstable) > 0 {
		x.forgetStale(rec)
	}
	x.Write(rec)
	return nil
}

// fillOffset adds a client's metadata and the topic's id to the record of an
// offset, and says whether it can be stored.
func (x step) fillOffset(rec *schema.OffsetRecord, metadata *string) *kerr.Error {
	if rec.Topic == "" { // The handler knows that there is none. Here it would read as a group's record.
		return kerr.UnknownTopicOrPartition
	}
	if metadata != nil {
		if characters(*metadata) > x.Cfg.MaxMetadata {
			return kerr.OffsetMetadataTooLarge
		}
		rec.Value.Metadata = *metadata
	}
	if x.Image != nil {
		topic := x.Image.Topic(rec.Topic)
		if topic == nil { // It was deleted after the request was let in, and no one would forget the offset.
			return kerr.UnknownTopicOrPartition
		}
		if rec.Value.ExpireTimestamp == -1 { // A record with an expiry has no place for the id.
			rec.Value.TopicID = topic.ID
		}
	}
	if !x.Fits(rec) {
		return kerr.InvalidCommitOffsetSize
	}
	return nil
}

// characters counts them as Java does, in UTF-16 code units.
func characters(s string) int {
	n := 0
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
