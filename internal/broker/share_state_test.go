package broker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
)

// shares asks the share coordinators of a broker, or of those that it reaches, for the state of
// partitions of one topic in one group.
type shares struct {
	t     testing.TB
	b     *broker.Broker
	topic metadata.TopicID
	group string
	epoch int32 // of the state, as leaders know it
}

func sharesOf(t testing.TB, b *broker.Broker, topic string) *shares {
	t.Helper()
	return &shares{t, b, b.Image().Topic(topic).ID, "g", 1}
}

// over are the partitions that a request is about: all up to n.
func over[P any](n int32, f func(i int32) P) (out []P) {
	for i := range n {
		out = append(out, f(i))
	}
	return out
}

func (s *shares) initialize(n, epoch int32, start int64) string {
	req := kmsg.NewPtrInitializeShareGroupStateRequest()
	req.GroupID, req.Topics = s.group, []kmsg.InitializeShareGroupStateRequestTopic{{TopicID: s.topic, Partitions: over(n, func(i int32) kmsg.InitializeShareGroupStateRequestTopicPartition {
		return kmsg.InitializeShareGroupStateRequestTopicPartition{Partition: i, StateEpoch: epoch, StartOffset: start}
	})}}
	resp := s.b.ShareState(s.t.Context(), req).(*kmsg.InitializeShareGroupStateResponse)
	return codes(resp.Topics[0].Partitions, func(p kmsg.InitializeShareGroupStateResponseTopicPartition) string { return name(p.ErrorCode) })
}

func (s *shares) read(n, leader int32) string { return s.readIn(s.t.Context(), n, leader) }

func (s *shares) readIn(ctx context.Context, n, leader int32) string {
	req := kmsg.NewPtrReadShareGroupStateRequest()
	req.GroupID, req.Topics = s.group, []kmsg.ReadShareGroupStateRequestTopic{{TopicID: s.topic, Partitions: over(n, func(i int32) kmsg.ReadShareGroupStateRequestTopicPartition {
		return kmsg.ReadShareGroupStateRequestTopicPartition{Partition: i, LeaderEpoch: leader}
	})}}
	resp := s.b.ShareState(ctx, req).(*kmsg.ReadShareGroupStateResponse)
	return codes(resp.Topics[0].Partitions, func(p kmsg.ReadShareGroupStateResponseTopicPartition) string {
		if p.ErrorCode != 0 {
			return name(p.ErrorCode)
		}
		out := fmt.Sprintf("epoch %d start %d", p.StateEpoch, p.StartOffset)
		for _, b := range p.StateBatches {
			out += fmt.Sprintf(" %d-%d=%d/%d", b.FirstOffset, b.LastOffset, b.DeliveryState, b.DeliveryCount)
		}
		return out
	})
}

// write writes that some offsets are acknowledged.
func (s *shares) write(n, leader int32, start, first, last int64) string {
	req := kmsg.NewPtrWriteShareGroupStateRequest()
	req.GroupID, req.Topics = s.group, []kmsg.WriteShareGroupStateRequestTopic{{TopicID: s.topic, Partitions: over(n, func(i int32) kmsg.WriteShareGroupStateRequestTopicPartition {
		return kmsg.WriteShareGroupStateRequestTopicPartition{
			Partition: i, StateEpoch: s.epoch, LeaderEpoch: leader, StartOffset: start, DeliveryCompleteCount: int32(last - first + 1),
			StateBatches: []kmsg.WriteShareGroupStateRequestTopicPartitionStateBatch{{FirstOffset: first, LastOffset: last, DeliveryState: 2, DeliveryCount: 1}},
		}
	})}}
	resp := s.b.ShareState(s.t.Context(), req).(*kmsg.WriteShareGroupStateResponse)
	return codes(resp.Topics[0].Partitions, func(p kmsg.WriteShareGroupStateResponseTopicPartition) string { return name(p.ErrorCode) })
}

func (s *shares) summary(n int32) string {
	req := kmsg.NewPtrReadShareGroupStateSummaryRequest()
	req.GroupID, req.Topics = s.group, []kmsg.ReadShareGroupStateSummaryRequestTopic{{TopicID: s.topic, Partitions: over(n, func(i int32) kmsg.ReadShareGroupStateSummaryRequestTopicPartition {
		return kmsg.ReadShareGroupStateSummaryRequestTopicPartition{Partition: i, LeaderEpoch: -1}
	})}}
	resp := s.b.ShareState(s.t.Context(), req).(*kmsg.ReadShareGroupStateSummaryResponse)
	return codes(resp.Topics[0].Partitions, func(p kmsg.ReadShareGroupStateSummaryResponseTopicPartition) string {
		if p.ErrorCode != 0 {
			return name(p.ErrorCode)
		}
		return fmt.Sprintf("start %d completed %d leader %d", p.StartOffset, p.DeliveryCompleteCount, p.LeaderEpoch)
	})
}

