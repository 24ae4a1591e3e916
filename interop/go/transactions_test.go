package interop

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"muster/internal/assert"
	"muster/internal/redistest"
)

// Transactions of version 1 are those of clients before Kafka 4.0, which add
// partitions before they write to them; those of version 2 (KIP-890) add them by
// writing. A client chooses by the versions that it knows.
var transactionVersions = map[string][]kgo.Opt{
	"TV1": {kgo.MaxVersions(kversion.V3_8_0())},
	"TV2": nil,
}

// transactional returns a producer with a transactional id.
func transactional(t testing.TB, addr, id string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return connect(t, addr, append([]kgo.Opt{
		kgo.TransactionalID(id), kgo.TransactionTimeout(time.Minute), kgo.DefaultProduceTopic("out"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, opts...)...)
}

// inTransaction produces values to the partitions 0 and 1 in turn, and ends the
// transaction.
func inTransaction(t testing.TB, cl *kgo.Client, end kgo.TransactionEndTry, values ...string) {
	t.Helper()
	must(t, tryTransaction(t.Context(), cl, end, values...))
}

func tryTransaction(ctx context.Context, cl *kgo.Client, end kgo.TransactionEndTry, values ...string) error {
	if err := cl.BeginTransaction(); err != nil {
		return err
	}
	if err := cl.ProduceSync(ctx, recordsOf(values)...).FirstErr(); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	if err := cl.EndTransaction(ctx, end); err != nil {
		return fmt.Errorf("end: %w", err)
	}
	return nil
}

func recordsOf(values []string) []*kgo.Record {
	var recs []*kgo.Record
	for i, v := range values {
		recs = append(recs, &kgo.Record{Partition: int32(i % 2), Value: []byte(v)})
	}
	return recs
}

// valuesIn reads a topic to its end, as of now, and returns the values in order.
func valuesIn(t testing.TB, addr, topic string, isolation kgo.IsolationLevel) []string {
	t.Helper()
	values, err := readValues(t.Context(), addr, topic, isolation)
	must(t, err)
	slices.Sort(values)
	return values
}

const readTimeout = 20 * time.Second

func readValues(ctx context.Context, addr, topic string, isolation kgo.IsolationLevel) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	ends, err := endsOf(ctx, addr, topic, isolation)
	if err != nil {
		return nil, err
	}
	from, next := map[int32]kgo.Offset{}, map[int32]int64{}
	for p := range ends {
		from[p] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(addr, ",")...), kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	var out []string
	for {
		left := 0
		for p, end := range ends {
			if next[p] < end {
				left++
			}
		}
		if left == 0 {
			return out, nil
		}
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("read up to %v of %v: %w", next, ends, err)
		}
		for it := fetches.RecordIter(); !it.Done(); {
			r := it.Next()
			next[r.Partition] = r.Offset + 1
			if !r.Attrs.IsControl() {
				out = append(out, string(r.Value))
			}
		}
	}
}

// endsOf returns where the partitions end that have records, for readers of an
// isolation level.
func endsOf(ctx context.Context, addr, topic string, isolation kgo.IsolationLevel) (map[int32]int64, error) {
	adm, err := admin(addr)
	if err != nil {
		return nil, err
	}
	defer adm.Close()
	list := adm.ListEndOffsets
	if isolation == kgo.ReadCommitted() {
		list = adm.ListCommittedOffsets
	}
	offsets, err := list(ctx, topic)
	if err = errors.Join(err, offsets.Error()); err != nil {
		return nil, err
	}
	ends := map[int32]int64{}
	for p, o := range offsets[topic] {
		if o.Offset > 0 {
			ends[p] = o.Offset
		}
	}
	return ends, nil
}

// wantTopic fails unless a topic has these values, in any order, once all its
// transactions are decided.
func wantTopic(t testing.TB, addr, topic string, isolation kgo.IsolationLevel, want ...string) {
	t.Helper()
	allDecided(t, addr, topic)
	want = slices.Clone(want)
	slices.Sort(want)
	assert.EqualSlices(t, valuesIn(t, addr, topic, isolation), want, "%s", topic)
}

// allDecided waits until no transaction is open in a topic: EndTxn is answered
// before the markers are written.
func allDecided(t testing.TB, addr, topic string) {
	t.Helper()
	waitFor(t, "the last stable offset to reach the end", func() error {
		stable, err := endsOf(t.Context(), addr, topic, kgo.ReadCommitted())
		if err != nil {
			return err
		}
		ends, err := endsOf(t.Context(), addr, topic, kgo.ReadUncommitted())
		if err == nil && !maps.Equal(stable, ends) {
			err = fmt.Errorf("it is %v, the end %v", stable, ends)
		}
		return err
	})
}

func admin(addr string) (*kadm.Client, error) {
	return kadm.NewOptClient(kgo.SeedBrokers(strings.Split(addr, ",")...))
}

func TestTransactionsOfFranzGo(t *testing.T) {
	for name, opts := range transactionVersions {
		t.Run(name, func(t *testing.T) {
			b := serve(t, t.TempDir())
			createTopic(t, b.addr(), "out", 2)
			cl := transactional(t, b.addr(), "x", opts...)
			inTransaction(t, cl, kgo.TryCommit, "a1", "a2", "a3")
			inTransaction(t, cl, kgo.TryAbort, "b1", "b2", "b3")
			inTransaction(t, cl, kgo.TryCommit, "c1", "c2")
			wantTopic(t, b.addr(), "out", kgo.ReadCommitted(), "a1", "a2", "a3", "c1", "c2")
			wantTopic(t, b.addr(), "out", kgo.ReadUncommitted(), "a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2")
		})
	}
}

func TestTransactionsAreNotForLayoutStream(t *testing.T) {
	onlyOn(t, "redis")
	b := startMuster(t, "--store", redistest.Single(t).URL(), "--set", "muster.redis.prefix="+redistest.Prefix(t), "--listen", "127.0.0.1:0")
	createTopic(t, b.addr(), "out", 2, "muster.redis.layout", "stream")
	for name, opts := range transactionVersions {
		cl := transactional(t, b.addr(), name, opts...)
		assert.ErrorIs(t, tryTransaction(t.Context(), cl, kgo.TryCommit, "a"), kerr.UnsupportedForMessageFormat, "%s", name)
	}
	// A batch is refused with a reason that says what to do.
	w := dial(t, b.addr())
	id := "x"
	req := produceRequest("out", 0, -1, batch{values: values("a", 1), idempotent: true, producer: 7, attributes: 0x10}.encode())
	req.TransactionID = &id
	got := produced(t, ask[*kmsg.ProduceResponse](w, req))
	if got.ErrorCode != kerr.UnsupportedForMessageFormat.Code || !strings.Contains(text(got.ErrorMessage), "muster.redis.layout=indexed") {
		t.Errorf("error %d, %s", got.ErrorCode, text(got.ErrorMessage))
	}
	createTopic(t, b.addr(), "in", 2)
	createTopic(t, b.addr(), "log", 2, "muster.redis.layout", "log")
	cl := transactional(t, b.addr(), "y", kgo.DefaultProduceTopic("log"))
	inTransaction(t, cl, kgo.TryCommit, "a1", "a2")
	wantTopic(t, b.addr(), "log", kgo.ReadCommitted(), "a1", "a2")
}
