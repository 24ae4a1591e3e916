package writer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

var groups = Kind[journal.Entry]{
	Topic: metadata.JournalTopic, Name: "group journal", Size: (*journal.Entry).Size,
	Key: func(e *journal.Entry) string { return e.Group }, At: func(e *journal.Entry) time.Time { return e.Time },
}

// world is a broker as a journal sees it: partitions over a store.
type world struct {
	*partition.Manager
	t       *testing.T
	image   atomic.Pointer[metadata.Image]
	created atomic.Int32
	leads   int32 // So many partitions of the journal.
	dropped atomic.Int64
	log     strings.Builder
}

// newWorld has a journal of so many partitions as soon as one is created.
func newWorld(t *testing.T, s store.Store, partitions, leads int32) (*world, Options) {
	w := &world{t: t, leads: leads}
	w.Manager = partition.NewManager(partition.Options{Store: s, Self: 1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	w.image.Store(metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}))
	t.Cleanup(func() { _ = w.Close(context.Background()) })
	return w, Options{
		Topic: func(name string) *metadata.Topic { return w.image.Load().Topic(name) },
		Partition: func(topic string, index int32) *partition.Partition {
			if index >= leads {
				return nil
			}
			return w.Get(topic, index)
		},
		CreateTopic: func(ctx context.Context, name string) error {
			if w.created.Add(1); partitions == 0 {
				return errors.New("not now")
			}
			edit := w.image.Load().Edit()
			topic := metadata.Topic{Name: name, Internal: true}
			for range partitions {
				topic.Partitions = append(topic.Partitions, metadata.Partition{Leader: 1})
			}
			edit.PutTopic(topic)
			before := w.image.Swap(edit.Image())
			return w.Apply(ctx, before, w.image.Load(), edit.Changed())
		},
		Dropped: func(n int) { w.dropped.Add(int64(n)) }, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
	}
}

// entries returns what is in the journal, partition by partition.
func (w *world) entries() (out [][]journal.Entry) {
	w.t.Helper()
	for i := range w.leads {
		p := w.Get(metadata.JournalTopic, i)
		var in []journal.Entry
		for at := int64(0); at < p.HighWatermark(); {
			f := p.Read(w.t.Context(), partition.Fetch{Offset: at, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1 << 20, MinOne: true})
			b, err := f.Records.Load()
			if f.Err != nil || err != nil {
				w.t.Fatal(f.Err, err)
			}
			for len(b) > 0 {
				var batch record.Batch
				if batch, b, err = record.Next(b); err != nil {
					w.t.Fatal(err)
				}
				if err := batch.Each(func(r *record.Record) error {
					in = append(in, journal.Entry{})
					return json.Unmarshal(r.Value, &in[len(in)-1])
				}); err != nil {
					w.t.Fatal(err)
				}
				at = batch.LastOffset() + 1
			}
			f.Records.Release()
		}
		out = append(out, in)
	}
	return out
}

// ended is a context that is.
func ended(t *testing.T) context.Context {
	ctx, end := context.WithCancel(t.Context())
	end()
	return ctx
}

// step is one entry, with a number.
func step(group string, n int) []journal.Entry {
	return []journal.Entry{{Group: group, Kind: journal.KindSettled, Generation: int32(n)}}
}

// inOrder says whether each group has so many entries, in their order.
func inOrder(t *testing.T, got [][]journal.Entry, groups, each int) {
	t.Helper()
	next := map[string]int32{}
	for _, in := range got {
		for i := range in {
			if in[i].Generation != next[in[i].Group] {
				t.Fatalf("%s has %d after %d", in[i].Group, in[i].Generation, next[in[i].Group])
			}
			next[in[i].Group]++
		}
	}
	for name, n := range next {
		if int(n) != each {
			t.Errorf("%s has %d entries of %d", name, n, each)
		}
	}
	if len(next) != groups {
		t.Errorf("%d groups of %d", len(next), groups)
	}
}