func (s *shares) remove(n int32) string {
	req := kmsg.NewPtrDeleteShareGroupStateRequest()
	req.GroupID, req.Topics = s.group, []kmsg.DeleteShareGroupStateRequestTopic{{TopicID: s.topic, Partitions: over(n, func(i int32) kmsg.DeleteShareGroupStateRequestTopicPartition {
		return kmsg.DeleteShareGroupStateRequestTopicPartition{Partition: i}
	})}}
	resp := s.b.ShareState(s.t.Context(), req).(*kmsg.DeleteShareGroupStateResponse)
	return codes(resp.Topics[0].Partitions, func(p kmsg.DeleteShareGroupStateResponseTopicPartition) string { return name(p.ErrorCode) })
}

// codes is what all partitions are answered: once if that is the same.
func codes[P any](partitions []P, of func(P) string) string {
	var out []string
	for i := range partitions {
		out = append(out, of(partitions[i]))
	}
	for _, o := range out {
		if o != out[0] {
			return strings.Join(out, ", ")
		}
	}
	return fmt.Sprintf("%d× %s", len(out), out[0])
}

func name(code int16) string {
	if err := kerr.TypedErrorForCode(code); err != nil {
		return err.Message
	}
	return "OK"
}

// TestTheStateOfSharePartitionsIsKept asks everything of a coordinator that it is for.
func TestTheStateOfSharePartitionsIsKept(t *testing.T) {
	for _, store := range []string{"disk", "mem"} {
		t.Run(store, func(t *testing.T) {
			props := map[string]string{"num.partitions": "7", "muster.store": store}
			if store == "disk" {
				props["log.dir"] = t.TempDir()
			}
			b := start(t, props)
			produce(t, client(t, b), "t", 0, 1)
			s := sharesOf(t, b, "t")
			assert.True(t, b.Image().Topic(metadata.ShareStateTopic) == nil, "there is a topic for the state before there is any")
			assert.Equal(t, s.read(1, 0), "1× INVALID_REQUEST", "read before it is initialized")
			assert.Equal(t, len(b.Image().Topic(metadata.ShareStateTopic).Partitions), 50, "partitions")
			assert.Equal(t, s.initialize(7, 1, 0), "7× OK", "initialize")
			assert.Equal(t, s.read(7, 3), "7× epoch 1 start 0", "read")
			assert.Equal(t, s.write(7, 3, 2, 0, 9), "7× OK", "write")
			assert.Equal(t, s.write(7, 2, 2, 0, 9), "7× FENCED_LEADER_EPOCH", "write of the leader before")
			assert.Equal(t, s.remove(2), "2× OK", "delete")
			want := "INVALID_REQUEST, INVALID_REQUEST" + strings.Repeat(", start 2 completed 10 leader 3", 5)
			assert.Equal(t, s.summary(7), want, "summary")
			if store == "mem" {
				return
			}
			assert.Must(t, b.Close())
			s.b = start(t, props)
			assert.Equal(t, s.summary(7), want, "summary after a restart")
		})
	}
}

// TestClientsHaveNothingToDoWithShareState has a client ask as brokers do.
func TestClientsHaveNothingToDoWithShareState(t *testing.T) {
	b := start(t, nil)
	c := client(t, b, kgo.MaxVersions(nil), kgo.RequestRetries(0))
	versions, err := kmsg.NewPtrApiVersionsRequest().RequestWith(t.Context(), c)
	must(t, err)
	for _, k := range versions.ApiKeys {
		assert.True(t, k.ApiKey < 83 || k.ApiKey > 87, "clients are told of %s", kmsg.NameForKey(k.ApiKey))
	}
	for key := int16(83); key <= 87; key++ {
		_, err := c.Request(t.Context(), kmsg.RequestForKey(key))
		assert.Error(t, err, "%s of a client", kmsg.NameForKey(key))
	}
	assert.True(t, b.Image().Topic(metadata.ShareStateTopic) == nil, "a client had the topic created")
}
