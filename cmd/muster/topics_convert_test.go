package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster"
	"muster/cmd/muster/internal/topics"
	"muster/internal/protocol"
	"muster/internal/redistest"
)

// A topic is converted with two brokers while a producer writes and groups read: no record is lost or stored twice, and
// groups go on where they were.
func TestTopicsConvert(t *testing.T) {
	redis := redistest.Single(t)
	shells, _ := twoShells(t, redis)
	s := shells[0]
	s.run("topics", "create", "orders", "-p", "4", "-c", "muster.redis.layout=stream").ok()
	w := newWriter(t, s.broker, "orders")
	w.atLeast(80)

	// One group has stopped, the others read on, with the classic protocol and with the new one.
	stopped := newReader(t, s.broker, "stopped", "orders", true)
	stopped.atLeast(30)
	stopped.close()
	running := []*reader{
		newReader(t, s.broker, "running", "orders", true), newReader(t, shells[1].broker, "running", "orders", true),
		newReader(t, s.broker, "late", "orders", false),
	}
	for _, r := range running {
		r.atLeast(10)
	}
	dry := s.run("topics", "convert", "orders", "--to", "indexed")
	says(t, dry.ok(), "PARTITION  LAYOUT  RECORDS", "\n        3  stream ", "\nGROUP    OFFSETS TO TRANSLATE  MEMBERS TO REMOVE  NOT COMMITTED\n", "\nlate ", "\nstopped ")
	says(t, dry.err, "this was a dry run: nothing was changed")

	done := s.run("topics", "convert", "orders", "--to", "indexed", "--execute")
	says(t, done.ok(), "\n        3  stream ")
	says(t, done.err, "partition 3: converted\n", "group running: removed 2 members, to join again\n", "group late: removed 1 member", "group stopped: translated ", "topic orders is in layout indexed\n")
	for i := range shells {
		shells[i].run("topics", "check", "orders").ok()
	}
	s.run("topics", "convert", "orders", "--to", "indexed", "--execute").fails(exitFailed, "topic orders is in layout indexed already")
	says(t, s.run("topics", "describe", "orders").ok(), "muster.redis.layout", "indexed")

	w.atLeast(w.count() + 40)
	for _, r := range running {
		r.atLeast(r.count() + 10)
	}
	want := w.stop()
	redistest.Eventually(t, "the groups to read all", func() bool {
		return missing(want, running[:2]...) == 0 && missing(want, running[2]) == 0
	})
	for _, r := range running {
		r.close()
	}
	again := newReader(t, shells[1].broker, "stopped", "orders", true)
	redistest.Eventually(t, "the group that was stopped to read the rest", func() bool { return missing(want, stopped, again) == 0 })
	again.close()
	if n := overlap(stopped, again); n > 0 {
		t.Errorf("the group that was stopped read %d records again", n)
	}
	all := newReader(t, s.broker, "all", "orders", true)
	redistest.Eventually(t, "all to be there", func() bool { return missing(want, all) == 0 })
	all.close()
	if got := all.values(); len(got) != len(want) {
		t.Errorf("%d records are there, and %d were written", len(got), len(want))
	}
	all.wantDense(4)
}

