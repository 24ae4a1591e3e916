package broker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
)

// sharer is a member of a share group that fetches over the network.
type sharer struct {
	t      *testing.T
	b      *broker.Broker
	c      *kgo.Client
	member string
	epoch  int32
	topic  [16]byte
}

func newSharer(t *testing.T, b *broker.Broker, member string) *sharer {
	return &sharer{t: t, b: b, c: client(t, b), member: member, topic: b.Image().Topic("t").ID}
}

// fetch asks until there is an answer with records of partition 0, and returns the ranges.
func (s *sharer) fetch(acks ...kmsg.ShareFetchRequestTopicPartitionAcknowledgementBatch) string {
	s.t.Helper()
	group := "g"
	for {
		req := kmsg.NewPtrShareFetchRequest()
		req.GroupID, req.MemberID, req.ShareSessionEpoch = &group, &s.member, s.epoch
		req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.MaxRecords, req.BatchSize = 5000, 1, 1<<20, 500, 500
		p := kmsg.NewShareFetchRequestTopicPartition()
		p.AcknowledgementBatches = acks
		req.Topics = []kmsg.ShareFetchRequestTopic{{TopicID: s.topic, Partitions: []kmsg.ShareFetchRequestTopicPartition{p}}}
		resp, err := req.RequestWith(s.t.Context(), s.c)
		assert.Must(s.t, err)
		assert.Must(s.t, kerr.ErrorForCode(resp.ErrorCode))
		s.epoch++
		for _, topic := range resp.Topics {
			for _, p := range topic.Partitions {
				assert.Must(s.t, kerr.ErrorForCode(p.ErrorCode))
				assert.Must(s.t, kerr.ErrorForCode(p.AcknowledgeErrorCode))
				if len(p.AcquiredRecords) > 0 {
					assert.True(s.t, len(p.Records) > 0, "ranges without records")
					return ranges(p.AcquiredRecords)
				}
			}
		}
		acks = nil
	}
}

func ranges(list []kmsg.ShareFetchResponseTopicPartitionAcquiredRecord) string {
	var out []string
	for _, r := range list {
		out = append(out, fmt.Sprintf("%d-%d*%d", r.FirstOffset, r.LastOffset, r.DeliveryCount))
	}
	return strings.Join(out, " ")
}

// accept says that a range is done with.
func (s *sharer) accept(first, last int64) error {
	s.t.Helper()
	return s.acknowledge(1, first, last)
}

func (s *sharer) acknowledge(how int8, first, last int64) error {
	s.t.Helper()
	group := "g"
	req := kmsg.NewPtrShareAcknowledgeRequest()
	req.GroupID, req.MemberID, req.ShareSessionEpoch = &group, &s.member, s.epoch
	p := kmsg.NewShareAcknowledgeRequestTopicPartition()
	p.AcknowledgementBatches = []kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch{{FirstOffset: first, LastOffset: last, AcknowledgeTypes: []int8{how}}}
	req.Topics = []kmsg.ShareAcknowledgeRequestTopic{{TopicID: s.topic, Partitions: []kmsg.ShareAcknowledgeRequestTopicPartition{p}}}
	resp, err := req.RequestWith(s.t.Context(), s.c)
	assert.Must(s.t, err)
	assert.Must(s.t, kerr.ErrorForCode(resp.ErrorCode))
	s.epoch++
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func TestMembersOfAShareGroupThatVanishLeaveTheirRecordsToOthers(t *testing.T) {
	props := map[string]string{"num.partitions": "1", "muster.store": "disk", "log.dir": t.TempDir()}
	b := start(t, props)
	producer := client(t, b)
	produce(t, producer, "t", 0, 10)
	sharesOf(t, b, "t").initialize(1, 1, 0)
	a := newSharer(t, b, "a")
	assert.Equal(t, a.fetch(), "0-9*1")
	assert.Must(t, a.accept(0, 3))
	assert.Must(t, a.accept(5, 5))
	assert.ErrorIs(t, a.accept(5, 6), error(kerr.InvalidRecordState), "what was accepted")
	other := newSharer(t, b, "b")
	a.c.Close()
	assert.Equal(t, other.fetch(), "4-4*2 6-9*2", "after its connection has ended")
	assert.Must(t, other.accept(4, 4))
	// Stored before it is answered, other than what the end of a connection releases.
	assert.Must(t, other.acknowledge(2, 6, 9))
	other.c.Close()
	producer.Close()
	assert.Must(t, b.Close())
	b = start(t, props)
	assert.Equal(t, newSharer(t, b, "c").fetch(), "6-9*3", "after a restart")
}
