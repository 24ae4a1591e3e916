package broker_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/redistest"
)

// account is a broker, clients of it, and the books of what these do.
type account struct {
	*books
	t       *testing.T
	props   map[string]string
	broker  *broker.Broker
	c       *kgo.Client
	adm     *kadm.Client
	readers map[string][]*bookReader
	txn     *kgo.Client
	within  map[spot]bool // What the open transaction has written to; nil if none is open.
	partial *handmade
	stream  bool // Offsets are times.
}

func openAccount(t *testing.T, seed uint64, props map[string]string) *account {
	t.Helper()
	t.Logf("seed %d: go test ./internal/broker -run %s -lag.seed %d", seed, t.Name(), seed)
	a := &account{books: newBooks(seed), t: t, readers: map[string][]*bookReader{}, props: map[string]string{
		"listeners": fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", redistest.FreePort(t)), "muster.http.listener": "127.0.0.1:0",
		"group.initial.rebalance.delay.ms": "0", "log.retention.check.interval.ms": "100",
	}}
	maps.Copy(a.props, props)
	a.start()
	a.c = a.client(manual(), kgo.ClientID("writer"))
	a.adm = kadm.NewClient(a.c)
	return a
}

func (a *account) start() {
	a.broker = start(a.t, a.props, func(c *broker.Config) { c.Everywhere(a.clock.now) })
}

// client is one that does not give up while the broker starts again, nor dies when the
// clock jumps.
func (a *account) client(opts ...kgo.Opt) *kgo.Client {
	return client(a.t, a.broker, append([]kgo.Opt{
		kgo.RetryBackoffFn(func(int) time.Duration { return 20 * time.Millisecond }), kgo.UnknownTopicRetries(-1),
	}, opts...)...)
}

// restart stops the broker and starts it again. Clients live on.
func (a *account) restart() {
	a.t.Helper()
	must(a.t, a.broker.Close())
	a.clock.jump(time.Duration(a.rng.IntN(120)) * time.Second)
	a.start()
	a.restarted()
	eventually(a.t, "what was known before the restart is known after it", func(ctx context.Context) error {
		return a.agree(ctx, false)
	})
	a.looked(a.clock.now())
}

// topic creates a topic, and its books.
func (a *account) topic(name string, partitions int32, configs map[string]*string) {
	a.t.Helper()
	makeTopic(a.t, a.c, name, partitions, configs)
	for p := range partitions {
		a.logs[spot{name, p}] = &logBook{open: -1}
	}
}

// produce writes records. Some producers have a wrong clock.
func (a *account) produce(c *kgo.Client, s spot, n int, wrong time.Duration) {
	a.t.Helper()
	l := a.logs[s]
	now := a.clock.now()
	var recs []*kgo.Record
	for range n {
		recs = append(recs, &kgo.Record{Topic: s.topic, Partition: s.partition, Value: []byte("value"), Timestamp: now.Add(wrong)})
	}
	must(a.t, c.ProduceSync(a.t.Context(), recs...).FirstErr())
	for _, r := range recs {
		if !a.stream && r.Offset != l.next() {
			a.t.Fatalf("a record of %v got offset %d, not %d", s, r.Offset, l.next())
		}
		told := r.Timestamp
		if a.stream {
			told = time.UnixMilli(r.Offset >> sequenceBits)
		}
		l.add(written{offset: r.Offset, at: now, told: told})
	}
}

// delete deletes records up to one.
func (a *account) delete(s spot) {
	a.t.Helper()
	l := a.logs[s]
	upTo := l.start + a.rng.Int64N(l.next()-l.start+1)
	if l.open >= 0 {
		upTo = min(upTo, l.open)
	}
	if resp, err := a.adm.DeleteRecords(a.t.Context(), offsetsOf(s.topic, s.partition, upTo)); err != nil || resp.Error() != nil {
		a.t.Fatal(err, resp.Error())
	}
	l.start = max(l.start, upTo)
}

// starts asks where logs start whose records are deleted behind our back, and says
// whether that has changed.
func (a *account) starts(topic string) (changed bool) {
	a.t.Helper()
	listed, err := a.adm.ListStartOffsets(a.t.Context(), topic)
	if err != nil || listed.Error() != nil {
		a.t.Fatal(err, listed.Error())
	}
	listed.Each(func(o kadm.ListedOffset) {
		l := a.logs[spot{topic, o.Partition}]
		changed = changed || l.start != o.Offset
		l.start = o.Offset
	})
	return changed
}

// commitOutside commits for a group that has no members.
func (a *account) commitOutside(group string, s spot, at int64) {
	a.t.Helper()
	commit(a.t, a.c, group, s.topic, s.partition, at)
	a.commit(group, s, at)
}

// begin begins a transaction, or goes on with it.
func (a *account) begin(s spot) {
	a.t.Helper()
	if a.txn == nil {
		a.txn = a.client(manual(), kgo.TransactionalID("shop"), kgo.TransactionTimeout(15*time.Minute))
	}
	if a.within == nil {
		must(a.t, a.txn.BeginTransaction())
		a.within = map[spot]bool{}
	}
	if !a.within[s] {
		a.within[s], a.logs[s].open = true, a.logs[s].next()
	}
	l := a.logs[s]
	before := len(l.records)
	a.produce(a.txn, s, 1+a.rng.IntN(2), 0)
	for i := before; i < len(l.records); i++ {
		l.records[i].txn = true
	}
}