// A topic whose records have to be copied keeps its offsets: no member is removed, and no group notices.
func TestTopicsConvertFromLog(t *testing.T) {
	redis := redistest.Single(t)
	shells, _ := twoShells(t, redis)
	s := shells[0]
	s.run("topics", "create", "orders", "-p", "4", "-c", "muster.redis.layout=log").ok()
	w := newWriter(t, s.broker, "orders")
	w.atLeast(80)
	stopped := newReader(t, s.broker, "stopped", "orders", true)
	stopped.atLeast(30)
	stopped.close()
	running := []*reader{newReader(t, s.broker, "running", "orders", true), newReader(t, shells[1].broker, "late", "orders", false)}
	var members []string
	for _, r := range running {
		r.atLeast(10)
		member, _ := r.client.GroupMetadata()
		members = append(members, member)
	}
	dry := s.run("topics", "convert", "orders", "--to", "indexed")
	says(t, dry.ok(), "PARTITION  LAYOUT  RECORDS", "\n        3  log ")
	saysNot(t, dry.ok(), "GROUP")
	says(t, dry.err, "this was a dry run: nothing was changed")
	done := s.run("topics", "convert", "orders", "--to", "indexed", "--execute")
	done.ok()
	says(t, done.err, "partition 3: converted\n", "topic orders is in layout indexed\n")
	saysNot(t, done.err, "removed", "translated")
	s.run("topics", "convert", "orders", "--to", "indexed", "--execute").fails(exitFailed, "topic orders is in layout indexed already")
	says(t, s.run("topics", "describe", "orders").ok(), "muster.redis.layout", "indexed")
	redistest.Eventually(t, "the audit log to tell", func() bool {
		out := s.run("audit", "--resource", "orders", "--kind", "settings-changed").ok()
		return strings.Contains(out, "partition 3 converted to layout indexed") && strings.Contains(out, "muster.redis.layout=indexed")
	})

	w.atLeast(w.count() + 40)
	want := w.stop()
	redistest.Eventually(t, "the groups to read all", func() bool { return missing(want, running[0]) == 0 && missing(want, running[1]) == 0 })
	for i, r := range running {
		if member, _ := r.client.GroupMetadata(); member != members[i] {
			t.Errorf("member %s became %s", members[i], member)
		}
		r.close()
		r.wantDense(4)
	}
	again := newReader(t, shells[1].broker, "stopped", "orders", true)
	redistest.Eventually(t, "the group that was stopped to read the rest", func() bool { return missing(want, stopped, again) == 0 })
	again.close()
	if n := overlap(stopped, again); n > 0 {
		t.Errorf("the group that was stopped read %d records again", n)
	}
	for i := range shells {
		shells[i].run("topics", "check", "orders").ok()
	}
}

func TestTopicsConvertRefuses(t *testing.T) {
	disk := newShell(t)
	disk.run("topics", "create", "orders").ok()
	disk.run("topics", "convert", "orders", "--to", "indexed").fails(exitFailed, "topic orders cannot be converted: its records are not in Redis")

	s := &shell{t, startBroker(t, muster.Config{Redis: redistest.Single(t).URL()}).Addr()}
	s.run("topics", "create", "dense", "-c", "muster.redis.layout=indexed").ok()
	s.run("topics", "create", "orders", "-p", "2", "-c", "muster.redis.layout=stream").ok()
	s.pipe("v\n", "produce", "orders").ok()
	s.run("topics", "convert", "dense", "--to", "indexed", "--execute").fails(exitFailed, "topic dense is in layout indexed already")
	s.run("topics", "convert", "order", "--to", "indexed").fails(exitFailed, `there is no topic "order"`, `did you mean "orders"?`)
	s.run("topics", "convert", "orders").fails(exitUsage, "--to takes the layout to convert to")
	s.run("topics", "convert", "orders", "--to", "log").fails(exitUsage, "which can only be indexed")

	if got := decode[topics.Conversion](s.run("topics", "convert", "orders", "--to", "indexed", "--json")); got.Executed || len(got.Partitions) != 2 || got.Partitions[0].Records+got.Partitions[1].Records != 1 || got.Partitions[0].Layout != "stream" {
		t.Errorf("%+v", got)
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker))
	must(t, err)
	defer client.Close()
	redistest.Eventually(t, "another conversion to begin", func() bool {
		return askStep(t.Context(), client, "orders", protocol.ConvertPrepare, 0)
	})
	ctx, cancel := context.WithCancel(t.Context())
	var other sync.WaitGroup
	other.Go(func() {
		for ctx.Err() == nil {
			askStep(ctx, client, "orders", protocol.ConvertPrepare, 0)
		}
	})
	s.run("topics", "convert", "orders", "--to", "indexed", "--execute").fails(exitFailed, "another conversion of it is under way")
	cancel()
	other.Wait()
	if got := decode[topics.Conversion](s.run("topics", "convert", "orders", "--to", "indexed", "--execute", "--json")); !got.Executed {
		t.Errorf("%+v", got)
	}
	s.run("topics", "check", "orders").ok()
}

