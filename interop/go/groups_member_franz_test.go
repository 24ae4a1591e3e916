package interop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var franzBalancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
	"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// franzMember commits what was reported: from time to time, and when partitions
// are revoked.
func franzMember(ctx context.Context, spec memberSpec, out *reporter) error {
	opts := []kgo.Opt{
		kgo.SeedBrokers(spec.Addr), kgo.ClientID(spec.ClientID),
		kgo.ConsumerGroup(spec.Group), kgo.ConsumeTopics(spec.Topic), kgo.Balancers(franzBalancers[spec.Assignor]),
		kgo.SessionTimeout(spec.session()), kgo.HeartbeatInterval(spec.heartbeat()), kgo.RebalanceTimeout(spec.rebalance()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(memberMaxWait),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(memberCommits),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, partitions map[string][]int32) {
			_, generation := cl.GroupMetadata()
			out.assigned(generation, partitions[spec.Topic])
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, partitions map[string][]int32) {
			if err := cl.CommitMarkedOffsets(ctx); err != nil {
				out.note("commit before a revocation: %v", err)
			}
			out.revoked(partitions[spec.Topic])
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			out.lost(partitions[spec.Topic])
		}),
		kgo.WithHooks(&franzHeartbeats{out: out}),
	}
	if spec.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(spec.InstanceID))
	}
	if spec.Brisk {
		opts = append(opts, kgo.MetadataMinAge(50*time.Millisecond), kgo.RequestTimeoutOverhead(2*time.Second),
			kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return err
	}
	defer cl.Close() // It leaves the group.
	for {
		fetches := cl.PollFetches(ctx)
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if len(p.Records) == 0 {
				return
			}
			offsets := make([]int64, len(p.Records))
			for i, r := range p.Records {
				offsets[i] = r.Offset
			}
			out.record(p.Partition, offsets...)
			cl.MarkCommitRecords(p.Records...)
		})
		if ctx.Err() != nil {
			return nil
		}
		var lost *kgo.ErrDataLoss
		for _, e := range fetches.Errors() {
			if errors.As(e.Err, &lost) {
				return fmt.Errorf("partition %d: %w", e.Partition, e.Err)
			}
			out.note("fetch: %v", e.Err)
		}
	}
}

// franzHeartbeats counts the answered heartbeats.
type franzHeartbeats struct {
	out   *reporter
	count int
}

func (h *franzHeartbeats) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key != kmsg.Heartbeat.Int16() || err != nil {
		return
	}
	h.count++ // A member has one heartbeat under way at a time.
	h.out.report(memberReport{Event: eventHeartbeats, Count: h.count})
}
