package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster/internal/record"
	"muster/internal/store"
)

var inIndex = store.LogConfig{Layout: store.LayoutIndexed}

// refresh adopts what others have added, and returns the log end offset. Appends that were
// answered are in it, also while their sender is still about to find that it has no more to send.
func (b *bed) refresh(l store.Log) int64 {
	b.Helper()
	if l, ok := l.(indexLog); ok {
		l.claim()
		l.release()
	}
	end, err := l.(store.Refresher).Refresh(b.ctx)
	must(b.T, err)
	return end
}

func TestOffsetsAreDenseWhoeverAppends(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	key := b.keys().stream
	b.append(l, b.valued("0", "1"))
	b.do("XADD", key, "*", "value", "2")
	b.do("XADD", key, "*", "value", "3")
	if at := b.append(l, b.valued("4")); at.BaseOffset != 4 {
		t.Errorf("after two entries of others a record is at %d", at.BaseOffset)
	}
	b.do("XADD", key, "*", "value", "5")
	if end := b.refresh(l); end != 6 {
		t.Errorf("the log ends at %d", end)
	}
	for i, r := range b.content(l) {
		if r.Offset != int64(i) || string(r.Value) != fmt.Sprint(i) {
			t.Errorf("record %d is %q at %d", i, r.Value, r.Offset)
		}
	}
	l = b.open(2)
	if got := b.values(l); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
		t.Errorf("opened again: %q", got)
	}
	b.wantSound()
}

// More entries of others than an append adopts by the way, with ids that lie before and after
// those that it would choose.
func TestManyEntriesOfOthersAreAdopted(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	key := b.keys().stream
	b.append(l, b.valued("first"))
	for i := range 700 {
		b.do("XADD", key, "*", "value", fmt.Sprint(i))
	}
	b.do("XADD", key, "99999999999999-7", "value", "from the future")
	if at := b.append(l, b.valued("last")); at.BaseOffset != 702 {
		t.Errorf("the record is at %d", at.BaseOffset)
	}
	got := b.values(l)
	if len(got) != 703 || got[700] != "699" || got[701] != "from the future" || got[702] != "last" {
		t.Errorf("%d records, the last are %q", len(got), got[max(len(got)-4, 0):])
	}
	b.wantSound()
}

// Entries that were deleted before they were adopted never had an offset, and those that were
// deleted after leave theirs free.
func TestEntriesThatRedisClientsDeleteLeaveOffsetsAsTheyAre(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	key := b.keys().stream
	b.do("XDEL", key, b.do("XADD", key, "*", "value", "never seen"))
	b.append(l, b.valued("0"))
	id := b.do("XADD", key, "*", "value", "1")
	b.append(l, b.valued("2", "3"))
	b.do("XDEL", key, id)
	var got []string
	for _, r := range b.content(l) {
		got = append(got, fmt.Sprint(r.Offset, "=", string(r.Value)))
	}
	if want := []string{"0=0", "2=2", "3=3"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// Who reads at what is gone, and nothing is left behind it, gets on all the same.
	last := b.do("XADD", key, "*", "value", "4")
	b.refresh(l)
	b.do("XDEL", key, last)
	r, err := l.Read(b.ctx, store.ReadRequest{Offset: 4, NextOffset: math.MaxInt64, MaxBytes: 1 << 20})
	must(t, err)
	if empty := record.Batch(r.Bytes); r.Len == 0 || empty.Count() != 0 || empty.LastOffset() != 4 {
		t.Errorf("%d bytes tell that nothing is left at 4", r.Len)
	}
	b.wantSound()
}

func TestAKeyThatIsDeletedByHandIsToldAndOffsetsGoOn(t *testing.T) {
	for name, gone := range map[string]func(keys) []string{
		"data": func(k keys) []string { return []string{k.stream} }, "index": func(k keys) []string { return []string{k.index} },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inIndex)
			b.append(b.open(1), b.valued("0", "1", "2"))
			b.do(append([]string{"DEL"}, gone(b.keys())...)...)
			l := b.open(2)
			start, end := l.Bounds()
			if at := b.append(l, b.valued("new")); at.BaseOffset != end || start != 3 || b.logged.count("gone") == 0 {
				t.Errorf("the log starts at %d, ends at %d, and the next record is at %d", start, end, at.BaseOffset)
			}
			want := []string{"new"}
			if name == "index" {
				want = []string{"0", "1", "2", "new"} // What is there is adopted above all offsets so far.
			}
			if got := b.values(l); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestAStreamOfOthersIsAdoptedFromOffsetZero(t *testing.T) {
	b := newBed(t, inIndex)
	for i := range 3 {
		b.do("XADD", b.keys().stream, "*", "value", fmt.Sprint(i))
	}
	l := b.open(1)
	if start, end := l.Bounds(); start != 0 || end != 3 {
		t.Errorf("it has offsets %d to %d", start, end)
	}
	if got := b.values(l); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("%q", got)
	}
	b.wantSound()
}

// A producer's state survives a leader that had no time for a snapshot, and one that had.
func TestProducersAreKnownFromSnapshotAndIndex(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	send := func(sequence int32) {
		t.Helper()
		tmpl := record.PlainTemplate()
		tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = 7, 1, sequence
		batch, err := record.Build(tmpl, []record.Record{{Timestamp: 5, Value: []byte("v")}})
		must(t, err)
		b.append(l, batch)
	}
	for i := range int32(6) {
		send(i)
		if i == 2 {
			must(t, l.SaveProducers(b.ctx, nil, 0))
		}
		if i%2 == 1 {
			l = b.open(2 + i)
		}
		got, next, err := l.Producers(b.ctx)
		must(t, err)
		if len(got) != 1 || next != int64(i)+1 || got[0].Batches[len(got[0].Batches)-1].LastSequence != i || len(got[0].Batches) != min(int(i)+1, store.ProducerBatches) {
			t.Errorf("after %d batches: %+v, as of %d", i+1, got, next)
		}
	}
}

// TestTwoLeadersAndRedisClientsAtRandom does what may happen to a log at random, and looks after each round whether
// the log is sound, and has what was acknowledged, once, in one order.
func TestTwoLeadersAndRedisClientsAtRandom(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBed(t, inIndex)
			w := &indexWorld{bed: b, rand: rand.New(rand.NewPCG(seed, 1)), acked: map[string]int64{}}
			w.leaders = []store.Pipelined{b.open(1)}
			for range 25 {
				w.round()
			}
		})
	}
}