// Who may alter a topic may not remove members of groups: that is a step of a conversion, and belongs where all partitions
// are converted and the topic is not said to be yet.
func TestNoMemberIsRemovedBeforeOrAfterAConversion(t *testing.T) {
	s := &shell{t, startBroker(t, muster.Config{Redis: redistest.Single(t).URL()}).Addr()}
	s.run("topics", "create", "orders", "-p", "2", "-c", "muster.redis.layout=stream").ok()
	s.pipe("v\n", "produce", "orders").ok()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker))
	must(t, err)
	defer client.Close()
	leave := func(layout string, done bool) {
		t.Helper()
		r := newReader(t, s.broker, layout, "orders", true)
		r.atLeast(1)
		before, _ := r.client.GroupMetadata()
		if got := askStep(t.Context(), client, "orders", protocol.ConvertLeave, 0); got != done {
			t.Errorf("layout %s: leaving is done: %t", layout, got)
		}
		s.pipe("v\n", "produce", "orders").ok()
		r.atLeast(2)
		if after, _ := r.client.GroupMetadata(); after != before {
			t.Errorf("layout %s: member %s became %s", layout, before, after)
		}
		r.close()
	}
	leave("stream", false)
	s.run("topics", "convert", "orders", "--to", "indexed", "--execute").ok()
	redistest.Eventually(t, "the pause after a conversion to be over", func() bool {
		return askStep(t.Context(), client, "orders", protocol.ConvertLeave, 0)
	})
	leave("indexed", true)
}

// A consumer that has a position of before is to ask again, until its group has it begin anew: any other answer
// would lead it past what it has yet to read.
func TestPositionsOfBeforeAConversionAreToBeAskedAgain(t *testing.T) {
	s := &shell{t, startBroker(t, muster.Config{Redis: redistest.Single(t).URL()}).Addr()}
	s.run("topics", "create", "orders", "-p", "1", "-c", "muster.redis.layout=stream").ok()
	s.pipe("a\nb\n", "produce", "orders").ok()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.broker), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"orders": {0: kgo.NewOffset().AtStart()}}))
	must(t, err)
	defer client.Close()
	before := client.PollFetches(t.Context()).Records()[0]
	s.run("topics", "convert", "orders", "--to", "indexed", "--execute").ok()
	s.pipe("c\n", "produce", "orders").ok()

	topics, err := kadm.NewClient(client).ListTopics(t.Context(), "orders")
	must(t, err)
	read := func(offset int64) int16 {
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes = 1 << 20
		p := kmsg.NewFetchRequestTopicPartition()
		p.FetchOffset, p.PartitionMaxBytes, p.CurrentLeaderEpoch = offset, 1<<20, -1
		req.Topics = []kmsg.FetchRequestTopic{{Topic: "orders", TopicID: topics["orders"].ID, Partitions: []kmsg.FetchRequestTopicPartition{p}}}
		resp, err := client.SeedBrokers()[0].Request(t.Context(), req)
		must(t, err)
		return resp.(*kmsg.FetchResponse).Topics[0].Partitions[0].ErrorCode
	}
	ends := func(epoch int32) int16 {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		p := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		p.LeaderEpoch = epoch
		req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "orders", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{p}}}
		resp, err := client.SeedBrokers()[0].Request(t.Context(), req)
		must(t, err)
		return resp.(*kmsg.OffsetForLeaderEpochResponse).Topics[0].Partitions[0].ErrorCode
	}
	for offset, want := range map[int64]int16{before.Offset: kerr.OffsetNotAvailable.Code, 0: 0, 2: 0, 100: kerr.OffsetOutOfRange.Code} {
		if got := read(offset); got != want {
			t.Errorf("offset %d: error %d, not %d", offset, got, want)
		}
	}
	if got := ends(before.LeaderEpoch); got != kerr.OffsetNotAvailable.Code {
		t.Errorf("the end of an epoch of before: error %d", got)
	}
	if got := ends(before.LeaderEpoch + 100); got != 0 {
		t.Errorf("the end of a later epoch: error %d", got)
	}
}

