package group

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

// commitEpoch is the version of OffsetCommit from which clients know of epochs.
const commitEpoch = 9

// txnCommitEpoch is the same of TxnOffsetCommit.
const txnCommitEpoch = 6

// checkConsumerCommit says whether somebody may commit offsets to a consumer group
// now. A member that has not heard of its latest epoch may for what it has had since
// the one it knows, or longer (KIP-1251): all or nothing.
func (g *consumerGroup) checkConsumerCommit(x *step, m *kmsg.OffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && g.present == 0 {
		return nil
	}
	mem := g.member(m.MemberID)
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case mem.says.Classic == nil && m.Version < commitEpoch:
		return kerr.UnsupportedVersion
	}
	had := func() bool {
		return !slices.ContainsFunc(m.Topics, func(t kmsg.OffsetCommitRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
				return !mem.had(x.image, t.Topic, p.Partition, m.Generation)
			})
		})
	}
	return mem.checkCommitEpoch(m.Generation, had)
}

// checkConsumerTxnCommit is the same for offsets in a transaction. Older clients do not
// know the newer errors there.
func (g *consumerGroup) checkConsumerTxnCommit(x *step, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && (g.present == 0 || m.MemberID == "" && m.InstanceID == nil) {
		return nil
	}
	mem := g.member(m.MemberID)
	if mem == nil {
		return kerr.UnknownMemberID
	}
	had := func() bool {
		return !slices.ContainsFunc(m.Topics, func(t kmsg.TxnOffsetCommitRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.TxnOffsetCommitRequestTopicPartition) bool {
				return !mem.had(x.image, t.Topic, p.Partition, m.Generation)
			})
		})
	}
	err := mem.checkCommitEpoch(m.Generation, had)
	if err != nil && m.Version < txnCommitEpoch {
		return kerr.IllegalGeneration
	}
	return err
}

// checkCommitEpoch compares the epoch that a commit names with the member's.
func (mem *consumerMember) checkCommitEpoch(epoch int32, had func() bool) *kerr.Error {
	now := mem.now()
	switch {
	case epoch == now.epoch || epoch < now.epoch && epoch >= 0 && had():
		return nil
	case mem.says.Classic != nil:
		return kerr.IllegalGeneration
	}
	return kerr.StaleMemberEpoch
}

// had says whether a member has had a partition since an epoch, or longer.
func (mem *consumerMember) had(image *metadata.Image, topic string, n, epoch int32) bool {
	if image == nil {
		return false
	}
	t := image.Topic(topic)
	if t == nil || mem.current == nil {
		return false
	}
	p := part{t.ID, n}
	since, ok := sinceOf(mem.current.assigned, p)
	if !ok {
		since, ok = sinceOf(mem.current.pending, p)
	}
	return ok && since <= epoch
}

// checkFetch says whether somebody who says that it is a member may ask for
// offsets: one that has been fenced must not go on from them.
func (g *consumerGroup) checkFetch(req *kmsg.OffsetFetchRequestGroup) *kerr.Error {
	if req.MemberID == nil && req.MemberEpoch < 0 {
		return nil
	}
	mem := g.member(orEmpty(req.MemberID))
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case mem.now().epoch != req.MemberEpoch && mem.says.Classic != nil:
		return kerr.IllegalGeneration
	case mem.now().epoch != req.MemberEpoch:
		return kerr.StaleMemberEpoch
	}
	return nil
}

// subscribes says which topics members subscribe to.
func (g *consumerGroup) subscribes() func(topic string) bool {
	matched := map[string]bool{}
	for _, m := range g.members {
		if r := g.regexes[m.pattern()]; r != nil && !matched["\x00"+m.pattern()] {
			matched["\x00"+m.pattern()] = true
			for _, t := range r.topics {
				matched[t] = true
			}
		}
	}
	return func(topic string) bool { return g.names[topic] > 0 || matched[topic] }
}
