package redis

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
)

// old is a log of layout stream, and what was told of it.
type old struct {
	*bed
	url   string
	epoch int32
	log   store.Pipelined
	n     int
	told  map[string]int64 // the offsets of values
}

func newOld(t *testing.T) *old { return newOldAt(t, single(t)) }

func newOldAt(t *testing.T, url string) *old {
	o := &old{bed: newBedAt(t, url, inStreams), url: url, told: map[string]int64{}}
	o.reopen()
	return o
}

func (o *old) reopen() {
	o.Helper()
	o.epoch++
	o.log = o.openIn(o.newStore(o.url, Options{}), o.epoch)
}

func (o *old) value() string {
	o.n++
	return fmt.Sprint("v", o.n)
}

// fill appends as leader and as Redis client.
func (o *old) fill(appends int) {
	o.Helper()
	for range appends {
		a, b := o.value(), o.value()
		at := o.append(o.log, o.valued(a, b))
		o.told[a], o.told[b] = at.BaseOffset, at.BaseOffset+1
		o.do("XADD", o.keys().stream, "*", "value", o.value())
	}
	o.refresh(o.log)
	for _, r := range o.content(o.log) {
		o.told[string(r.Value)] = r.Offset
	}
}

// converted opens the log in its new layout.
func (o *old) converted() store.Pipelined {
	o.Helper()
	o.epoch++
	o.cfg = inIndex
	l := o.openIn(o.newStore(o.url, Options{}), o.epoch)
	o.refresh(l)
	o.wantSound()
	return l
}

// compare looks whether a converted log has these values, with dense offsets, and whether
// what was told of them leads to them.
func (o *old) compare(l store.Log, want []string) {
	o.Helper()
	if got := o.values(l); !slices.Equal(got, want) {
		o.Fatalf("%d records: %q\nwant %d: %q", len(got), got, len(want), want)
	}
	for _, r := range o.content(l) {
		got, err := o.placed([]int64{o.told[string(r.Value)], o.told[string(r.Value)] + 1, r.Offset})
		must(o.T, err)
		if o.told[string(r.Value)] > 0 && (got[0] != r.Offset || got[1] != r.Offset+1) || got[2] != r.Offset {
			o.Errorf("%s was at %d, is at %d, and %v is said of it", r.Value, o.told[string(r.Value)], r.Offset, got)
		}
	}
	if r, err := l.Read(o.ctx, store.ReadRequest{Offset: minConverted, NextOffset: minConverted + 1, MaxBytes: 1}); !errors.Is(err, store.ErrOffsetOutOfRange) {
		o.Errorf("an offset of before is read: %d bytes, %v", r.Len, err)
	}
}

// placed is where offsets are that may be of before.
func (b *bed) placed(offsets []int64) ([]int64, error) {
	places := make([]store.Place, len(offsets))
	for i, offset := range offsets {
		places[i] = store.Place{TopicPartition: b.at, Offset: offset}
	}
	return b.store.Places(b.ctx, places)
}

func convertIt(l store.Log) error { return l.(store.Convertible).Convert(context.Background()) }

func TestAConvertedLogHasItsRecordsInOrderAtDenseOffsets(t *testing.T) {
	redistest.Each(t, testConverted)
}

func testConverted(t *testing.T, url string) {
	o := newOldAt(t, url)
	o.fill(5)
	o.reopen()
	o.fill(5)
	want := o.values(o.log)
	bytes := o.log.Size()
	must(t, convertIt(o.log))
	if _, err := o.log.Append(o.ctx, o.valued("late")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("an append to what it was: %v", err)
	}
	if _, err := o.log.Read(o.ctx, store.ReadRequest{Offset: o.told["v1"], NextOffset: 1 << 62, MaxBytes: 1 << 20}); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a read of what it was: %v", err)
	}
	_ = o.openIn(o.newStore(url, Options{}), 3) // The setting is written last.
	if n := o.logged.count("keeps the layout"); n > 0 {
		t.Errorf("there are %d warnings of its layout", n)
	}
	o.epoch = 3
	l := o.converted()
	if start, end := l.Bounds(); start != 0 || end != 30 || l.Size() < bytes/2 || l.Size() > 2*bytes {
		t.Errorf("it has offsets %d to %d, and %d bytes of %d", start, end, l.Size(), bytes)
	}
	o.compare(l, want)
	if got := fmt.Sprint(l.Epochs()); got != "[]" {
		t.Errorf("the leader epochs are %s", got)
	}
	if until, ok := l.(store.Converted).Until(); until != 2 || !ok {
		t.Errorf("it was of the old layout until epoch %d, %v", until, ok)
	}
	if at := o.append(l, o.valued("new")); at.BaseOffset != 30 {
		t.Errorf("the next record is at %d", at.BaseOffset)
	}
	o.do("XADD", o.keys().stream, "*", "value", "of others")
	o.refresh(l)
	if got := fmt.Sprint(l.Epochs()); got != "[{4 30}]" {
		t.Errorf("the leader epochs are %s", got)
	}
	o.compare(o.converted(), append(want, "new", "of others"))
}

