package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// A member that has not heard of its latest epoch commits what it has had since the one that
// it knows (KIP-1251): all or nothing.
func TestACommitOfAnOlderEpochIsForWhatAMemberHadThen(t *testing.T) {
	held := func(n, since int32) Held {
		return Held{Part: Partition{Topic: topicT, Number: n}, Since: since}
	}
	s, g := newSmall(t), New(kind.Base{ID: "g"})
	g.Present, g.Members = 1, []*Member{{
		Member:   modern.Member[Partition]{ID: "m", Current: &Current{Epoch: 7, Previous: 6, Assigned: []Held{held(0, 5), held(1, 7)}}},
		Metadata: &schema.ConsumerMember{},
	}}
	var x kind.Step
	x.Begin(&s.Shard, &machine.Input{Now: s.now, Image: s.image})
	for _, c := range []struct {
		epoch      int32
		partitions []int32
		want       *kerr.Error
	}{
		{7, []int32{0, 1}, nil},
		{6, []int32{0}, nil},
		{5, []int32{0}, nil},
		{4, []int32{0}, kerr.StaleMemberEpoch},
		{6, []int32{1}, kerr.StaleMemberEpoch},
		{6, []int32{0, 1}, kerr.StaleMemberEpoch},
		{8, []int32{0}, kerr.StaleMemberEpoch},
		{-1, []int32{0}, kerr.StaleMemberEpoch},
	} {
		plain, inTxn := kmsg.NewPtrOffsetCommitRequest(), kmsg.NewPtrTxnOffsetCommitRequest()
		plain.Version, plain.MemberID, plain.Generation = commitEpoch, "m", c.epoch
		inTxn.Version, inTxn.MemberID, inTxn.Generation = TxnCommitEpoch, "m", c.epoch
		plain.Topics, inTxn.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "t"}}, []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t"}}
		for _, n := range c.partitions {
			plain.Topics[0].Partitions = append(plain.Topics[0].Partitions, kmsg.OffsetCommitRequestTopicPartition{Partition: n})
			inTxn.Topics[0].Partitions = append(inTxn.Topics[0].Partitions, kmsg.TxnOffsetCommitRequestTopicPartition{Partition: n})
		}
		if err := g.checkOffsetCommit(&x, plain); err != c.want {
			t.Errorf("epoch %d of %v: %v", c.epoch, c.partitions, err)
		}
		if err := g.checkTxnOffsetCommit(&x, inTxn); err != c.want {
			t.Errorf("epoch %d of %v in a transaction: %v", c.epoch, c.partitions, err)
		}
	}
}

func TestAFullGroupTakesNoFurtherMember(t *testing.T) {
	s := newSmall(t)
	s.Cfg.Consumer.MaxSize = 2
	for _, c := range []struct {
		member string
		want   int16
	}{{"a", 0}, {"b", 0}, {"c", kerr.GroupMaxSizeReached.Code}, {"a", 0}} {
		if got := s.beat(c.member, modern.EpochJoin).ErrorCode; got != c.want {
			t.Errorf("%s joins with %d, want %d", c.member, got, c.want)
		}
	}
	if s.beat("b", modern.EpochLeave); s.beat("c", modern.EpochJoin).ErrorCode != 0 {
		t.Error("there is no room when a member has left")
	}
}