// writer produces until it is stopped.
type writer struct {
	t       *testing.T
	client  *kgo.Client
	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	acked   []string
}

func newWriter(t *testing.T, broker, topic string) *writer {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond))
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{t: t, client: client, cancel: cancel}
	t.Cleanup(func() { w.stop() })
	w.running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			var some []*kgo.Record
			var values []string
			for k := range 8 {
				values = append(values, fmt.Sprint("v", i, ".", k))
				some = append(some, kgo.StringRecord(values[k]))
			}
			if err := client.ProduceSync(context.Background(), some...).FirstErr(); err != nil {
				t.Error(err)
				return
			}
			w.mu.Lock()
			w.acked = append(w.acked, values...)
			w.mu.Unlock()
		}
	})
	return w
}

func (w *writer) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

func (w *writer) atLeast(n int) {
	w.t.Helper()
	redistest.Eventually(w.t, fmt.Sprint(n, " records to be written"), func() bool { return w.count() >= n })
}

func (w *writer) stop() []string {
	w.cancel()
	w.running.Wait()
	w.client.Close()
	return w.acked
}

// reader is a member of a group, which commits what it has read.
type reader struct {
	t       *testing.T
	client  *kgo.Client
	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	read    []*kgo.Record
}

func newReader(t *testing.T, broker, group, topic string, classic bool) *reader {
	t.Helper()
	opts := []kgo.Opt{
		kgo.SeedBrokers(broker), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.MetadataMinAge(50 * time.Millisecond),
		kgo.HeartbeatInterval(200 * time.Millisecond),
	}
	ctx, cancel := context.WithCancel(t.Context())
	if !classic {
		ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true) //nolint:staticcheck // That is its key.
		opts = append(opts, kgo.WithContext(ctx))
	}
	client, err := kgo.NewClient(opts...)
	must(t, err)
	r := &reader{t: t, client: client, cancel: cancel}
	t.Cleanup(r.close)
	r.running.Go(func() {
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			recs := fetches.Records()
			r.mu.Lock()
			r.read = append(r.read, recs...)
			r.mu.Unlock()
			soon, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // Also what was read last.
			_ = client.CommitRecords(soon, recs...)                                      // A member that was removed commits nothing.
			done()
		}
	})
	return r
}

func (r *reader) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.read)
}

func (r *reader) atLeast(n int) {
	r.t.Helper()
	redistest.Eventually(r.t, fmt.Sprint(n, " records to be read"), func() bool { return r.count() >= n })
}

func (r *reader) close() {
	r.cancel()
	r.running.Wait()
	r.client.Close()
}

// values returns what was read, each once.
func (r *reader) values() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[string]bool{}
	for _, rec := range r.read {
		out[string(rec.Value)] = true
	}
	return out
}

// wantDense demands that offsets count up from 0 in each partition.
func (r *reader) wantDense(partitions int32) {
	r.t.Helper()
	next := map[int32]int64{}
	for _, rec := range r.read {
		if rec.Offset != next[rec.Partition] {
			r.t.Fatalf("partition %d has offset %d where %d is next", rec.Partition, rec.Offset, next[rec.Partition])
		}
		next[rec.Partition]++
	}
	if len(next) != int(partitions) {
		r.t.Errorf("%d partitions were read", len(next))
	}
}

// missing says how many of some values no reader has read.
func missing(want []string, readers ...*reader) (n int) {
	var all []map[string]bool
	for _, r := range readers {
		all = append(all, r.values())
	}
	for _, v := range want {
		if !slices.ContainsFunc(all, func(m map[string]bool) bool { return m[v] }) {
			n++
		}
	}
	return n
}

// overlap says how many values both have read.
func overlap(a, b *reader) (n int) {
	have := a.values()
	for v := range b.values() {
		if have[v] {
			n++
		}
	}
	return n
}
