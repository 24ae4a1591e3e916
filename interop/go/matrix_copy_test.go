package interop

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

const copies = 200

// copyInSessions has two of franz-go's sessions copy records from a topic to
// another, the second from some time on. Each transaction holds a few records and
// the offsets that are read up to; each third one is aborted and done again.
func copyInSessions(t *testing.T) {
	from, to := matrixTopic(t, "copy-from", 2), matrixTopic(t, "copy-to", 1)
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cl := connect(t, matrixBroker, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic(from))
	var want []string
	produce := func(first, next int) {
		for i := first; i < next; i++ {
			r := kgo.StringRecord(fmt.Sprint(i))
			r.Partition = int32(i % 2)
			must(t, cl.ProduceSync(ctx, r).FirstErr())
			want = append(want, "copy of "+fmt.Sprint(i))
		}
	}
	produce(0, copies/2)
	first := startSession(ctx, t, "a", from, to)
	waitFor(t, "some records to be copied", func() error { return first.atLeast(copies / 10) })
	second := startSession(ctx, t, "b", from, to)
	waitFor(t, "the second to join", func() error {
		if !second.joined.Load() {
			return fmt.Errorf("it has no partition")
		}
		return nil
	})
	produce(copies/2, copies)
	got, err := franzReadCommitted(ctx, matrixBroker, to, copies)
	assert.Must(t, err, "%d records copied", len(got))
	slices.Sort(got)
	slices.Sort(want)
	assert.EqualSlices(t, got, want, "copied")
	cancel()
	for _, c := range []*copySession{first, second} {
		if <-c.ended; c.err != nil && ctx.Err() == nil {
			t.Error(c.err)
		}
	}
	assert.True(t, second.copied.Load() != 0, "the second has copied nothing")
}

// copySession is one of these sessions.
type copySession struct {
	joined atomic.Bool
	copied atomic.Int64
	ended  chan struct{}
	err    error // once ended is closed
}

func (c *copySession) atLeast(n int64) error {
	if got := c.copied.Load(); got < n {
		return fmt.Errorf("%d are", got)
	}
	return nil
}

func startSession(ctx context.Context, t *testing.T, name, from, to string) *copySession {
	t.Helper()
	c := &copySession{ended: make(chan struct{})}
	session, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(matrixBroker), kgo.TransactionalID(to+name), kgo.ConsumerGroup(from),
		kgo.ConsumeTopics(from), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DefaultProduceTopic(to),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.Balancers(kgo.RangeBalancer()), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, m map[string][]int32) { c.joined.Store(len(m) > 0) }))
	must(t, err)
	go func() {
		defer close(c.ended)
		defer session.Close()
		for n := 1; ctx.Err() == nil && c.err == nil; n++ {
			c.err = c.copy(ctx, session, n%3 != 0)
		}
	}()
	return c
}

// copy copies what it reads in a transaction, which may be aborted in spite of
// commit: when there is a rebalance on the way.
func (c *copySession) copy(ctx context.Context, session *kgo.GroupTransactSession, commit bool) error {
	fetches := session.PollRecords(ctx, 5)
	if err := fetches.Err(); err != nil {
		return err
	}
	if err := session.Begin(); err != nil {
		return err
	}
	var records []*kgo.Record
	fetches.EachRecord(func(r *kgo.Record) { records = append(records, kgo.StringRecord("copy of "+string(r.Value))) })
	if err := session.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return err
	}
	committed, err := session.End(ctx, kgo.TransactionEndTry(commit))
	if committed {
		c.copied.Add(int64(len(records)))
	}
	return err
}
