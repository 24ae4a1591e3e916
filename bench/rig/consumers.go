package rig

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const consumerVersion = 1

// consumerPace is how long members of a consumer group wait for the next heartbeat
// when they have nothing to say. What they have to say, they say at once. It is short,
// since nothing shall wait for it, and longer in large groups, whose heartbeats would
// otherwise be all that is measured.
func consumerPace(members int) time.Duration {
	return max(5*time.Millisecond, time.Duration(members)*50*time.Microsecond)
}

// ConsumerIntervals have a consumer group assign at once, and be heard of often.
// Kafka has a lower limit that must be lowered too; we have none.
func ConsumerIntervals(s Side) []string {
	set := []string{
		"group.consumer.heartbeat.interval.ms=5", "group.consumer.assignment.interval.ms=0",
	}
	if s != Ours {
		set = append(set, "group.consumer.min.heartbeat.interval.ms=5", "group.consumer.min.assignment.interval.ms=0")
	}
	return set
}

// ConsumerMember is a client that is a member of a consumer group (KIP-848).
type ConsumerMember struct {
	conn         net.Conn
	group, topic string
	id           string
	epoch        int32
	owned        []kmsg.ConsumerGroupHeartbeatRequestTopic
	unsaid       bool // the coordinator does not know yet that it has what it was given
}

// heartbeat is the next one: the first joins, and the others say what it has only if
// that has changed.
func (m *ConsumerMember) heartbeat() *kmsg.ConsumerGroupHeartbeatRequest {
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version = consumerVersion
	req.Group, req.MemberID, req.MemberEpoch = m.group, m.id, m.epoch
	switch {
	case m.epoch == 0:
		assignor := "uniform"
		req.RebalanceTimeoutMillis, req.ServerAssignor = 5*60_000, &assignor
		req.SubscribedTopicNames, req.Topics = []string{m.topic}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	case m.unsaid:
		req.Topics = append([]kmsg.ConsumerGroupHeartbeatRequestTopic{}, m.owned...)
	}
	return req
}

// beat sends a heartbeat, and takes in what comes.
func (m *ConsumerMember) beat() error {
	answer, err := Ask(m.conn, m.heartbeat())
	if err != nil {
		return err
	}
	resp := answer.(*kmsg.ConsumerGroupHeartbeatResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return fmt.Errorf("heartbeat of %s, epoch %d: %w", m.id, m.epoch, err)
	}
	m.epoch, m.unsaid = resp.MemberEpoch, false
	if resp.Assignment == nil {
		return nil
	}
	m.owned, m.unsaid = nil, true
	for _, t := range resp.Assignment.Topics {
		m.owned = append(m.owned, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: t.TopicID, Partitions: t.Partitions})
	}
	return nil
}

func (m *ConsumerMember) partitions() int {
	n := 0
	for _, t := range m.owned {
		n += len(t.Partitions)
	}
	return n
}

// Leave leaves the group.
func (m *ConsumerMember) Leave() error {
	m.epoch, m.unsaid = -1, false
	if err := m.beat(); err != nil {
		return err
	}
	m.epoch, m.owned = 0, nil
	return nil
}

// settling knows how far the members of a group are.
type settling struct {
	mu         sync.Mutex
	partitions int // all have together in the end
	owned      []int
	epochs     []int32
	unsaid     []bool
	done       chan struct{}
	over       bool
	at         time.Time
}

// note takes in how far a member is. All is settled when everybody has the same
// epoch, all partitions are someone's, and the coordinator knows.
func (s *settling) note(i int, m *ConsumerMember) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned[i], s.epochs[i], s.unsaid[i] = m.partitions(), m.epoch, m.unsaid
	if s.over || m.epoch == 0 || m.unsaid {
		return
	}
	sum := 0
	for j := range s.owned {
		if s.epochs[j] != m.epoch || s.unsaid[j] {
			return
		}
		sum += s.owned[j]
	}
	if sum == s.partitions {
		s.over, s.at = true, time.Now()
		close(s.done)
	}
}

// Settle has the members of a group beat until all have settled, and returns when that
// was.
func Settle(members []*ConsumerMember, partitions int) (time.Time, error) {
	n := len(members)
	s := &settling{partitions: partitions, owned: make([]int, n), epochs: make([]int32, n), unsaid: make([]bool, n), done: make(chan struct{})}
	for i, m := range members {
		s.owned[i], s.epochs[i], s.unsaid[i] = m.partitions(), m.epoch, m.unsaid
	}
	conns := make([]net.Conn, n)
	for i, m := range members {
		conns[i] = m.conn
	}
	deadline := time.Now().Add(time.Minute)
	err := Together(conns, func(i int, _ net.Conn) error {
		m := members[i]
		for {
			if err := m.beat(); err != nil {
				return err
			}
			if s.note(i, m); m.unsaid {
				continue
			}
			select {
			case <-s.done:
				return nil
			case <-time.After(consumerPace(n)):
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("the group has not settled: %s is at epoch %d with %d partitions", m.id, m.epoch, m.partitions())
			}
		}
	})
	return s.at, err
}

// NewConsumers makes members of a group that have not joined.
func NewConsumers(group, topic string, conns []net.Conn) []*ConsumerMember {
	var members []*ConsumerMember
	for i, c := range conns {
		members = append(members, &ConsumerMember{conn: c, group: group, topic: topic, id: fmt.Sprintf("%s-%d", group, i)})
	}
	return members
}

// ConsumerFrames makes consumer groups of one member each, and returns the heartbeat
// of each.
func (b *Bench) ConsumerFrames(c net.Conn, groups int) ([][]byte, error) {
	const topic = "bench-consumers"
	if err := b.NewTopic(c, topic, 1); err != nil {
		return nil, err
	}
	var frames [][]byte
	for i := range groups {
		m := NewConsumers(fmt.Sprintf("idle-%d", i), topic, []net.Conn{c})
		if err := b.Await(func() error { _, err := Settle(m, 1); return err }); err != nil {
			return nil, err
		}
		frames = append(frames, RequestFrame(m[0].heartbeat(), 0))
	}
	return frames, nil
}
