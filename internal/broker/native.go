package broker

import (
	"context"
	"time"

	"muster/internal/coordinator"
	"muster/internal/store"
	"muster/internal/store/redis"
	shown "muster/internal/store/redis/native"
)

const (
	// nativeQueue is how many things may wait to be shown in Redis. What does not
	// fit is left out: a group's next commit shows it.
	nativeQueue = 1024
	// nativeTimeout is how long one of them may take.
	nativeTimeout = 5 * time.Second
)

// native shows Kafka groups as the consumer groups that Redis has. It implements
// handler.Native.
type native struct {
	b         *Broker
	groups    *shown.Groups
	mover     *shown.Mover
	assigned  *shown.Assignments
	consumers *shown.Consumers
	queue     chan func(context.Context)
}

func newNative(b *Broker) *native {
	prefix := b.cfg.Get("muster.redis.prefix")
	groups := shown.New(b.redis.client, prefix)
	n := &native{
		b: b, groups: groups, mover: shown.NewMover(groups, shown.MoverOptions{Logger: b.logger}),
		assigned: shown.NewAssignments(b.redis.client, prefix, b.logger),
		queue:    make(chan func(context.Context), nativeQueue),
	}
	n.consumers = shown.NewConsumers(groups, shown.ConsumersOptions{Logger: b.logger, Holders: n.holders})
	return n
}

// run does what waits until ctx ends.
func (n *native) run(ctx context.Context) {
	n.b.running.Go(func() { n.assigned.Listen(ctx) })
	n.b.running.Go(func() { n.consumers.Run(ctx) })
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

func (n *native) close() {
	ctx, cancel := context.WithTimeout(context.Background(), nativeTimeout)
	defer cancel()
	n.mover.Close(ctx)
}

func (n *native) later(do func(context.Context)) {
	select {
	case n.queue <- do:
	default:
	}
}

// stream says how a partition is kept; false if Redis clients do not see it.
func (n *native) stream(tp store.TopicPartition) (redis.Stream, bool) {
	t := n.b.controller.Image().Topic(tp.Topic)
	if t == nil || t.Internal {
		return redis.Stream{}, false
	}
	return redis.Stream{TopicPartition: tp, Layout: store.Layout(t.Config.RedisLayout), SequenceBits: t.Config.SequenceBits}, true
}

// Assigned implements handler.Native.
func (n *native) Assigned(group string, member coordinator.Client, tps []store.TopicPartition) {
	a := shown.Assigned{Group: group, ClientID: member.ID, Host: member.Host}
	for _, tp := range tps {
		a.Partitions = append(a.Partitions, shown.AssignedPartition(tp))
	}
	n.later(func(ctx context.Context) { n.failed(n.assigned.Announce(ctx, a)) })
}

// Fetching implements handler.Native.
func (n *native) Fetching(from coordinator.Client, tp store.TopicPartition, offset int64) {
	for _, group := range n.assigned.Expect(from.ID, from.Host, tp) {
		if s, ok := n.stream(tp); ok {
			n.later(func(ctx context.Context) { n.failed(n.groups.CreateGroup(ctx, s, group, offset)) })
		}
	}
}

// Committed implements handler.Native.
func (n *native) Committed(group string, tp store.TopicPartition, offset int64) {
	if s, ok := n.stream(tp); ok {
		n.mover.Move(s, group, offset)
	}
}

// Deleted implements handler.Native.
func (n *native) Deleted(ctx context.Context, groups []string) {
	var tps []store.TopicPartition
	for _, t := range n.b.controller.Image().Topics() {
		for i := range t.Partitions {
			if !t.Internal {
				tps = append(tps, store.TopicPartition{Topic: t.Name, Partition: int32(i)})
			}
		}
	}
	n.failed(n.mover.Destroy(ctx, tps, groups))
}

// Positions implements handler.Native.
func (n *native) Positions(ctx context.Context, group string, tps []store.TopicPartition) []int64 {
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

// failed notes that groups could not be shown. The truth is elsewhere, so that
// nobody need wait for it.
func (n *native) failed(err error) {
	if err != nil {
		n.b.logger.Debug("a group could not be shown in Redis", "error", err)
	}
}
