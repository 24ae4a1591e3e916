package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

var franzBalancers = map[string]kgo.GroupBalancer{
	"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
	"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
}

// franzAssignors are the balancers by which franz-go asks for an assignor of the
// broker.
var franzAssignors = map[string]kgo.GroupBalancer{"uniform": kgo.StickyBalancer(), "range": kgo.RangeBalancer()}

// franzMember commits what was reported: from time to time, and when partitions
// are revoked.
func franzMember(ctx context.Context, spec memberSpec, out *reporter) error {
	cl, err := kgo.NewClient(franzOpts(spec, out)...)
	if err != nil {
		return err
	}
	defer franzLeave(cl, spec, out)
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
			out.records(p.Topic, p.Partition, offsets...)
			cl.MarkCommitRecords(p.Records...)
		})
		if ctx.Err() != nil {
			return nil
		}
		var lost *kgo.ErrDataLoss
		for _, e := range fetches.Errors() {
			if errors.As(e.Err, &lost) {
				return fmt.Errorf("%s-%d: %w", e.Topic, e.Partition, e.Err)
			}
			if spec.Consumer && errors.Is(e.Err, kerr.UnknownTopicID) {
				// It was deleted and created again: franz-go reads the new one only
				// once it has been told to forget the old one.
				cl.PurgeTopicsFromConsuming(e.Topic)
			}
			out.note("fetch: %v", e.Err)
		}
	}
}

// franzLeave has a member leave its group. franz-go 1.22 does not name its group
// instance id when it leaves, and Kafka refuses that, as we do: a static member would
// be missed only when its session is over. So it is said for it, once it is silent.
func franzLeave(cl *kgo.Client, spec memberSpec, out *reporter) {
	member, _ := cl.GroupMetadata()
	cl.Close()
	if !spec.Consumer || spec.InstanceID == "" {
		return
	}
	with, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(spec.Addr, ",")...))
	if err != nil {
		out.failed(err)
		return
	}
	defer with.Close()
	leave := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	leave.Group, leave.MemberID, leave.InstanceID, leave.MemberEpoch = spec.Group, member, &spec.InstanceID, -2
	resp, err := leave.RequestWith(context.Background(), with)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		out.failed(fmt.Errorf("leave for a while: %w", err))
	}
}

func franzOpts(spec memberSpec, out *reporter) []kgo.Opt {
	generation := func(cl *kgo.Client) int32 {
		_, g := cl.GroupMetadata()
		return g
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(spec.Addr, ",")...), kgo.ClientID(spec.ClientID),
		kgo.ConsumerGroup(spec.Group), kgo.RebalanceTimeout(spec.rebalance()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(memberMaxWait),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(memberCommits),
		kgo.OnPartitionsAssigned(func(_ context.Context, cl *kgo.Client, partitions map[string][]int32) {
			out.partitions(eventAssigned, generation(cl), partitions)
		}),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, partitions map[string][]int32) {
			if err := cl.CommitMarkedOffsets(ctx); err != nil {
				out.note("commit before a revocation: %v", err)
			}
			out.partitions(eventRevoked, 0, partitions)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
			out.partitions(eventLost, 0, partitions)
		}),
		kgo.WithHooks(&franzHeartbeats{out: out}),
	}
	if spec.Consumer {
		opts = append(opts, kgo.ServerSideBalancer(), kgo.Balancers(franzAssignors[spec.Assignor]), kgo.MetadataMaxAge(time.Second))
	} else {
		opts = append(opts, kgo.Balancers(franzBalancers[spec.Assignor]), kgo.SessionTimeout(spec.session()), kgo.HeartbeatInterval(spec.heartbeat()))
	}
	if spec.InstanceID != "" {
		opts = append(opts, kgo.InstanceID(spec.InstanceID))
	}
	if spec.Brisk {
		opts = append(opts, kgo.MetadataMinAge(50*time.Millisecond), kgo.RequestTimeoutOverhead(2*time.Second),
			kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }))
	}
	if spec.Pattern != "" {
		return append(opts, kgo.ConsumeRegex(), kgo.ConsumeTopics(spec.Pattern))
	}
	return append(opts, kgo.ConsumeTopics(spec.Topic))
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
