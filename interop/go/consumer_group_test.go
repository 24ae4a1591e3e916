package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// consumerSettings have members of consumer groups heard of often, and missed
// soon: with this protocol it is the broker that says.
var consumerSettings = []string{
	"--set", "group.consumer.heartbeat.interval.ms=200", "--set", "group.consumer.session.timeout.ms=12000",
	"--set", "group.consumer.assignment.interval.ms=100",
}

// consumerGroup is a group of real clients that speak the consumer group protocol.
type consumerGroup struct {
	clientGroup
	addrs  []string
	topics map[string]int32 // partitions of those that it is to read
	ledger *ledger
}

// newConsumerGroup prepares a group, and creates its topic.
func newConsumerGroup(t testing.TB, addrs []string, name, client, assignor string, partitions int32) *consumerGroup {
	t.Helper()
	cl := connect(t, addrs[0], append(impatient(), kgo.SeedBrokers(addrs...), kgo.RequestTimeoutOverhead(2*time.Second))...)
	l := newLedger()
	g := &consumerGroup{addrs: addrs, topics: map[string]int32{}, ledger: l, clientGroup: clientGroup{
		t: t, cl: cl, admin: kadm.NewClient(cl), to: l,
		spec: memberSpec{
			Consumer: true, Client: client, Addr: strings.Join(addrs, ","), Group: name, Topic: name, Assignor: assignor, RebalanceMillis: 60_000, Brisk: true,
		},
	}}
	g.create(name, partitions)
	return g
}

// producer returns a client that writes, and that knows the topics as they are now.
func (g *consumerGroup) producer() *kgo.Client {
	g.t.Helper()
	cl := connect(g.t, g.addrs[0], append(impatient(), kgo.SeedBrokers(g.addrs...), kgo.RequestTimeoutOverhead(2*time.Second),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AlwaysRetryEOF())...)
	// franz-go fails records that wait for a producer id when it cannot get one.
	waitFor(g.t, "a producer id", func() error {
		_, _, err := cl.ProducerID(g.t.Context())
		return err
	})
	return cl
}

// create creates a topic that the group is to read.
func (g *consumerGroup) create(topic string, partitions int32) {
	g.t.Helper()
	waitFor(g.t, "topic "+topic, func() error {
		_, err := g.admin.CreateTopic(g.t.Context(), partitions, 1, nil, topic)
		return err
	})
	g.topics[topic] = partitions
}

// isCalm sets whether members of this group are missed late, however slow the machine
// is, or soon.
func (g *consumerGroup) isCalm(calm bool) {
	g.t.Helper()
	change := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	change.Name, change.Op = "consumer.session.timeout.ms", kmsg.IncrementalAlterConfigOpDelete
	if calm {
		change.Op, change.Value = kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr(strconv.FormatInt(calmSession.Milliseconds(), 10))
	}
	of := kmsg.NewIncrementalAlterConfigsRequestResource()
	of.ResourceType, of.ResourceName = kmsg.ConfigResourceTypeGroupConfig, g.spec.Group
	of.Configs = append(of.Configs, change)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, of)
	answer, err := req.RequestWith(g.t.Context(), g.cl)
	if err == nil {
		err = kerr.ErrorForCode(answer.Resources[0].ErrorCode)
	}
	must(g.t, err)
}

// crash ends a member without a word.
func (g *consumerGroup) crash(m *memberProcess) {
	g.ledger.silence(m)
	m.crash()
	g.ledger.silence(m)
}

// stall stops a member.
func (g *consumerGroup) stall(m *memberProcess) {
	g.ledger.silence(m)
	m.stall()
	g.ledger.silence(m)
}

// settles waits until the group is Stable with exactly these members, who have all
// partitions and know it. No partition may have had two owners on the way. It
// returns who has what.
func (g *consumerGroup) settles(members ...*memberProcess) map[string][]slot {
	g.t.Helper()
	var v groupView
	waitFor(g.t, g.spec.Group+" to settle", func() (err error) {
		v, err = g.settled(g.view, members, g.ledger.owned, g.slots())
		if err == nil && v.assignor != g.spec.Assignor {
			err = fmt.Errorf("the assignor is %q", v.assignor)
		}
		return err
	})
	must(g.t, g.ledger.twice())
	return v.owners
}

// slots returns the partitions that the group is to read.
func (g *consumerGroup) slots() []slot {
	var all []slot
	for topic, n := range g.topics {
		all = append(all, slotsOf(topic, n)...)
	}
	slices.SortFunc(all, slotOrder)
	return all
}

func slots(of kadm.TopicsSet) []slot {
	var out []slot
	for topic, partitions := range of {
		for p := range partitions {
			out = append(out, slot{topic, p})
		}
	}
	slices.SortFunc(out, slotOrder)
	return out
}

// write writes a record to a partition.
func (g *consumerGroup) write(cl *kgo.Client, s slot, done func(error)) {
	r := &kgo.Record{Topic: s.topic, Partition: s.partition, Value: []byte(filler[:60])}
	cl.Produce(context.Background(), r, func(r *kgo.Record, err error) {
		if err == nil {
			g.ledger.wrote(s, r.Offset)
		}
		done(err)
	})
}

