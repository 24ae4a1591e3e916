package interop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// txnCopier copies the topic "in" to the topic "out", each record once, with as many
// members of one group as are started. It is what exactly-once is about: offsets
// are committed in the transaction that writes what was made of the records.
type txnCopier struct {
	t       testing.TB
	addrs   []string
	opts    []kgo.Opt
	running sync.WaitGroup

	mu       sync.Mutex
	sessions int // ended transactions
	aborts   int
}

// member copies until stop is called. It takes a new client when its own is of no
// use any more, as an application does.
func (c *txnCopier) member(name string) (stop func()) {
	ctx, cancel := context.WithCancel(c.t.Context())
	var done sync.WaitGroup
	done.Add(1)
	c.running.Go(func() {
		defer done.Done()
		for n := 0; ctx.Err() == nil; n++ {
			if err := c.copy(ctx, fmt.Sprintf("copy-%s", name)); err != nil && ctx.Err() == nil {
				c.t.Logf("member %s begins anew: %v", name, err)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// copy runs one client.
func (c *txnCopier) copy(ctx context.Context, id string) error {
	s, err := kgo.NewGroupTransactSession(append([]kgo.Opt{
		kgo.SeedBrokers(c.addrs...), kgo.TransactionalID(id), kgo.TransactionTimeout(10 * time.Second), kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("in"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(200 * time.Millisecond), kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.RequestTimeoutOverhead(2 * time.Second),
	}, c.opts...)...)
	if err != nil {
		return err
	}
	defer s.Close()
	for ctx.Err() == nil {
		polling, cancel := context.WithTimeout(ctx, time.Second)
		fetches := s.PollRecords(polling, 50)
		cancel()
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := c.step(ctx, s, fetches); err != nil {
			return err
		}
	}
	return nil
}

// step copies what was polled, in one transaction.
func (c *txnCopier) step(ctx context.Context, s *kgo.GroupTransactSession, fetches kgo.Fetches) error {
	if err := s.Begin(); err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	for it := fetches.RecordIter(); !it.Done(); {
		r := it.Next()
		s.Produce(ctx, &kgo.Record{Topic: "out", Value: []byte(fmt.Sprintf("%d/%s", r.Partition, r.Value))}, func(_ *kgo.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
		})
	}
	if err := s.Client().Flush(ctx); err != nil {
		return err
	}
	mu.Lock()
	end := kgo.TransactionEndTry(failed == nil)
	mu.Unlock()
	committed, err := s.End(ctx, end)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions++
	if !committed {
		c.aborts++
	}
	return nil
}

// fill writes numbered records to both partitions of "in".
func (c *txnCopier) fill(cl *kgo.Client, from, next int) {
	c.t.Helper()
	var recs []*kgo.Record
	for i := from; i < next; i++ {
		for p := range int32(2) {
			recs = append(recs, &kgo.Record{Topic: "in", Partition: p, Value: []byte(fmt.Sprintf("%06d", i))})
		}
	}
	must(c.t, cl.ProduceSync(c.t.Context(), recs...).FirstErr())
}

// copied returns how many committed records "out" has.
func (c *txnCopier) copied() (int, error) {
	values, err := readValues(c.t.Context(), strings.Join(c.addrs, ","), "out", kgo.ReadCommitted())
	return len(values), err
}

// finish waits until everything is copied, and fails unless it is there once.
func (c *txnCopier) finish(n int) {
	c.t.Helper()
	waitFor(c.t, "everything to be copied", func() error {
		got, err := c.copied()
		if err == nil && got < 2*n {
			err = fmt.Errorf("%d of %d records", got, 2*n)
		}
		return err
	})
	got := valuesIn(c.t, strings.Join(c.addrs, ","), "out", kgo.ReadCommitted())
	var want []string
	for i := range n {
		want = append(want, fmt.Sprintf("0/%06d", i), fmt.Sprintf("1/%06d", i))
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.t.Errorf("%d records were copied to %d: %s", len(want), len(got), difference(want, got))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t.Logf("%d records, %d transactions, of which %d were aborted", len(got), c.sessions, c.aborts)
}

// difference names what is missing and what is there too often. Both are sorted.
func difference(want, got []string) string {
	var missing, more []string
	for len(want) > 0 || len(got) > 0 {
		switch {
		case len(got) == 0 || len(want) > 0 && want[0] < got[0]:
			missing, want = append(missing, want[0]), want[1:]
		case len(want) == 0 || got[0] < want[0]:
			more, got = append(more, got[0]), got[1:]
		default:
			want, got = want[1:], got[1:]
		}
	}
	return fmt.Sprintf("%d missing %q, %d too many %q", len(missing), missing[:min(10, len(missing))], len(more), more[:min(10, len(more))])
}

func TestCopyingThroughRebalancesIsExactlyOnce(t *testing.T) {
	eachVersion(t, groupSettings, func(t *testing.T, b *process, opts []kgo.Opt) {
		createTopic(t, b.addr(), "in", 2)
		c := &txnCopier{t: t, addrs: []string{b.addr()}, opts: opts}
		cl := connect(t, b.addr(), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		const each, rounds = 200, 5
		stops := []func(){c.member("a")}
		for n := range rounds {
			c.fill(cl, n*each, (n+1)*each)
			stops = append(stops, c.member(fmt.Sprintf("b%d", n))) // Which rebalances.
			waitFor(t, "half to be copied", func() error {
				got, err := c.copied()
				if err == nil && got < (2*n+1)*each {
					err = fmt.Errorf("%d of %d records", got, (2*n+1)*each)
				}
				return err
			})
			stops[0]()
			stops = stops[1:]
		}
		c.finish(rounds * each)
		for _, stop := range stops {
			stop()
		}
		// What is committed is what was copied. The markers of the last transaction
		// may still be on their way.
		admin := kadm.NewClient(connect(t, b.addr()))
		waitFor(t, "the committed offsets", func() error {
			offsets, err := admin.FetchOffsets(t.Context(), "copiers")
			if err != nil {
				return err
			}
			for p := range int32(2) {
				if o, _ := offsets.Lookup("in", p); o.At != rounds*each {
					return fmt.Errorf("partition %d: %d is committed", p, o.At)
				}
			}
			return nil
		})
	})
}