// Every batch is a round trip on Redis. What comes faster than that is written together.
func TestNothingIsLeftOutUnderLoadOnRedis(t *testing.T) {
	client, err := conn.Connect(t.Context(), redistest.Single(t).URL(), conn.Options{DialTimeout: time.Minute, CommandTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := redis.New(client, redis.Options{Prefix: "j", Timeout: time.Minute, ReplicaTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { _ = s.Close() })
	w, opts := newWorld(t, s, 4, 4)
	j := New(opts, groups)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { j.Run(ctx) })
	const names, each = 5, 1000
	for n := range each {
		for g := range names {
			j.Add(step(fmt.Sprint("group-", g), n))
		}
	}
	stop()
	running.Wait()
	if n := w.dropped.Load(); n != 0 {
		t.Errorf("%d are left out", n)
	}
	inOrder(t, w.entries(), names, each)
	if free := j.Free(); free != 1 {
		t.Errorf("of the room %v is free in the end", free)
	}
}

// heldStore holds up what is appended until it is let go.
type heldStore struct {
	store.Store
	appends atomic.Int32
	began   chan struct{}
	hold    chan struct{}
}

func (s *heldStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	return &heldLog{l, s}, err
}

type heldLog struct {
	store.Log
	s *heldStore
}

func (l *heldLog) Append(ctx context.Context, batch []byte) (store.Appended, error) {
	if l.s.appends.Add(1) == 1 {
		close(l.s.began)
	}
	<-l.s.hold
	return l.Log.Append(ctx, batch)
}

// While a batch is on its way, what comes gathers; and it is bounded.
func TestWhatGathersIsWrittenInOneBatchAndBounded(t *testing.T) {
	held := &heldStore{Store: mem.New(), began: make(chan struct{}), hold: make(chan struct{})}
	w, opts := newWorld(t, held, 1, 1)
	j := New(opts, groups)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { j.Run(ctx) })
	j.Add(step("billing", 0))
	<-held.began
	n := 1
	for ; j.Free() > 0; n++ {
		j.Add(step("billing", n))
	}
	if takes := n * groups.Size(&step("billing", 0)[0]); takes < MaxBytes || takes > MaxBytes+2*groups.Size(&step("billing", 0)[0]) {
		t.Errorf("%d entries, which take %d bytes, have room", n, takes)
	}
	if w.dropped.Load() != 0 || w.log.Len() > 0 {
		t.Errorf("%d are left out before it is full: %s", w.dropped.Load(), &w.log)
	}
	j.Add(append(step("shipping", n), step("shipping", n)...))
	if w.dropped.Load() != 2 || strings.Count(w.log.String(), "group journal falls behind; entries left out\" count=2 first=shipping") != 1 {
		t.Errorf("%d are left out: %s", w.dropped.Load(), &w.log)
	}
	close(held.hold)
	stop()
	running.Wait()
	inOrder(t, w.entries(), 1, n)
	if batches := held.appends.Load(); batches > 4 {
		t.Errorf("%d entries are written in %d batches", n, batches)
	}
}

// A shard that has loaded has something to say of each of its groups, at once,
// which need not fit into one batch.
func TestBatchesFitTheirPartition(t *testing.T) {
	const limit = 10_000
	j := New(Options{}, groups)
	var entries []journal.Entry
	for i := range 1000 {
		entries = append(entries, journal.Entry{Group: fmt.Sprint(i), Kind: journal.KindLoaded})
	}
	entries[500].Group = strings.Repeat("large", limit)
	var got []string
	for rest := entries; len(rest) > 0; {
		recs, err := j.encode(rest, limit)
		if err != nil || len(recs) == 0 {
			t.Fatalf("%d records, %v", len(recs), err)
		}
		b, err := record.Build(record.PlainTemplate(), recs)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > limit+record.HeaderSize && len(recs) > 1 {
			t.Errorf("a batch of %d records has %d bytes", len(recs), len(b))
		}
		for _, r := range recs {
			got = append(got, string(r.Key))
		}
		rest = rest[len(recs):]
	}
	for i := range entries {
		if got[i] != entries[i].Group {
			t.Fatalf("record %d is of group %.20q", i, got[i])
		}
	}
	if len(got) != len(entries) {
		t.Errorf("%d records of %d entries", len(got), len(entries))
	}
}

// What happened before the broker stops is in the journal after it.
func TestAJournalIsWrittenToItsEndWhenItStops(t *testing.T) {
	w, opts := newWorld(t, mem.New(), 2, 2)
	j := New(opts, groups)
	const steps = 50
	for n := range steps {
		j.Add(step("billing", n))
		j.Add(step("shipping", n))
	}
	j.Run(ended(t))
	inOrder(t, w.entries(), 2, steps)
	if n := w.created.Load(); n != 1 {
		t.Errorf("its topic was created %d times", n)
	}
}

// A topic that cannot be created, or is lost right after that, costs entries, not the broker.
func TestWithoutATopicEntriesAreCountedAsLost(t *testing.T) {
	w, opts := newWorld(t, mem.New(), 0, 0)
	j := New(opts, groups)
	j.Add(append(step("billing", 0), step("billing", 1)...))
	j.Run(ended(t))
	if w.dropped.Load() != 2 || !strings.Contains(w.log.String(), `msg="group journal could not be written" error="not now"`) {
		t.Errorf("%d are dropped: %s", w.dropped.Load(), &w.log)
	}
	opts.CreateTopic = func(context.Context, string) error { return nil }
	j = New(opts, groups)
	var lost []journal.Entry
	j.Lost = func(entries []journal.Entry, err error) { lost = append(lost, entries...) }
	j.Add(step("billing", 7))
	if j.Run(ended(t)); w.dropped.Load() != 3 || len(lost) != 1 || lost[0].Generation != 7 || j.Free() != 1 {
		t.Errorf("%d are dropped, lost %v, free %v", w.dropped.Load(), lost, j.Free())
	}
}

// failingStore stores so many batches and no more.
type failingStore struct {
	store.Store
	stores atomic.Int32
}

func (s *failingStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := s.Store.Open(ctx, tp, epoch, cfg)
	return &failingLog{l, s}, err
}

type failingLog struct {
	store.Log
	s *failingStore
}

func (l *failingLog) Append(ctx context.Context, batch []byte) (store.Appended, error) {
	if l.s.stores.Add(-1) < 0 {
		return store.Appended{}, errors.New("the store is full")
	}
	return l.Log.Append(ctx, batch)
}

// When a batch cannot be written, those before it are written, and not told as lost.
func TestOnlyWhatWasNotWrittenIsLost(t *testing.T) {
	s := &failingStore{Store: mem.New()}
	s.stores.Store(1)
	w, opts := newWorld(t, s, 1, 1)
	j := New(opts, groups)
	var lost []journal.Entry
	j.Lost = func(entries []journal.Entry, _ error) { lost = append(lost, entries...) }
	const steps = 30
	for n := range steps { // More than fit into a batch.
		e := step("billing", n)
		e[0].Protocol = strings.Repeat("x", 100_000)
		j.Add(e)
	}
	j.Run(ended(t))
	written := w.entries()[0]
	if len(written) == 0 || len(lost) == 0 || len(written)+len(lost) != steps || int(w.dropped.Load()) != len(lost) {
		t.Fatalf("%d are written, %d lost, %d dropped", len(written), len(lost), w.dropped.Load())
	}
	for i := range lost {
		if int(lost[i].Generation) != len(written)+i {
			t.Errorf("lost is %d, after %d were written", lost[i].Generation, len(written))
		}
	}
}

// Of a partition that another broker leads nothing is written, unless any will do.
func TestOnlyJournalsThatMayGoAnywhereDo(t *testing.T) {
	for _, anywhere := range []bool{false, true} {
		w, opts := newWorld(t, mem.New(), 3, 1)
		kind := groups
		kind.Anywhere = anywhere
		j := New(opts, kind)
		own := 0
		for n := range 30 {
			name := fmt.Sprint("group-", n)
			if journal.PartitionFor(name, 3) == 0 {
				own++
			}
			j.Add(step(name, 0))
		}
		j.Run(ended(t))
		want := map[bool]int{true: 30, false: own}[anywhere]
		if got := len(w.entries()[0]); got != want || int(w.dropped.Load()) != 30-want || own == 30 {
			t.Errorf("anywhere %t: %d of %d are written, %d dropped", anywhere, got, want, w.dropped.Load())
		}
	}
}
