package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/redistest"
)

// stateShards is how many partitions __transaction_state has in a fleet.
const stateShards = 5

// join starts another broker of a fleet.
func join(t *testing.T, s *redistest.Server, more ...func(*broker.Config)) *broker.Broker {
	t.Helper()
	return start(t, map[string]string{
		"muster.store": "redis", "muster.redis.url": s.URL(), "muster.redis.layout": "log", "num.partitions": "3",
		"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": fmt.Sprint(stateShards),
	}, more...)
}

// fleet starts brokers that share a Redis, with a topic t of which each leads a partition.
func fleet(t *testing.T, n int, more ...func(*broker.Config)) (*redistest.Server, []*broker.Broker) {
	t.Helper()
	s := redistest.Single(t)
	var brokers []*broker.Broker
	for range n {
		brokers = append(brokers, join(t, s, more...))
	}
	produce(t, client(t, brokers[0]), "t", 0, 1)
	eventually(t, "leaders", func(context.Context) error {
		for _, b := range brokers {
			if topic := b.Image().Topic("t"); topic == nil || !slices.ContainsFunc(topic.Partitions, func(p metadata.Partition) bool { return p.Leader == b.NodeID() }) {
				return fmt.Errorf("broker %d leads nothing", b.NodeID())
			}
		}
		return nil
	})
	return s, brokers
}

// idIn returns a transactional id of a shard.
func idIn(shard int32) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("x", i); journal.PartitionFor(id, stateShards) == shard {
			return id
		}
	}
}

// begin begins a transaction in all partitions of t, and in the offsets of a group that
// has its name.
func begin(t *testing.T, b *broker.Broker, id string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c := client(t, b, append(opts, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Minute))...)
	write(t, c, id)
	return c
}

func write(t *testing.T, c *kgo.Client, id string) {
	t.Helper()
	must(t, c.BeginTransaction())
	for p := range int32(3) {
		must(t, c.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Partition: p, Value: []byte(id)}).FirstErr())
	}
	eventually(t, "commit offsets", func(ctx context.Context) error { return commitIn(ctx, c, id) })
}

// commitIn commits an offset within the transaction of a client.
func commitIn(ctx context.Context, c *kgo.Client, id string) error {
	pid, epoch, err := c.ProducerID(ctx)
	if err != nil {
		return err
	}
	return commitAs(ctx, c, id, pid, epoch, 1)
}

// commitAs commits an offset within the transaction of a producer.
func commitAs(ctx context.Context, c *kgo.Client, id string, pid int64, epoch int16, at int64) error {
	add := kmsg.NewPtrAddOffsetsToTxnRequest()
	add.TransactionalID, add.Group, add.ProducerID, add.ProducerEpoch = id, id, pid, epoch
	added, err := add.RequestWith(ctx, c)
	if err == nil {
		err = kerr.ErrorForCode(added.ErrorCode)
	}
	if err != nil {
		return err
	}
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = id, id, pid, epoch, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = "t"
	p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	p.Offset = at
	topic.Partitions = append(topic.Partitions, p)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
}

func pidOf(t *testing.T, c *kgo.Client) int64 {
	t.Helper()
	pid, _, err := c.ProducerID(t.Context())
	must(t, err)
	return pid
}

// openEverywhere counts in how many partitions of t, and of the offsets, a producer has a
// transaction open.
func openEverywhere(brokers []*broker.Broker, pid int64) (records, offsets int) {
	for _, b := range brokers {
		for i := range int32(3) {
			for topic, n := range map[string]*int{"t": &records, metadata.OffsetsTopic: &offsets} {
				p := b.Partition(topic, i)
				if p == nil {
					continue
				}
				for _, o := range p.OpenTxns() {
					if o.ProducerID == pid {
						*n++
					}
				}
			}
		}
	}
	return records, offsets
}