// end ends the transaction, which leaves a marker in each partition.
func (a *account) end() {
	a.t.Helper()
	how := kgo.TransactionEndTry(a.rng.IntN(2) == 0)
	must(a.t, a.txn.EndTransaction(a.t.Context(), how))
	for s := range a.within {
		l := a.logs[s]
		now := a.clock.now()
		for i := range l.records {
			if w := &l.records[i]; w.txn && w.offset >= l.open && how == kgo.TryAbort {
				w.quiet = true
			}
		}
		l.add(written{offset: l.next(), at: now, told: now, marker: true, quiet: true})
		l.open = -1
		eventually(a.t, "the marker", func(ctx context.Context) error { return a.ends(ctx, s, l.next()) })
	}
	a.within = nil
}

// ends says whether a log ends at an offset, by a client's word.
func (a *account) ends(ctx context.Context, s spot, at int64) error {
	listed, err := a.adm.ListEndOffsets(ctx, s.topic)
	if err == nil {
		err = listed.Error()
	}
	if o, _ := listed.Lookup(s.topic, s.partition); err == nil && o.Offset != at {
		err = fmt.Errorf("%v ends at %d, not %d", s, o.Offset, at)
	}
	return err
}

// bookReader is a real consumer.
type bookReader struct {
	c    *kgo.Client
	read map[spot]int64 // The last record that it got.
}

// join has a member join a group that reads orders, and waits until all have joined.
// Meanwhile lag is what it is.
func (a *account) join(group string) {
	a.t.Helper()
	n := len(a.readers[group])
	r := &bookReader{read: map[spot]int64{}}
	r.c = a.client(
		kgo.ClientID(fmt.Sprint(group, "-", n)), kgo.ConsumerGroup(group), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(), kgo.FetchMaxWait(50*time.Millisecond),
		kgo.SessionTimeout(30*time.Minute), kgo.RebalanceTimeout(30*time.Minute), kgo.HeartbeatInterval(100*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	a.readers[group] = append(a.readers[group], r)
	a.settle(group)
}

// leave has the last member of a group leave.
func (a *account) leave(group string) {
	a.t.Helper()
	last := len(a.readers[group]) - 1
	a.readers[group][last].c.Close()
	a.readers[group] = a.readers[group][:last]
	a.settle(group)
}

// settle waits until a group is stable with the members that it has. As long as it is not,
// its lag is known all the same.
func (a *account) settle(group string) {
	a.t.Helper()
	want, state := len(a.readers[group]), "Stable"
	if want == 0 {
		state = "Empty"
	}
	eventually(a.t, group+" settles", func(ctx context.Context) error {
		assert.Must(a.t, a.agree(ctx, false), "while %s rebalances", group)
		for _, r := range a.readers[group] {
			r.poll(ctx)
		}
		d, err := a.adm.DescribeGroups(ctx, group)
		if err == nil && (d[group].State != state || len(d[group].Members) != want) {
			err = fmt.Errorf("%s with %d members", d[group].State, len(d[group].Members))
		}
		return err
	})
	g := a.group(group)
	g.members = want
	for s, p := range g.places {
		if p.owner = left; s.topic == "orders" && want > 0 {
			p.owner, p.fetches = owned, true
		}
	}
}

// poll takes what there is.
func (r *bookReader) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	r.c.PollFetches(ctx).EachRecord(func(rec *kgo.Record) { r.read[spot{rec.Topic, rec.Partition}] = rec.Offset })
}

// readOn has the members of a group read the newest record of each partition, apart from
// those that they have paused.
func (a *account) readOn(group string, paused map[spot]bool) {
	a.t.Helper()
	g := a.group(group)
	newest := func(s spot) bool {
		for _, r := range a.readers[group] {
			if at, ok := r.read[s]; ok && at == a.logs[s].newest() {
				return true
			}
		}
		return false
	}
	for _, s := range a.spots() {
		if s.topic != "orders" || paused[s] {
			continue
		}
		eventually(a.t, fmt.Sprintf("%s reads %v", group, s), func(ctx context.Context) error {
			for _, r := range a.readers[group] {
				r.poll(ctx)
			}
			if !newest(s) {
				return errors.New("it does not get the newest record")
			}
			return nil
		})
		if p := g.places[s]; p != nil {
			p.fetched = a.clock.now()
		}
	}
}

// commitAsMember commits for a group with members.
func (a *account) commitAsMember(group string, s spot, at int64) {
	a.t.Helper()
	eventually(a.t, group+" commits", func(ctx context.Context) (err error) {
		a.readers[group][0].c.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{s.topic: {s.partition: {Epoch: -1, Offset: at}}},
			func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, failed error) {
				switch {
				case failed != nil:
					err = failed
				case len(resp.Topics) != 1:
					err = errors.New("nothing was committed")
				default:
					err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
				}
			})
		return err
	})
	a.commit(group, s, at)
}
