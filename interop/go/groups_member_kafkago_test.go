package interop

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

var kafkaGoBalancers = map[string]kafka.GroupBalancer{
	"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{},
}

// kafkaGoMember commits what was reported, from time to time and when a
// generation ends. What comes too late for that the Reader commits in the next
// generation, even if others own the partitions then and have come further:
// committed offsets may go backwards for a moment, with any broker. Tests see to
// it that records come after that (movesOn and finish).
func kafkaGoMember(ctx context.Context, spec memberSpec, out *reporter) error {
	log := &kafkaGoLog{out: out, topic: spec.Topic}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{spec.Addr}, GroupID: spec.Group, Topic: spec.Topic,
		Dialer:         &kafka.Dialer{ClientID: spec.ClientID, Timeout: 10 * time.Second},
		GroupBalancers: []kafka.GroupBalancer{kafkaGoBalancers[spec.Assignor]},
		SessionTimeout: spec.session(), HeartbeatInterval: spec.heartbeat(), RebalanceTimeout: spec.rebalance(),
		// Without these it waits for 5 s after a failed join, and 10 s for records.
		JoinGroupBackoff: 100 * time.Millisecond, MaxWait: memberMaxWait,
		CommitInterval: memberCommits, StartOffset: kafka.FirstOffset,
		Logger: log,
		ErrorLogger: kafka.LoggerFunc(func(format string, args ...any) {
			out.note(format, args...)
		}),
	})
	for {
		m, err := r.FetchMessage(ctx)
		if ctx.Err() != nil {
			return r.Close() // It leaves the group.
		}
		if err != nil {
			out.note("fetch: %v", err)
			continue
		}
		out.records(m.Topic, int32(m.Partition), m.Offset)
		if err := r.CommitMessages(ctx, m); err != nil && ctx.Err() == nil {
			return fmt.Errorf("commit: %w", err)
		}
	}
}

// kafkaGoLog finds the assignments in the log: the Reader tells them nowhere
// else.
type kafkaGoLog struct {
	out        *reporter
	topic      string
	mu         sync.Mutex
	generation int32
	owned      []int32
}

var kafkaGoPartition = regexp.MustCompile(`partition:(\d+)`)

func (l *kafkaGoLog) Printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case strings.HasPrefix(format, "Joined group"):
		l.generation = args[2].(int32)
	case strings.HasPrefix(format, "subscribed to topics and partitions"):
		l.owned = nil
		for _, m := range kafkaGoPartition.FindAllStringSubmatch(fmt.Sprintf(format, args...), -1) {
			p, _ := strconv.Atoi(m[1])
			l.owned = append(l.owned, int32(p))
		}
		l.out.partitions(eventAssigned, l.generation, map[string][]int32{l.topic: l.owned})
	case strings.HasPrefix(format, "stopped commit"):
		l.out.partitions(eventRevoked, 0, map[string][]int32{l.topic: l.owned})
	}
}