// reads writes some records to each partition, and waits until all that were ever
// written are read, and their ends committed.
func (g *consumerGroup) reads() {
	g.t.Helper()
	cl := g.producer()
	defer cl.Close()
	for range 20 {
		for _, s := range g.slots() {
			g.write(cl, s, func(err error) {
				assert.NoError(g.t, err, "write to %s-%d", s.topic, s.partition)
			})
		}
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	must(g.t, cl.Flush(ctx))
	g.hasRead()
}

// hasRead waits until everything is read, and the ends are committed.
func (g *consumerGroup) hasRead() {
	g.t.Helper()
	waitFor(g.t, g.spec.Group+" to read everything", g.ledger.missing)
	waitFor(g.t, g.spec.Group+" to commit everything", func() error {
		committed, err := g.commitments()
		if err != nil {
			return err
		}
		for topic := range g.topics {
			ends, err := endOffsets(g.t.Context(), g.cl, topic)
			if err != nil {
				return err
			}
			for p, end := range ends {
				if got := committed[slot{topic, p}]; got != end {
					return fmt.Errorf("%s-%d: committed %d, the end is %d", topic, p, got, end)
				}
			}
		}
		return nil
	})
}

// stream writes records to all partitions in turn, and looks whether committed
// offsets go back further than they may.
type stream struct {
	g       *consumerGroup
	cl      *kgo.Client
	stop    context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

func (g *consumerGroup) stream() *stream {
	ctx, stop := context.WithCancel(context.Background())
	s := &stream{g: g, cl: g.producer(), stop: stop}
	all := g.slots()
	s.running.Go(func() {
		pace := time.NewTicker(writerPace)
		defer pace.Stop()
		for n := 0; n < writerLimit; n++ {
			if n%writerBurst == 0 {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
			}
			g.write(s.cl, all[n%len(all)], s.note)
		}
	})
	s.running.Go(func() { s.watch(ctx) })
	g.t.Cleanup(func() {
		stop()
		s.running.Wait()
	})
	return s
}

func (s *stream) note(err error) {
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	}
}

// watch looks at what is committed, again and again. Offsets go back no further than what
// any other member has committed: who commits less has lost the partition meanwhile, and
// must be refused. What a member has committed itself it may take back, in any broker:
// when librdkafka connects again it sends commits that were not answered once more, and was
// seen to do so after a later one.
func (s *stream) watch(ctx context.Context) {
	highest := map[slot]map[string]int64{} // by member
	for ctx.Err() == nil {
		if committed, err := s.g.committers(); err == nil {
			s.compare(highest, committed)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// compare looks for offsets that went back further than they may, and remembers the highest
// of each member.
func (s *stream) compare(highest map[slot]map[string]int64, committed map[slot]commitment) {
	for at, members := range highest {
		now := committed[at]
		for by, was := range members {
			if now.at < was && (by != now.by || by == "") {
				s.note(fmt.Errorf("%s-%d: offset %d was committed by %q, and now %d is by %q", at.topic, at.partition, was, by, now.at, now.by))
			}
		}
	}
	for at, now := range committed {
		if highest[at] == nil {
			highest[at] = map[string]int64{}
		}
		highest[at][now.by] = max(highest[at][now.by], now.at)
	}
}

// finish stops writing, and waits until all is read and committed.
func (s *stream) finish() {
	s.g.t.Helper()
	s.stop()
	s.running.Wait()
	ctx, cancel := context.WithTimeout(s.g.t.Context(), groupTimeout)
	defer cancel()
	must(s.g.t, s.cl.Flush(ctx))
	s.g.reads()
	s.mu.Lock()
	defer s.mu.Unlock()
	must(s.g.t, errors.Join(s.errs...))
}

// TestOffsetsGoBackOnlyByWhoCommittedThem is about what stream finds: a commit of a member
// that has lost the partition, and not one that a client sends again.
func TestOffsetsGoBackOnlyByWhoCommittedThem(t *testing.T) {
	at := slot{"t", 0}
	for _, c := range []struct {
		what    string
		commits []commitment
		wrong   int
	}{
		{"the next owner goes on", []commitment{{5, "a"}, {7, "b"}, {9, "a"}}, 0},
		{"a client sends a commit again", []commitment{{5, "a"}, {7, "b"}, {9, "b"}, {8, "b"}, {10, "b"}}, 0},
		{"it sends one from before it had the partition", []commitment{{5, "b"}, {7, "a"}, {9, "b"}, {6, "b"}}, 1},
		{"a former owner commits", []commitment{{5, "a"}, {7, "b"}, {6, "a"}}, 1},
		{"a client that does not tell who it is goes back", []commitment{{7, ""}, {6, ""}}, 1},
		{"an offset is gone", []commitment{{7, "a"}, {}}, 1},
	} {
		s, highest := &stream{}, map[slot]map[string]int64{}
		for _, now := range c.commits {
			s.compare(highest, map[slot]commitment{at: now})
		}
		assert.Equal(t, len(s.errs), c.wrong, "%s: %v", c.what, s.errs)
	}
}