func TestConvertedStartsWhereTheLogDid(t *testing.T) {
	o := newOld(t)
	o.fill(4)
	want := o.values(o.log)
	must(t, o.log.Trim(o.ctx, o.told["v6"]))
	o.do("XDEL", o.keys().stream, o.ids()[2]) // v8
	must(t, convertIt(o.log))
	l := o.converted()
	o.compare(l, append(want[5:7:7], want[8:]...))
	if got, err := o.placed([]int64{o.told["v8"], o.told["v6"] - 1, 3}); err != nil || fmt.Sprint(got) != fmt.Sprint([]int64{2, o.told["v6"] - 1, 3}) {
		t.Errorf("of deleted records, before the start, and after: %v, %v", got, err)
	}

	empty := newOld(t)
	must(t, convertIt(empty.log))
	l = empty.converted()
	if start, end := l.Bounds(); start != 0 || end != 0 {
		t.Errorf("an empty log has offsets %d to %d", start, end)
	}
	if at := empty.append(l, empty.valued("first")); at.BaseOffset != 0 {
		t.Errorf("its first record is at %d", at.BaseOffset)
	}

	gone := newOld(t)
	gone.fill(2)
	_, end := gone.log.Bounds()
	must(t, gone.log.Trim(gone.ctx, end))
	must(t, convertIt(gone.log))
	gone.compare(gone.converted(), nil)
}

func TestProducersOfAConvertedLogAreKnown(t *testing.T) {
	o := newOld(t)
	o.fill(1)
	for i := range int32(3) {
		o.append(o.log, o.sequenced(7, 2*i, fmt.Sprint("p", i), "q"))
		o.append(o.log, o.sequenced(8, i, fmt.Sprint("r", i)))
	}
	must(t, convertIt(o.log))
	producers, next, err := o.converted().Producers(o.ctx)
	must(t, err)
	got := ""
	for _, p := range producers {
		for _, x := range p.Batches {
			got += fmt.Sprint(p.ID, ":", x.BaseSequence, "-", x.LastSequence, "@", x.BaseOffset, "-", x.LastOffset, " ")
		}
	}
	if want := "7:0-1@3-4 7:2-3@6-7 7:4-5@9-10 8:0-0@5-5 8:1-1@8-8 8:2-2@11-11 "; got != want || next != 12 {
		t.Errorf("%s as of %d\nwant %s", got, next, want)
	}
}

func TestALogWhoseOffsetsAreSmallIsNotConverted(t *testing.T) {
	b := newBed(t, inStreams)
	b.do("XADD", b.keys().stream, "5-0", "value", "v")
	if err := convertIt(b.open(1)); !errors.Is(err, errAmbiguous) {
		t.Errorf("%v", err)
	}
	if got := b.values(b.open(2)); !slices.Equal(got, []string{"v"}) {
		t.Errorf("%q", got)
	}
	if got, err := b.placed([]int64{1, 1 << 50}); err != nil || fmt.Sprint(got) != fmt.Sprint([]int64{1, 1 << 50}) {
		t.Errorf("offsets of a log that was not converted: %v, %v", got, err)
	}
}

func TestADeposedLeaderConvertsNothing(t *testing.T) {
	o := newOld(t)
	o.fill(2)
	deposed := o.log
	o.reopen()
	if err := convertIt(deposed); !errors.Is(err, store.ErrFenced) {
		t.Errorf("%v", err)
	}
	err := deposed.(recordLog).convert(o.ctx, func() error { t.Error("it has changed something"); return nil })
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("%v", err)
	}
	o.fill(1)
	must(t, convertIt(o.log))
}

// A conversion dies before each of its steps, and after the last. Whoever leads next finds the
// log as it was, or as it is to be; it is written and deleted from, and the conversion goes on.
func TestAConversionThatDiesCanBeTakenUpAgain(t *testing.T) {
	died := errors.New("died")
	const chunk = 3 * scanEntries // More than one step at each run.
	for at := range 6 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			o := newOld(t)
			var many []string
			for range chunk {
				many = append(many, o.value())
			}
			o.append(o.log, o.valued(many...))
			o.fill(2)
			steps := 0
			err := o.log.(recordLog).convert(o.ctx, func() error {
				if steps == at {
					return died
				}
				steps++
				return nil
			})
			if !errors.Is(err, died) {
				t.Fatalf("it has died after %d steps: %v", steps, err)
			}
			if at == 5 { // The answer to the last step was lost.
				o.compare(o.converted(), valuesTo(o.n))
				return
			}
			o.reopen()
			o.fill(2)
			o.do("XDEL", o.keys().stream, o.ids()[800])
			must(t, o.log.Trim(o.ctx, o.told["v700"]))
			o.fill(1)
			must(t, convertIt(o.log))
			l := o.converted()
			o.compare(l, slices.Delete(valuesTo(o.n)[699:], 101, 102))
			start, _ := l.Bounds()
			first, err := parseID(o.idsOf(o.keys().index)[0])
			must(t, err)
			if int64(first.ms) <= start {
				t.Errorf("the log begins at %d, and the index with entry %s", start, first)
			}
		})
	}
}

