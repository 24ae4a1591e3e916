package broker_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/redistest"
)

var (
	cutCount = flag.Int("cuts", 3, "how often Redis loses the end of its append-only file")
	cutSeed  = flag.Uint64("cut-seed", 1, "decides where the file is cut")
)

// maxCut is how many bytes a cut takes at most: some tens of transactions.
const maxCut = 60 << 10

// TestCutsTearNoTransaction has transactional producers, of both versions, write to all
// partitions of a fleet, with offsets, and Redis lose the end of its append-only file
// again and again. Transactions may be gone that were committed, but each is there as a
// whole or not at all, and those of a producer are in order. (make cuts N=200)
func TestCutsTearNoTransaction(t *testing.T) {
	s, brokers := fleet(t, 3)
	if _, err := s.Nodes[0].Do("CONFIG", "SET", "appendfsync", "everysec"); err != nil {
		t.Fatal(err)
	}
	w := newCutWorld(t, brokers)
	chance := rand.New(rand.NewPCG(*cutSeed, 0))
	for i := range *cutCount {
		w.awaitProgress(chance.IntN(8))
		lost := int64(0)
		s.Nodes[0].Cut(t, func(size int64) int64 {
			lost = chance.Int64N(min(size, maxCut))
			return lost
		})
		t.Logf("cut %d: %d bytes lost", i+1, lost)
	}
	w.awaitProgress(2)
	w.stop()
	w.check()
}

// cutWorld is the clients of a fleet.
type cutWorld struct {
	t         *testing.T
	brokers   []*broker.Broker
	producers []*cutProducer
	cancel    context.CancelFunc
	running   sync.WaitGroup
	readers   atomic.Int64 // how often a reader was told that something is lost
}

// cutProducer is a program that writes transactions, one after the other. It numbers them.
type cutProducer struct {
	w    *cutWorld
	id   string
	opts []kgo.Opt
	rand *rand.Rand

	committed atomic.Int64 // how many, as far as it was told
	told      atomic.Int64 // how often it was told of an error
	mu        sync.Mutex
	outcome   map[int]string // of those of which it was told one
	last      int
}

func newCutWorld(t *testing.T, brokers []*broker.Broker) *cutWorld {
	ctx, cancel := context.WithCancel(context.Background())
	w := &cutWorld{t: t, brokers: brokers, cancel: cancel}
	t.Cleanup(w.stop)
	for i := range 4 {
		p := &cutProducer{w: w, id: fmt.Sprint("cut", i), rand: rand.New(rand.NewPCG(*cutSeed, uint64(i))), outcome: map[int]string{}}
		if i%2 == 0 {
			p.opts = versions["TV1"]
		}
		w.producers = append(w.producers, p)
		w.running.Go(func() { p.run(ctx) })
	}
	w.running.Go(func() { w.read(ctx) })
	return w
}

// stop ends the clients.
func (w *cutWorld) stop() {
	w.cancel()
	w.running.Wait()
}

// awaitProgress waits until each producer has committed some more transactions.
func (w *cutWorld) awaitProgress(more int) {
	w.t.Helper()
	for _, p := range w.producers {
		want := p.committed.Load() + int64(more)
		if err := redistest.Poll(2*time.Minute, func() error {
			if got := p.committed.Load(); got < want {
				return fmt.Errorf("%s has committed %d transactions, not %d", p.id, got, want)
			}
			return nil
		}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// read is someone who reads along all the time.
func (w *cutWorld) read(ctx context.Context) {
	c, err := kgo.NewClient(brisk(w.brokers, []kgo.Opt{kgo.ConsumeTopics("t"), kgo.FetchIsolationLevel(kgo.ReadCommitted())})...)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		c.PollFetches(ctx).EachError(func(_ string, _ int32, err error) {
			if lost := (*kgo.ErrDataLoss)(nil); errors.As(err, &lost) {
				w.readers.Add(1)
			}
		})
	}
}

// run writes transactions until ctx ends. After an error it begins anew, as a program does
// that is restarted: it does not know what became of the transaction.
func (p *cutProducer) run(ctx context.Context) {
	for ctx.Err() == nil {
		c, err := kgo.NewClient(brisk(p.w.brokers, append([]kgo.Opt{
			kgo.TransactionalID(p.id), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(time.Minute),
		}, p.opts...))...)
		if err != nil {
			p.w.t.Error(err)
			return
		}
		for err == nil && ctx.Err() == nil {
			err = p.transaction(ctx, c)
		}
		if ctx.Err() == nil {
			p.told.Add(1)
		}
		c.Close()
	}
}

// transaction writes one. Each record says whose it is, which transaction, and which of how
// many records of that.
func (p *cutProducer) transaction(ctx context.Context, c *kgo.Client) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	p.last++
	n := p.last
	if err := c.BeginTransaction(); err != nil {
		return err
	}
	var records []*kgo.Record
	count := 1 + p.rand.IntN(8)
	for i := range count {
		records = append(records, &kgo.Record{Topic: "t", Partition: p.rand.Int32N(3), Value: fmt.Append(nil, p.id, " ", n, " ", i, " ", count)})
	}
	for part := range slices.Chunk(records, 1+p.rand.IntN(count)) {
		if err := c.ProduceSync(ctx, part...).FirstErr(); err != nil {
			return err
		}
	}
	pid, epoch, err := c.ProducerID(ctx)
	if err == nil {
		err = commitAs(ctx, c, p.id, pid, epoch, int64(n))
	}
	if err != nil {
		return err
	}
	commit := p.rand.IntN(10) > 0
	if err := c.EndTransaction(ctx, kgo.TransactionEndTry(commit)); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if commit {
		p.outcome[n] = "committed"
		p.committed.Add(1)
	} else {
		p.outcome[n] = "aborted"
	}
	return nil
}

// cutRecord is a record of a producer.
type cutRecord struct{ n, i, count int }

// check reads all that is committed, and holds it against what producers did.
func (w *cutWorld) check() {
	t := w.t
	t.Helper()
	found := w.committed()
	whole, lost, told := 0, 0, int64(0)
	for _, p := range w.producers {
		seen := map[int]int{}
		counts := map[int]int{}
		for partition, list := range found[p.id] {
			if !slices.IsSortedFunc(list, func(a, b cutRecord) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.i, b.i)) }) {
				t.Errorf("records of %s in partition %d are out of order: %v", p.id, partition, list)
			}
			for _, r := range list {
				seen[r.n]++
				counts[r.n] = r.count
			}
		}
		newest := 0
		for n, got := range seen {
			newest = max(newest, n)
			if got != counts[n] {
				t.Errorf("transaction %d of %s has %d of %d records", n, p.id, got, counts[n])
			}
			assert.True(t, p.outcome[n] != "aborted", "transaction %d of %s was aborted, and is there", n, p.id)
		}
		for n, outcome := range p.outcome {
			if outcome == "committed" && seen[n] == 0 {
				lost++
			}
		}
		whole += len(seen)
		told += p.told.Load()
		w.wantOffset(p.id, int64(newest))
	}
	t.Logf("%d cuts: %d transactions are there, each as a whole; %d that were committed are lost; producers were told of an error %d times, a reader of a loss %d times",
		*cutCount, whole, lost, told, w.readers.Load())
}

