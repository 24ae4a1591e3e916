// Package shown shows Kafka groups as the consumer groups that Redis has, so that clients of
// Redis see them: which members hold which streams, and how far they have committed. It also
// counts records in Redis, where offsets have gaps. The truth is in __consumer_offsets;
// what is shown may lag behind, and no request waits for it.
package shown

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator"
	"muster/internal/metadata"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/native"
)

const (
	// nativeQueue is how many things may wait to be shown in Redis. What does not
	// fit is left out: a group's next commit shows it.
	nativeQueue = 1024
	// nativeTimeout is how long one of them may take.
	nativeTimeout = 5 * time.Second
)

// Options say where groups are, and where they are shown.
type Options struct {
	Client rueidis.Client
	Prefix string // of keys
	Logger *slog.Logger
	Image  func() *metadata.Image
	// Describe has the coordinator describe groups.
	Describe func(ctx context.Context, group string, req *kmsg.DescribeGroupsRequest) kmsg.Response
}

// Groups shows groups. It implements handler.Native.
type Groups struct {
	Options
	groups    *native.Groups
	mover     *native.Mover
	assigned  *native.Assignments
	consumers *native.Consumers
	queue     chan func(context.Context)
}

// New returns what shows groups once it runs.
func New(opts Options) *Groups {
	groups := native.New(opts.Client, opts.Prefix)
	n := &Groups{
		Options: opts, groups: groups, mover: native.NewMover(groups, native.MoverOptions{Logger: opts.Logger}),
		assigned: native.NewAssignments(opts.Client, opts.Prefix, opts.Logger),
		queue:    make(chan func(context.Context), nativeQueue),
	}
	n.consumers = native.NewConsumers(groups, native.ConsumersOptions{Logger: opts.Logger, Holders: n.holders})
	return n
}

// Run does what waits until ctx ends.
func (n *Groups) Run(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { n.assigned.Listen(ctx) })
	beside.Go(func() { n.consumers.Run(ctx) })
	for {
		select {
		case <-ctx.Done():
			return
		case do := <-n.queue:
			soon, cancel := context.WithTimeout(ctx, nativeTimeout)
			do(soon)
			cancel()
		}
	}
}

// Close shows what was not shown yet, for a while.
func (n *Groups) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), nativeTimeout)
	defer cancel()
	n.mover.Close(ctx)
}

func (n *Groups) later(do func(context.Context)) {
	select {
	case n.queue <- do:
	default:
	}
}

// stream says how a partition is kept; false if Redis clients do not see it.
func (n *Groups) stream(tp store.TopicPartition) (redis.Stream, bool) {
	t := n.Image().Topic(tp.Topic)
	if t == nil || t.Internal {
		return redis.Stream{}, false
	}
	return redis.Stream{TopicPartition: tp, Layout: store.Layout(t.Config.RedisLayout), SequenceBits: t.Config.SequenceBits}, true
}

// Assigned implements handler.Native.
func (n *Groups) Assigned(group string, member coordinator.Client, tps []store.TopicPartition) {
	a := native.Assigned{Group: group, ClientID: member.ID, Host: member.Host}
	for _, tp := range tps {
		a.Partitions = append(a.Partitions, native.AssignedPartition(tp))
	}
	n.later(func(ctx context.Context) { n.failed(n.assigned.Announce(ctx, a)) })
}

// Fetching implements handler.Native.
func (n *Groups) Fetching(from coordinator.Client, tp store.TopicPartition, offset int64) {
	for _, group := range n.assigned.Expect(from.ID, from.Host, tp) {
		if s, ok := n.stream(tp); ok {
			n.later(func(ctx context.Context) { n.failed(n.groups.CreateGroup(ctx, s, group, offset)) })
		}
	}
}

// Committed implements handler.Native.
func (n *Groups) Committed(group string, tp store.TopicPartition, offset int64) {
	if s, ok := n.stream(tp); ok {
		n.mover.Move(s, group, offset)
	}
}

// Deleted implements handler.Native.
func (n *Groups) Deleted(ctx context.Context, groups []string) {
	var tps []store.TopicPartition
	for _, t := range n.Image().Topics() {
		for i := range t.Partitions {
			if !t.Internal {
				tps = append(tps, store.TopicPartition{Topic: t.Name, Partition: int32(i)})
			}
		}
	}
	n.failed(n.mover.Destroy(ctx, tps, groups))
}

// Positions implements handler.Native.
func (n *Groups) Positions(ctx context.Context, group string, tps []store.TopicPartition) []int64 {
	out := make([]int64, len(tps))
	var streams []redis.Stream
	var at []int
	for i, tp := range tps {
		out[i] = -1
		if s, ok := n.stream(tp); ok {
			streams, at = append(streams, s), append(at, i)
		}
	}
	if len(streams) == 0 {
		return out
	}
	found, err := n.groups.Positions(ctx, streams, group)
	n.failed(err)
	for i, p := range found {
		if p.OK {
			out[at[i]] = p.Offset
		}
	}
	return out
}

// failed notes that groups could not be native. The truth is elsewhere, so that
// no one need wait for it.
func (n *Groups) failed(err error) {
	if err != nil {
		n.Logger.Debug("a group could not be shown in Redis", "error", err)
	}
}
