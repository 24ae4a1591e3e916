package interop

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// shareSettings have members of share groups heard of often, and allow short locks.
var shareSettings = []string{
	"--set", "group.share.heartbeat.interval.ms=200", "--set", "group.share.assignment.interval.ms=50",
	"--set", "group.share.min.record.lock.duration.ms=100",
}

// shareGroup is a share group with a topic of its name.
type shareGroup struct {
	t    testing.TB
	addr string
	name string
	cl   *kgo.Client
}

// newShareGroup creates the topic, and gives the group settings as name, value, name, value.
// It reads from the beginning.
func newShareGroup(t testing.TB, addr, name string, partitions int32, settings ...string) *shareGroup {
	t.Helper()
	g := &shareGroup{t: t, addr: addr, name: name, cl: connect(t, addr, append(impatient(), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0))...)}
	createTopic(t, addr, name, partitions)
	settings = append(settings, "share.auto.offset.reset", "earliest")
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName = kmsg.ConfigResourceTypeGroupConfig, name
	for i := 0; i < len(settings); i += 2 {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Op, c.Value = settings[i], kmsg.IncrementalAlterConfigOpSet, &settings[i+1]
		of.Configs = append(of.Configs, c)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	resp, err := req.RequestWith(t.Context(), g.cl)
	must(t, err)
	assert.Must(t, kerr.ErrorForCode(resp.Resources[0].ErrorCode), "settings of %s: %s", name, text(resp.Resources[0].ErrorMessage))
	return g
}

// write writes records to a partition, each in a batch of its own.
func (g *shareGroup) write(partition int32, values ...string) {
	g.t.Helper()
	for _, v := range values {
		must(g.t, g.cl.ProduceSync(g.t.Context(), &kgo.Record{Topic: g.name, Partition: partition, Value: []byte(v)}).FirstErr())
	}
}

// lag returns how many records no one is done with; an error says that it is not known yet.
func (g *shareGroup) lag() (int64, error) {
	group := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
	group.GroupID = g.name
	req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(g.t.Context(), g.cl)
	if err != nil {
		return 0, err
	}
	var all int64
	for _, got := range resp.Groups {
		if err := kerr.ErrorForCode(got.ErrorCode); err != nil {
			return 0, err
		}
		for _, topic := range got.Topics {
			for _, p := range topic.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil || p.StartOffset < 0 || p.Lag < 0 {
					return 0, fmt.Errorf("partition %d: start offset %d, lag %d, error %w", p.Partition, p.StartOffset, p.Lag, err)
				}
				all += p.Lag
			}
		}
	}
	return all, nil
}

// isDone waits until the group is done with all records.
func (g *shareGroup) isDone() {
	g.t.Helper()
	waitFor(g.t, g.name+" to be done with all records", func() error {
		lag, err := g.lag()
		if err == nil && lag != 0 {
			err = fmt.Errorf("the lag is %d", lag)
		}
		return err
	})
}

// sharer is a member of a share group, which fetches only when it polls.
type sharer struct {
	*kgo.Client
	t testing.TB

	mu     sync.Mutex
	conns  []net.Conn
	dead   bool
	failed map[int32]error // acknowledgements of a partition that the broker refused
}

func (g *shareGroup) join(opts ...kgo.Opt) *sharer {
	g.t.Helper()
	m := &sharer{t: g.t, failed: map[int32]error{}}
	m.Client = connect(g.t, g.addr, append(append(impatient(),
		kgo.ShareGroup(g.name), kgo.ConsumeTopics(g.name), kgo.ShareMaxRecordsStrict(), kgo.ShareMaxRecords(10), kgo.Dialer(m.dial), kgo.ShareAckCallback(m.acknowledged),
	), opts...)...)
	return m
}

func (m *sharer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.dead {
		c.Close()
		err = net.ErrClosed
	}
	if err == nil {
		m.conns = append(m.conns, c)
	}
	return c, err
}

// crash closes the connections of a member without a word.
func (m *sharer) crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	for _, c := range m.conns {
		c.Close()
	}
}

func (m *sharer) acknowledged(_ *kgo.Client, results kgo.ShareAckResults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range results {
		if r.Err != nil {
			m.failed[r.Partition] = r.Err
		}
	}
}

// take returns the next records.
func (m *sharer) take() []*kgo.Record {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), groupTimeout)
	defer cancel()
	for {
		records := m.PollFetches(ctx).Records()
		assert.Must(m.t, ctx.Err(), "waiting for records")
		if len(records) > 0 {
			return records
		}
	}
}

// say acknowledges records, and returns what the broker said of each partition that it refused.
func (m *sharer) say(ctx context.Context, status kgo.AckStatus, records ...*kgo.Record) (map[int32]error, error) {
	m.mu.Lock()
	m.failed = map[int32]error{}
	m.mu.Unlock()
	m.MarkAcks(status, records...)
	err := m.FlushAcks(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed, err
}

// mustSay is say, and demands that it is done.
func (m *sharer) mustSay(status kgo.AckStatus, records ...*kgo.Record) {
	m.t.Helper()
	failed, err := m.say(m.t.Context(), status, records...)
	must(m.t, err)
	assert.MustTrue(m.t, len(failed) == 0, "acknowledgements were refused: %v", failed)
}
