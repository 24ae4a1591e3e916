package interop

import (
	"context"
	"errors"

	"github.com/IBM/sarama"
)

var saramaStrategies = map[string]func() sarama.BalanceStrategy{
	"range": sarama.NewBalanceStrategyRange, "roundrobin": sarama.NewBalanceStrategyRoundRobin,
	"sticky": sarama.NewBalanceStrategySticky, "cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

// saramaMember marks what was reported; sarama commits what is marked, from time
// to time and when a session ends.
func saramaMember(ctx context.Context, spec memberSpec, out *reporter) error {
	cfg := sarama.NewConfig()
	cfg.ClientID = spec.ClientID
	cfg.Consumer.Group.InstanceId = spec.InstanceID
	cfg.Consumer.Group.Session.Timeout = spec.session()
	cfg.Consumer.Group.Heartbeat.Interval = spec.heartbeat()
	cfg.Consumer.Group.Rebalance.Timeout = spec.rebalance()
	cfg.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{saramaStrategies[spec.Assignor]()}
	cfg.Consumer.Offsets.Initial = sarama.OffsetOldest
	cfg.Consumer.Offsets.AutoCommit.Interval = memberCommits
	cfg.Consumer.MaxWaitTime = memberMaxWait
	group, err := sarama.NewConsumerGroup([]string{spec.Addr}, spec.Group, cfg)
	if err != nil {
		return err
	}
	handler := &saramaHandler{out: out, cooperative: spec.Assignor == "cooperative-sticky"}
	for ctx.Err() == nil {
		err := group.Consume(ctx, []string{spec.Topic}, handler)
		if err != nil && !errors.Is(err, context.Canceled) {
			out.note("consume: %v", err)
		}
	}
	return group.Close() // It leaves the group.
}

// saramaHandler reports claims one by one: a cooperative session keeps those
// that do not move. It also moves on to the next generation, maybe before its
// claims have started, so that theirs is not known.
type saramaHandler struct {
	out         *reporter
	cooperative bool
}

func (h *saramaHandler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h *saramaHandler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *saramaHandler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	partition := map[string][]int32{claim.Topic(): {claim.Partition()}}
	generation := session.GenerationID()
	if h.cooperative {
		generation = 0
	}
	h.out.partitions(eventAssigned, generation, partition)
	defer h.out.partitions(eventRevoked, 0, partition)
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			h.out.records(m.Topic, m.Partition, m.Offset)
			session.MarkMessage(m, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