func wantOpen(t *testing.T, when string, brokers []*broker.Broker, open bool, clients ...*kgo.Client) {
	t.Helper()
	want := [2]int{}
	if open {
		want = [2]int{3, 1}
	}
	for i, c := range clients {
		records, offsets := openEverywhere(brokers, pidOf(t, c))
		assert.Equal(t, [2]int{records, offsets}, want, "%s: transaction %d is open in %d partitions and %d of offsets", when, i, records, offsets)
	}
}

// keep remembers what Redis has of a topic, and returns how to go back to it.
func keep(t *testing.T, s *redistest.Server, topic string) (lose func()) {
	t.Helper()
	c, ctx := s.Client(t), t.Context()
	keys := func() []string {
		list, err := c.Do(ctx, c.B().Keys().Pattern("*"+topic+"*").Build()).AsStrSlice()
		must(t, err)
		return list
	}
	had := map[string]string{}
	for _, key := range keys() {
		v, err := c.Do(ctx, c.B().Dump().Key(key).Build()).ToString()
		must(t, err)
		had[key] = v
	}
	return func() {
		cmds := rueidis.Commands{c.B().Multi().Build(), c.B().Del().Key(keys()...).Build()}
		for key, v := range had {
			cmds = append(cmds, c.B().Restore().Key(key).Ttl(0).SerializedValue(v).Build())
		}
		for _, r := range c.DoMulti(ctx, append(cmds, c.B().Exec().Build())...) {
			must(t, r.Error())
		}
	}
}

// states asks coordinators for the states of transactional ids.
func states(ctx context.Context, c *kgo.Client, ids ...string) (map[string]string, error) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	out := map[string]string{}
	for _, shard := range c.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, s := range shard.Resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			if out[s.TransactionalID] = s.State; s.ErrorCode != 0 {
				out[s.TransactionalID] = kerr.ErrorForCode(s.ErrorCode).Error()
			}
		}
	}
	return out, nil
}

// settle waits until all coordinators have noticed that their log is not what it was, and
// all brokers know who they are.
func settle(t *testing.T, brokers []*broker.Broker) {
	t.Helper()
	for shard := range int32(stateShards) {
		id := idIn(shard) + "-again"
		for i := 0; journal.PartitionFor(id, stateShards) != shard; i++ {
			id = fmt.Sprint("again", i)
		}
		eventually(t, "a producer of shard "+fmt.Sprint(shard), func(ctx context.Context) error {
			c, err := kgo.NewClient(kgo.SeedBrokers(brokers[0].Addr()), kgo.TransactionalID(id))
			if err != nil {
				return err
			}
			defer c.Close()
			_, _, err = c.ProducerID(ctx)
			return err
		})
	}
	agree(t, brokers)
}

// agree waits until all brokers know the same coordinators.
func agree(t *testing.T, brokers []*broker.Broker) {
	t.Helper()
	eventually(t, "agreement", func(context.Context) error {
		for _, b := range brokers[1:] {
			if one, other := brokers[0].Image().Topic(metadata.TransactionsTopic), b.Image().Topic(metadata.TransactionsTopic); !slices.Equal(one.Partitions, other.Partitions) {
				return errors.New("brokers know different coordinators")
			}
		}
		return nil
	})
}

func resolve(t *testing.T, brokers []*broker.Broker) {
	t.Helper()
	for _, b := range brokers {
		must(t, b.ResolveOnce(t.Context(), time.Now().Add(time.Hour)))
	}
}