// All that an earlier conversion has indexed is gone when it goes on.
func TestAConversionGoesOnAfterAllWasDeleted(t *testing.T) {
	for _, more := range []int{0, 1} {
		o := halfConverted(t)
		o.do("XDEL", o.keys().stream, o.do("XADD", o.keys().stream, "*", "value", "never seen"))
		end := o.refresh(o.log)
		must(t, o.log.Trim(o.ctx, end))
		o.fill(more)
		must(t, convertIt(o.log))
		l := o.converted()
		if start, end := l.Bounds(); start != 6 || end != int64(6+3*more) {
			t.Errorf("it has offsets %d to %d", start, end)
		}
	}
}

// halfConverted has an index of its six records, and another leader.
func halfConverted(t *testing.T) *old {
	o := newOld(t)
	o.fill(2)
	steps := 0
	err := o.log.(recordLog).convert(o.ctx, func() error {
		if steps++; steps > 1 {
			return errors.New("died")
		}
		return nil
	})
	if err == nil {
		t.Fatal("it has one step")
	}
	o.reopen()
	return o
}

func TestAConvertedLogIsCompacted(t *testing.T) {
	o := newOld(t)
	o.fill(3)
	compact := func(l store.Log) {
		_, end := l.Bounds()
		must(t, l.Compact(o.ctx, store.Compaction{NextOffset: end, Now: time.Now()}))
	}
	compact(o.log)
	must(t, convertIt(o.log))
	l := o.converted()
	o.append(l, o.valued("new"))
	compact(l)
	if got := o.values(l); slices.Contains(got, "v8") || !slices.Contains(got, "new") { // All have the same key, but those of others.
		t.Errorf("%q", got)
	}
}

func valuesTo(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprint("v", i+1))
	}
	return out
}

// Leaders and Redis clients append while the log is converted. What was acknowledged is there, once.
func TestALogIsConvertedWhileItIsWritten(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := newOld(t)
			o.fill(20)
			l, random := o.log, rand.New(rand.NewPCG(seed, 1))
			var all sync.WaitGroup
			acked, foreign, last := map[string]int64{}, map[string]bool{}, int32(-1)
			all.Go(func() {
				for i := int32(0); ; i++ {
					v := fmt.Sprint("own", i)
					at, err := l.Append(context.Background(), o.sequenced(7, i, v))
					if err != nil {
						return // It has been converted.
					}
					acked[v], last = at.BaseOffset, i
				}
			})
			all.Go(func() {
				for i := range 300 {
					v := fmt.Sprint("other", i)
					foreign[v] = true
					if _, err := o.try("XADD", o.keys().stream, "*", "value", v); err != nil {
						t.Error(err)
					}
				}
			})
			for range random.IntN(60) {
				_, err := o.try("PING")
				must(t, err)
			}
			must(t, convertIt(l))
			all.Wait()
			now := o.converted()
			seen := map[string]int64{}
			for i, r := range o.content(now) {
				if _, twice := seen[string(r.Value)]; twice || r.Offset != int64(i) {
					t.Fatalf("record %d is %q at %d, twice %v", i, r.Value, r.Offset, twice)
				}
				seen[string(r.Value)] = r.Offset
			}
			for v, at := range acked {
				got, err := o.placed([]int64{at})
				must(t, err)
				if offset, ok := seen[v]; !ok || got[0] != offset {
					t.Errorf("%s was acknowledged at %d, which is %d now, and is at %d, %v", v, at, got[0], offset, ok)
				}
			}
			producers, _, err := now.Producers(o.ctx)
			must(t, err)
			if last >= 0 {
				known := producers[0].Batches[len(producers[0].Batches)-1]
				if known.LastSequence != last || known.LastOffset != seen[fmt.Sprint("own", last)] {
					t.Errorf("the last batch that is known is %+v, and %d was acknowledged", known, last)
				}
			}
			for v := range foreign {
				if _, ok := seen[v]; !ok {
					t.Errorf("%s was added by a Redis client, and is missing", v)
				}
			}
		})
	}
}
