package consumer

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/metadata"
)

// commitEpoch is the version of OffsetCommit from which clients know of epochs.
const commitEpoch = 9

// TxnCommitEpoch is the same of TxnOffsetCommit.
const TxnCommitEpoch = 6

// checkOffsetCommit says whether someone may commit offsets to a consumer group
// now. A member that has not heard of its latest epoch may for what it has had since
// the one it knows, or longer (KIP-1251): all or nothing.
func (g *Group) checkOffsetCommit(x *kind.Step, m *kmsg.OffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && g.Present == 0 {
		return nil
	}
	mem := g.Member(m.MemberID)
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case mem.Metadata.Classic == nil && m.Version < commitEpoch:
		return kerr.UnsupportedVersion
	}
	had := func() bool {
		return !slices.ContainsFunc(m.Topics, func(t kmsg.OffsetCommitRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.OffsetCommitRequestTopicPartition) bool {
				return !mem.had(x.Image, t.Topic, p.Partition, m.Generation)
			})
		})
	}
	return mem.checkCommitEpoch(m.Generation, had)
}

// checkTxnOffsetCommit is the same for offsets in a transaction. Older clients do not
// know the newer errors there.
func (g *Group) checkTxnOffsetCommit(x *kind.Step, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && (g.Present == 0 || m.MemberID == "" && m.InstanceID == nil) {
		return nil
	}
	mem := g.Member(m.MemberID)
	if mem == nil {
		return kerr.UnknownMemberID
	}
	had := func() bool {
		return !slices.ContainsFunc(m.Topics, func(t kmsg.TxnOffsetCommitRequestTopic) bool {
			return slices.ContainsFunc(t.Partitions, func(p kmsg.TxnOffsetCommitRequestTopicPartition) bool {
				return !mem.had(x.Image, t.Topic, p.Partition, m.Generation)
			})
		})
	}
	err := mem.checkCommitEpoch(m.Generation, had)
	if err != nil && m.Version < TxnCommitEpoch {
		return kerr.IllegalGeneration
	}
	return err
}

// checkCommitEpoch compares the epoch that a commit names with the member's.
func (mem *Member) checkCommitEpoch(epoch int32, had func() bool) *kerr.Error {
	now := mem.Now()
	switch {
	case epoch == now.Epoch || epoch < now.Epoch && epoch >= 0 && had():
		return nil
	case mem.Metadata.Classic != nil:
		return kerr.IllegalGeneration
	}
	return kerr.StaleMemberEpoch
}

// had says whether a member has had a partition since an epoch, or longer.
func (mem *Member) had(image *metadata.Image, topic string, n, epoch int32) bool {
	if image == nil {
		return false
	}
	t := image.Topic(topic)
	return t != nil && mem.Had(Partition{Topic: t.ID, Number: n}, epoch)
}

// CheckFetch says whether someone who says that it is a member may ask for
// offsets: one that has been fenced must not go on from them.
func (g *Group) CheckFetch(req *kmsg.OffsetFetchRequestGroup) *kerr.Error {
	if req.MemberID == nil && req.MemberEpoch < 0 {
		return nil
	}
	mem := g.Member(OrEmpty(req.MemberID))
	switch {
	case mem == nil:
		return kerr.UnknownMemberID
	case mem.Now().Epoch != req.MemberEpoch && mem.Metadata.Classic != nil:
		return kerr.IllegalGeneration
	case mem.Now().Epoch != req.MemberEpoch:
		return kerr.StaleMemberEpoch
	}
	return nil
}

// subscribes says which topics members subscribe to.
func (g *Group) subscribes() func(topic string) bool {
	matched := map[string]bool{}
	for _, m := range g.Members {
		if r := g.Regexes[m.pattern()]; r != nil && !matched["\x00"+m.pattern()] {
			matched["\x00"+m.pattern()] = true
			for _, t := range r.Topics {
				matched[t] = true
			}
		}
	}
	return func(topic string) bool { return g.Names[topic] > 0 || matched[topic] }
}