// What is open while __transaction_state loses its end, in partitions of three brokers and in
// offsets, is aborted by all of them: of an id that is gone, and of one whose coordinator
// knows an earlier transaction. A transaction that survived the loss is left alone.
func TestAFleetResolvesWhatTheEndOfTheStateLogTookWithIt(t *testing.T) {
	t.Parallel()
	s, brokers := fleet(t, 3)
	alive, older := begin(t, brokers[0], idIn(0)), begin(t, brokers[1], idIn(1))
	must(t, older.EndTransaction(t.Context(), kgo.TryCommit))
	eventually(t, "the end", func(ctx context.Context) error {
		got, err := states(ctx, older, idIn(1))
		if err == nil && got[idIn(1)] != "CompleteCommit" {
			err = fmt.Errorf("the state is %s", got[idIn(1)])
		}
		return err
	})
	lose := keep(t, s, metadata.TransactionsTopic)
	write(t, older, idIn(1))
	gone := begin(t, brokers[2], idIn(2))
	wantOpen(t, "before", brokers, true, alive, older, gone)
	lose()
	settle(t, brokers)
	got, err := states(t.Context(), alive, idIn(0), idIn(1), idIn(2))
	if err != nil || got[idIn(0)] != "Ongoing" || got[idIn(1)] != "CompleteCommit" || !strings.HasPrefix(got[idIn(2)], "TRANSACTIONAL_ID_NOT_FOUND") {
		t.Fatalf("coordinators know %v, %v", got, err)
	}
	wantOpen(t, "after the loss", brokers, true, alive, older, gone)
	resolve(t, brokers)
	wantOpen(t, "after one look", brokers, true, alive, older, gone)
	resolve(t, brokers)
	wantOpen(t, "after two looks", brokers, true, alive)
	wantOpen(t, "after two looks", brokers, false, older, gone)
	for _, c := range []*kgo.Client{older, gone} {
		if e := awaitEntry(t, brokers[0], fmt.Sprint(pidOf(t, c))); e.Kind != journal.TxnResolved || e.Broker == nil {
			t.Errorf("the journal tells %+v", e)
		}
	}
	must(t, alive.EndTransaction(t.Context(), kgo.TryCommit))
	wantRead(t, brokers[1], map[string]int{idIn(0): 3, idIn(1): 3})
	wantStable(t, brokers[1], map[string]int64{idIn(0): 1, idIn(1): 1, idIn(2): -1})
}

// wantRead wants readers of committed records to see so many of each value, and to
// come to the end.
func wantRead(t *testing.T, b *broker.Broker, want map[string]int) {
	t.Helper()
	end := client(t, b)
	must(t, end.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("end")}).FirstErr())
	got, ends := map[string]int{}, 0
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	reader := client(t, b, kgo.ConsumeTopics("t"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for total := 0; ends == 0 || total < 6; {
		fs := reader.PollFetches(ctx)
		assert.Must(t, ctx.Err(), "read are %v", got)
		fs.EachRecord(func(r *kgo.Record) {
			switch v := string(r.Value); {
			case v == "end":
				ends++
			case strings.HasPrefix(v, "x"):
				got[v]++
				total++
			}
		})
	}
	for v, n := range want {
		assert.Equal(t, got[v], n, "records of %s", v)
	}
	assert.Equal(t, len(got), len(want), "read are %v", got)
}

// wantStable wants groups to have these offsets in partition 0 of t, with none pending.
func wantStable(t *testing.T, b *broker.Broker, want map[string]int64) {
	t.Helper()
	c := client(t, b)
	for group, at := range want {
		eventually(t, "the offset of "+group, func(ctx context.Context) error {
			req := kmsg.NewPtrOffsetFetchRequest()
			req.RequireStable = true
			g := kmsg.NewOffsetFetchRequestGroup()
			topic := kmsg.NewOffsetFetchRequestGroupTopic()
			topic.Topic, topic.Partitions = "t", []int32{0}
			g.Group, g.Topics = group, append(g.Topics, topic)
			req.Groups = append(req.Groups, g)
			resp, err := req.RequestWith(ctx, c)
			if err != nil {
				return err
			}
			p := resp.Groups[0].Topics[0].Partitions[0]
			if p.ErrorCode != 0 || p.Offset != at {
				return fmt.Errorf("offset %d, error %v", p.Offset, kerr.ErrorForCode(p.ErrorCode))
			}
			return nil
		})
	}
}