type indexWorld struct {
	*bed
	rand    *rand.Rand
	leaders []store.Pipelined // the last one leads
	n       int
	mu      sync.Mutex
	acked   map[string]int64 // the offset of each value
}

func (w *indexWorld) value() string {
	w.n++
	return fmt.Sprint("v", w.n)
}

// round lets leaders, of which all but the last are deposed, and Redis clients append at the
// same time.
func (w *indexWorld) round() {
	w.Helper()
	var all sync.WaitGroup
	foreign := map[string]bool{}
	for range w.rand.IntN(4) {
		var values []string
		for range 1 + w.rand.IntN(100) {
			values = append(values, w.value())
		}
		for _, v := range values {
			foreign[v] = true
		}
		all.Go(func() {
			for _, v := range values {
				w.do("XADD", w.keys().stream, "*", "value", v)
			}
		})
	}
	for range 1 + w.rand.IntN(6) {
		l := w.leaders[len(w.leaders)-1]
		deposed := len(w.leaders) > 1 && w.rand.IntN(4) == 0
		if deposed {
			l = w.leaders[0]
		}
		var values []string
		for range 1 + w.rand.IntN(30) {
			values = append(values, w.value())
		}
		all.Add(1)
		l.Begin(context.Background(), w.valued(values...), func(at store.Appended, err error) {
			defer all.Done()
			w.mu.Lock()
			defer w.mu.Unlock()
			switch {
			case err == nil && deposed:
				w.Errorf("a deposed leader has appended %q", values)
			case err == nil:
				for i, v := range values {
					w.acked[v] = at.BaseOffset + int64(i)
				}
			case !deposed && !errors.Is(err, store.ErrClosed):
				w.Errorf("append: %v", err)
			}
		})
		if w.rand.IntN(3) == 0 {
			w.refresh(w.leaders[len(w.leaders)-1])
		}
	}
	all.Wait()
	w.compare(foreign)
	if w.rand.IntN(3) == 0 {
		w.leaders = append(w.leaders, w.openIn(w.newStore(single(w.T), Options{}), int32(len(w.leaders)+1)))
	}
}

// compare reads the log.
func (w *indexWorld) compare(foreign map[string]bool) {
	w.Helper()
	l := w.leaders[len(w.leaders)-1]
	end := w.refresh(l)
	w.wantSound()
	got := map[string]int64{}
	for i, r := range w.content(l) {
		if _, twice := got[string(r.Value)]; twice || r.Offset != int64(i) {
			w.Fatalf("record %d is %q at %d, twice %v", i, r.Value, r.Offset, twice)
		}
		got[string(r.Value)] = r.Offset
	}
	if int64(len(got)) != end {
		w.Errorf("%d records, and the log ends at %d", len(got), end)
	}
	for v, at := range w.acked {
		if offset, ok := got[v]; !ok || offset != at {
			w.Errorf("%s was acknowledged at %d, and is at %d, %v", v, at, offset, ok)
		}
	}
	for v := range foreign {
		if _, ok := got[v]; !ok {
			w.Errorf("%s was added by a Redis client, and is missing", v)
		}
	}
}

func FuzzIndexEntry(f *testing.F) {
	e := indexEntry{runs: []idRun{{entryID{5, 1}, 3}}, batches: []indexBatch{
		{count: 3, flags: flagProducer | flagTransactional, leaderEpoch: 2, baseTimestamp: -1, maxTimestamp: 9, bytes: 77, producerID: 4, producerEpoch: 1, sequence: 8},
	}}
	f.Add(uint64(3), "9 3 5-1\n"+string(e.body()))
	f.Add(uint64(1), "x")
	f.Fuzz(func(t *testing.T, ms uint64, text string) {
		e, err := parseIndex(entryID{ms: ms}, text)
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		head, _, _ := strings.Cut(text, "\n")
		again, err := parseIndex(entryID{ms: ms}, head+"\n"+string(e.body()))
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", e) {
			t.Fatalf("%+v is read as %+v: %v", e, again, err)
		}
		for i := range e.batches {
			_ = e.batches[i].header()
		}
		_, _, _ = idsIn([]indexEntry{e}, e.base, e.next)
	})
}