// committed returns what readers of committed records find, by producer and partition, once
// everything is decided.
func (w *cutWorld) committed() map[string]map[int32][]cutRecord {
	t := w.t
	t.Helper()
	c := client(t, w.brokers[0])
	for _, p := range w.producers { // What they left open ends when someone takes their place.
		eventually(t, "to take the place of "+p.id, func(ctx context.Context) error {
			heir, err := kgo.NewClient(brisk(w.brokers, []kgo.Opt{kgo.TransactionalID(p.id)})...)
			if err != nil {
				return err
			}
			defer heir.Close()
			_, _, err = heir.ProducerID(ctx)
			return err
		})
	}
	var end map[int32]int64
	eventually(t, "all to be decided", func(ctx context.Context) (err error) {
		var stable map[int32]int64
		if end, stable, err = ends(ctx, c); err != nil {
			return err
		}
		for p, e := range end {
			if stable[p] != e {
				return fmt.Errorf("partition %d ends at %d, and is decided up to %d", p, e, stable[p])
			}
		}
		return nil
	})
	found := map[string]map[int32][]cutRecord{}
	for partition, next := range end {
		eventually(t, "to read", func(ctx context.Context) error {
			for _, p := range w.producers {
				if found[p.id] == nil {
					found[p.id] = map[int32][]cutRecord{}
				}
				found[p.id][partition] = nil
			}
			return w.readPartition(ctx, partition, next, found)
		})
	}
	return found
}

// readPartition reads the committed records of a partition.
func (w *cutWorld) readPartition(ctx context.Context, partition int32, next int64, found map[string]map[int32][]cutRecord) error {
	reader, err := kgo.NewClient(brisk(w.brokers, []kgo.Opt{kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {partition: kgo.NewOffset().AtStart()}})})...)
	if err != nil {
		return err
	}
	defer reader.Close()
	for at := int64(0); at < next; {
		fs := reader.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return err
		}
		fs.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			var id string
			var x cutRecord
			if r.Attrs.IsControl() || !strings.HasPrefix(string(r.Value), "cut") {
				return
			}
			if _, e := fmt.Sscan(string(r.Value), &id, &x.n, &x.i, &x.count); e != nil {
				err = e
			}
			found[id][partition] = append(found[id][partition], x)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wantOffset wants the offset to be there that belongs to the last transaction which is.
func (w *cutWorld) wantOffset(group string, want int64) {
	w.t.Helper()
	adm := kadm.NewClient(client(w.t, w.brokers[0]))
	eventually(w.t, "the offset of "+group, func(ctx context.Context) error {
		offsets, err := adm.FetchOffsets(ctx, group)
		if err == nil {
			err = offsets.Error()
		}
		if err != nil {
			return err
		}
		if at, ok := offsets.Lookup("t", 0); ok && at.At != want || !ok && want > 0 {
			return fmt.Errorf("the offset is %d, and the last transaction is %d", at.At, want)
		}
		return nil
	})
}
