package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	copyIn, copyOut = 3, 2 // partitions
	copyKeys        = 12
	copyPrefill     = 20 // records of each key at the beginning
	// copyAhead is how many records may wait to be copied: a slow machine must not have
	// more to do.
	copyAhead = 600
)

// copyRun copies a topic to another, with a group of its own.
type copyRun struct {
	t       *testing.T
	name    string // also of the group; the topics' names begin with it
	addrs   []string
	client  *kgo.Client
	admin   *kadm.Client
	stop    context.CancelFunc // of feeding, and of killing copiers
	feeding sync.WaitGroup
	copiers []*copierSlot
	reader  *copyReader

	written         [copyKeys]int // records of each key that are in the input; once feeding is over
	unwritten       error         // the first record that is not
	copied          atomic.Int64
	commits, aborts atomic.Int64
	killed, failed  atomic.Int64
}

// startCopyRun creates the topics, and starts to fill one and to copy it.
func startCopyRun(t *testing.T, addrs []string, seed uint64, lane int) *copyRun {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, uint64(lane)+1))
	name := fmt.Sprintf("copy-%d-%c", seed, 'a'+lane)
	cl := connect(t, addrs[0], kgo.SeedBrokers(addrs...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.RequestTimeoutOverhead(2*time.Second), kgo.AlwaysRetryEOF())
	r := &copyRun{t: t, name: name, addrs: addrs, client: cl, admin: kadm.NewClient(cl)}
	for topic, partitions := range map[string]int32{r.in(): copyIn, r.out(): copyOut} {
		waitFor(t, "topic "+topic, func() error {
			_, err := r.admin.CreateTopic(t.Context(), partitions, 1, nil, topic)
			return err
		})
	}
	// franz-go fails records that wait for a producer id when it cannot get one.
	waitFor(t, "a producer id", func() error {
		_, _, err := cl.ProducerID(t.Context())
		return err
	})
	r.reader = startCopyReader(r)
	ctx, stop := context.WithCancel(t.Context())
	r.stop = stop
	for i := range 2 + rng.IntN(2) {
		spec := copierSpec{
			Client: "franz-go", TV1: rng.IntN(2) == 0, Addrs: addrs, Group: name, ID: fmt.Sprintf("%s-%d", name, i),
			In: r.in(), Out: r.out(), Seed: rng.Uint64(),
		}
		if rng.IntN(4) == 0 {
			spec.Client, spec.TV1 = "librdkafka", true
		}
		r.copiers = append(r.copiers, startCopier(r, spec))
	}
	r.feeding.Go(func() { r.feed(ctx) })
	r.feeding.Go(func() { r.killCopiers(ctx, rng) })
	return r
}

func (r *copyRun) in() string  { return r.name + "-in" }
func (r *copyRun) out() string { return r.name + "-out" }

// what names the clients.
func (r *copyRun) what() string {
	var clients []string
	for _, c := range r.copiers {
		clients = append(clients, c.String())
	}
	return strings.Join(clients, ", ")
}

// feed writes numbered records of every key in turn until it is told to stop, and
// then waits until all are written.
func (r *copyRun) feed(ctx context.Context) {
	var mu sync.Mutex
	done := func(_ *kgo.Record, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil && r.unwritten == nil {
			r.unwritten = err
		}
	}
	sent := 0
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; {
		if n < copyPrefill || sent-int(r.copied.Load()) < copyAhead {
			for k := range copyKeys {
				key := fmt.Sprintf("k%02d", k)
				r.client.Produce(r.t.Context(), &kgo.Record{
					Topic: r.in(), Partition: copyPartition([]byte(key), copyIn), Key: []byte(key), Value: fmt.Appendf(nil, "%s/%06d", key, n),
				}, done)
				r.written[k]++
				sent++
			}
			n++
		}
		if n < copyPrefill {
			continue
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), copyPatience)
	defer cancel()
	err := r.client.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	r.unwritten = errors.Join(r.unwritten, err)
}

// killCopiers kills or closes a copier a few times; another takes its place, with
// its transactional id or another.
func (r *copyRun) killCopiers(ctx context.Context, rng *rand.Rand) {
	for range 1 + rng.IntN(4) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(300+rng.IntN(2000)) * time.Millisecond):
		}
		c := r.copiers[rng.IntN(len(r.copiers))]
		switch rng.IntN(4) {
		case 0:
			c.leave()
		case 1:
			c.renew()
			fallthrough
		default:
			c.kill()
			r.killed.Add(1)
		}
	}
}

// grown returns a check that so many more transactions are committed.
func (r *copyRun) grown(more int) func() error {
	before := r.commits.Load()
	return func() error {
		if n := r.commits.Load(); n < before+int64(more) {
			return fmt.Errorf("%d transactions, %d before (%s)", n, before, r.what())
		}
		return nil
	}
}

// finish ends the feeding, waits until everything is copied, ends the copiers, and says
// whether everything is as it should be.
func (r *copyRun) finish(deadline time.Time) error {
	r.stop()
	r.feeding.Wait()
	err := r.unwritten
	if err != nil {
		err = fmt.Errorf("the input cannot be written: %w", err)
	} else {
		err = r.await(deadline, "everything to be copied", r.allCopied)
	}
	for _, c := range r.copiers {
		c.end()
	}
	if err == nil {
		err = r.await(deadline, "the transactions to be over", r.allDecided)
	}
	if err == nil {
		err = r.await(deadline, "them to be read", func(context.Context) error { return r.reader.has(len(r.wanted())) })
	}
	return errors.Join(err, r.compare())
}

func (r *copyRun) counted() copyCounts {
	c := copyCounts{commits: int(r.commits.Load()), aborts: int(r.aborts.Load()), killed: int(r.killed.Load()), failed: int(r.failed.Load())}
	for _, n := range r.written {
		c.records += n
	}
	return c
}

// remove deletes what a run has left, so that a long test does not get slower.
func (r *copyRun) remove() {
	r.t.Helper()
	waitFor(r.t, "the topics of "+r.name+" to be deleted", func() error {
		left, err := r.admin.ListTopics(r.t.Context(), r.in(), r.out())
		if err != nil {
			return err
		}
		for _, topic := range left {
			if topic.Err == nil {
				_, err := r.admin.DeleteTopic(r.t.Context(), topic.Topic)
				return errors.Join(err, errors.New("it may be there still"))
			}
		}
		return nil
	})
	r.client.Close()
}
