package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// churn keeps members of some groups joining, committing, leaving and crashing.
type churn struct {
	addr    string
	topic   kadm.TopicID
	log     *commitLog
	groups  []string
	members atomic.Int64 // how many there were
	calm    context.Context
	calmNow context.CancelFunc
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func startChurn(t *testing.T, addr string, log *commitLog) *churn {
	t.Helper()
	topics, err := kadm.NewClient(connect(t, addr)).ListTopics(t.Context(), killTopic)
	must(t, err)
	c := &churn{addr: addr, topic: topics[killTopic].ID, log: log}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.calm, c.calmNow = context.WithCancel(c.ctx)
	t.Cleanup(c.stop)
	for g := range killGroups {
		group := fmt.Sprintf("killed-%d", g)
		c.groups = append(c.groups, group)
		for range killMembers {
			c.running.Go(func() { c.place(group) })
		}
	}
	return c
}

// calmDown lets the members that are there stay.
func (c *churn) calmDown() { c.calmNow() }

// stop ends all members.
func (c *churn) stop() {
	c.cancel()
	c.running.Wait()
}

// place has one member after the other, until the churn stops.
func (c *churn) place(group string) {
	for c.ctx.Err() == nil {
		c.members.Add(1)
		m, err := newCommitter(c.addr, group, c.topic, c.log)
		if err != nil {
			c.log.fail(err)
			return
		}
		stay, cancel := context.WithTimeout(c.ctx, time.Duration(100+rand.IntN(900))*time.Millisecond)
		m.commitWhile(stay)
		cancel()
		if c.calm.Err() != nil {
			m.commitWhile(c.ctx)
		}
		if rand.IntN(3) == 0 {
			c.running.Go(m.crash)
		} else {
			m.leave(c.ctx)
		}
	}
}

// impatient makes a client try again soon when the broker is away.
func impatient() []kgo.Opt {
	return []kgo.Opt{
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }),
		kgo.MetadataMinAge(20 * time.Millisecond), kgo.DialTimeout(time.Second),
	}
}

// committer is a member that commits ever higher offsets for the partitions it
// owns. It asks for the committed offset after it was given a partition and
// commits in the generation in which it was given it, so that a commit that is
// accepted never goes backwards.
type committer struct {
	cl    *kgo.Client
	admin *kadm.Client
	group string
	topic kadm.TopicID // OffsetCommit has ids since version 10.
	log   *commitLog

	mu         sync.Mutex
	member     string
	generation int32
	owned      []int32
	dead       bool
	conns      []net.Conn
}

func newCommitter(addr, group string, topic kadm.TopicID, log *commitLog) (*committer, error) {
	m := &committer{group: group, topic: topic, log: log}
	take := func(_ context.Context, cl *kgo.Client, partitions map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.member, m.generation = cl.GroupMetadata()
		m.owned = partitions[killTopic]
	}
	drop := func(context.Context, *kgo.Client, map[string][]int32) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.owned = nil
	}
	cl, err := kgo.NewClient(append(impatient(),
		kgo.SeedBrokers(addr), kgo.ConsumerGroup(group), kgo.ConsumeTopics(killTopic), kgo.Balancers(kgo.RangeBalancer()),
		kgo.SessionTimeout(killSession), kgo.RebalanceTimeout(killRebalance), kgo.HeartbeatInterval(killHeartbeat),
		kgo.DisableAutoCommit(), kgo.OnPartitionsAssigned(take), kgo.OnPartitionsRevoked(drop), kgo.OnPartitionsLost(drop),
		kgo.Dialer(m.dial),
	)...)
	if err != nil {
		return nil, err
	}
	cl.PauseFetchTopics(killTopic) // There are no records.
	m.cl, m.admin = cl, kadm.NewClient(cl)
	return m, nil
}

func (m *committer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		c.Close()
		return nil, errors.New("the member has crashed")
	}
	m.conns = append(m.conns, c)
	return c, nil
}

// crash cuts the member off, so that it cannot even say that it leaves.
func (m *committer) crash() {
	m.mu.Lock()
	m.dead = true
	for _, c := range m.conns {
		c.Close()
	}
	m.mu.Unlock()
	m.cl.Close()
}

func (m *committer) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, killSession)
	defer cancel()
	_ = m.cl.LeaveGroupContext(ctx) // The broker may be away.
	m.crash()
}

// commitWhile commits until the context ends.
func (m *committer) commitWhile(ctx context.Context) {
	for ctx.Err() == nil {
		if !m.commit(ctx) {
			// There is nothing to commit, or no one to commit to: that is not to be
			// asked too often.
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// commit commits the next offset of each partition and says whether that worked.
func (m *committer) commit(ctx context.Context) bool {
	m.mu.Lock()
	member, generation, owned := m.member, m.generation, m.owned
	m.mu.Unlock()
	if len(owned) == 0 {
		return false
	}
	committed, err := m.log.fetch(ctx, m.admin, m.group)
	if err != nil {
		return false
	}
	if rand.IntN(10) == 0 {
		// Some take long over their records. When they commit, others may have
		// their partitions, and have come further: they must be refused.
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(rand.IntN(500)) * time.Millisecond):
		}
	}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Group, req.Generation, req.MemberID = m.group, generation, member
	topic := kmsg.NewOffsetCommitRequestTopic()
	topic.Topic, topic.TopicID = killTopic, m.topic
	for _, p := range owned {
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = p, committed[p]+1
		topic.Partitions = append(topic.Partitions, partition)
	}
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, m.cl)
	if err != nil {
		return false
	}
	return m.note(resp, committed)
}

// note enters the acknowledged commits into the log.
func (m *committer) note(resp *kmsg.OffsetCommitResponse, committed map[int32]int64) bool {
	all := true
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			switch err := kerr.ErrorForCode(p.ErrorCode); err {
			case nil:
				m.log.ack(m.group, p.Partition, committed[p.Partition]+1)
			case kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress,
				kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable, kerr.NotCoordinator:
				all = false
			default:
				m.log.fail(fmt.Errorf("%s, partition %d: commit: %w", m.group, p.Partition, err))
				all = false
			}
		}
	}
	return all
}
