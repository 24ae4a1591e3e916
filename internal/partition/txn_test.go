package partition

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// coordinator is what a test has for one. It answers at once, or holds questions
// until the test answers them.
type coordinator struct {
	mu     sync.Mutex
	answer TxnAnswer
	hold   bool
	asked  []TxnQuestion
	held   chan func(TxnAnswer)
}

func (c *coordinator) Ask(q TxnQuestion, done func(TxnAnswer)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, q)
	if c.hold {
		c.held <- done
		return
	}
	a := c.answer
	go done(a)
}

func (c *coordinator) says(err *kerr.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer, c.hold = TxnAnswer{Err: err, Start: NoStart}, false
}

func (c *coordinator) holds() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = true
}

func (c *coordinator) questions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// txnRig is a rig with a coordinator that says yes, a while after its log was
// opened.
type txnRig struct {
	*rig
	coord *coordinator
}

func newTxnRig(t *testing.T, s store.Store, set map[string]string) *txnRig {
	t.Helper()
	with := map[string]string{"muster.redis.layout": "log"}
	maps.Copy(with, set)
	r := &txnRig{newRig(t, s, with), &coordinator{answer: TxnAnswer{Start: NoStart}, held: make(chan func(TxnAnswer), 100)}}
	r.deps.coordinator = r.coord
	r.now = r.now.Add(soon)
	return r
}

// txnBatch is a batch of a transaction.
func (r *txnRig) txnBatch(p producerAt, n int, values ...string) record.Batch {
	b := r.batch(p, n, values...)
	tmpl := record.TemplateOf(b)
	tmpl.Transactional = true
	var recs []record.Record
	if err := b.Each(func(x *record.Record) error {
		y := *x
		y.Key, y.Value = append([]byte(nil), x.Key...), append([]byte(nil), x.Value...)
		recs = append(recs, y)
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	out, err := record.Build(tmpl, recs)
	must(r.t, err)
	return out
}

// tv1 and tv2x are how old and new clients produce in transactions.
var (
	oldTxn = Produce{Acks: AcksAll, TransactionalID: "x", Version: 9}
	newTxn = Produce{Acks: AcksAll, TransactionalID: "x", Version: 12}
)

// begin begins an append.
func (r *rig) begin(b record.Batch, how Produce) <-chan Appended {
	done := make(chan Appended, 1)
	r.part().Append(r.t.Context(), b, how, func(a Appended) { done <- a })
	return done
}

func await[T any](t *testing.T, c <-chan T) (x T) {
	t.Helper()
	select {
	case x = <-c:
	case <-time.After(20 * time.Second):
		t.Fatal("there is no outcome")
	}
	return x
}

func (r *rig) produce(b record.Batch, how Produce) Appended {
	r.t.Helper()
	return await(r.t, r.begin(b, how))
}

func (r *rig) wantProduce(b record.Batch, how Produce, offset int64) {
	r.t.Helper()
	if a := r.produce(b, how); a.Err != nil || a.BaseOffset != offset {
		r.t.Fatalf("got %+v, want offset %d", a, offset)
	}
}

func (r *rig) wantNot(b record.Batch, how Produce, code *kerr.Error) {
	r.t.Helper()
	end := r.part().LogEndOffset()
	if a := r.produce(b, how); !errors.Is(a.Err, code) {
		r.t.Fatalf("got %+v, want %v", a, code)
	}
	if got := r.part().LogEndOffset(); got != end {
		r.t.Fatalf("log end moved from %d to %d", end, got)
	}
}

func (r *rig) beginMarker(m Marker) <-chan *kerr.Error {
	done := make(chan *kerr.Error, 1)
	r.part().WriteMarker(r.t.Context(), m, func(err *kerr.Error) { done <- err })
	return done
}

// wantMarker writes a marker and wants the log to grow by so much.
func (r *rig) wantMarker(m Marker, want *kerr.Error, grows int64) {
	r.t.Helper()
	end := r.part().LogEndOffset()
	if got := await(r.t, r.beginMarker(m)); !errors.Is(got, want) && got != want {
		r.t.Fatalf("%+v: got %v, want %v", m, got, want)
	}
	if got := r.part().LogEndOffset(); got != end+grows {
		r.t.Fatalf("%+v: log end moved from %d to %d, want by %d", m, end, got, grows)
	}
}

// marker is a marker of an old transaction.
func marker(producer int64, epoch int16, commit bool) Marker {
	return Marker{ProducerID: producer, ProducerEpoch: epoch, Commit: commit, CoordinatorEpoch: 3, Start: NoStart}
}

func (r *rig) wantStable(lso int64) {
	r.t.Helper()
	if got := r.part().LastStableOffset(); got != lso {
		r.t.Fatalf("last stable offset is %d, want %d", got, lso)
	}
}

// fetch reads as a reader of committed records does, or as one that is not.
func (r *rig) fetch(offset int64, committed bool, maxBytes int) (batches []record.Batch, f Fetched) {
	r.t.Helper()
	f = r.part().Read(r.t.Context(), Fetch{Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: maxBytes, MinOne: true, Committed: committed})
	if f.Err != nil {
		r.t.Fatal(f.Err)
	}
	b, err := f.Records.Load()
	f.Records.Release()
	for err == nil && len(b) > 0 {
		var batch record.Batch
		batch, b, err = record.Next(b)
		batches = append(batches, batch)
	}
	must(r.t, err)
	return batches, f
}

func bases(batches []record.Batch) string {
	var out []int64
	for _, b := range batches {
		out = append(out, b.BaseOffset())
	}
	return fmt.Sprint(out)
}
