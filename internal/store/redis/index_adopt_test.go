package redis

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// An append adopts only so many entries of others by the way, and all the same none that lies
// below what it adds may be left without an offset.
func TestAnAppendAfterManyEntriesOfOthersLeavesNoneOut(t *testing.T) {
	for _, n := range []int{63, 64, 65, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("first"))
			b.store.now = func() time.Time { return time.Now().Add(time.Hour) } // so that ids are above all of theirs
			want := []string{"first"}
			for i := range n {
				want = append(want, fmt.Sprint(i))
				b.do("XADD", b.keys().stream, "*", "value", fmt.Sprint(i))
			}
			if at := b.append(l, b.valued("last")); at.BaseOffset != int64(n)+1 {
				t.Errorf("the record is at %d", at.BaseOffset)
			}
			if got := b.values(l); !slices.Equal(got, append(want, "last")) {
				t.Errorf("%d records: %q", len(got), got)
			}
			b.wantSound()
		})
	}
}

// A reply to an adoption may be lost, and then the handle knows an older top than Redis does.
func TestAnAppendIsAboveWhatWasAdoptedUnheard(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0"))
			il := l.(indexLog)
			before := il.tail
			id := b.do("XADD", b.keys().stream, "99999999999999-7", "value", "1")
			b.refresh(l)
			il.tail = before
			want := []string{"0", "1", "2", "3"}
			if deleted {
				b.do("XDEL", b.keys().stream, id)
				want = []string{"0", "2", "3"}
			}
			if at := b.append(l, b.valued("2", "3")); at.BaseOffset != 2 {
				t.Errorf("the records are at %d", at.BaseOffset)
			}
			if il.tail.maxTimestamp != 99999999999999 {
				t.Errorf("the largest timestamp is %d", il.tail.maxTimestamp)
			}
			if got := b.values(l); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			b.wantSound()
		})
	}
}

// rewind takes the log back to where it was, as a failover does to a server that is behind.
func (b *bed) rewind() (to func()) {
	b.Helper()
	k := b.keys()
	names := []string{k.stream, k.meta, k.index, k.producers, k.aborted}
	dumps := make([]string, len(names))
	for i, name := range names {
		dumps[i], _ = b.client.Do(b.ctx, b.client.B().Dump().Key(name).Build()).ToString()
	}
	return func() {
		b.Helper()
		for i, name := range names {
			b.do("DEL", name)
			if dumps[i] != "" {
				b.do("RESTORE", name, "0", dumps[i])
			}
		}
	}
}

// A leader whose last appends Redis has forgotten changes nothing any more.
func TestALeaderWhoseTailWasLostChangesNothing(t *testing.T) {
	for name, do := range map[string]func(b *bed, l store.Log) error{
		"adopt": func(b *bed, l store.Log) error {
			b.do("XADD", b.keys().stream, "*", "value", "theirs")
			_, err := l.(store.Refresher).Refresh(b.ctx)
			return err
		},
		"snapshot": func(b *bed, l store.Log) error { return l.SaveProducers(b.ctx, nil, 0) },
		"trim":     func(b *bed, l store.Log) error { return l.Trim(b.ctx, 3) },
		"retain": func(b *bed, l store.Log) error {
			return l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: 0, NextOffset: 3})
		},
		"compact": func(b *bed, l store.Log) error {
			return l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 3})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0"))
			b.append(l, b.valued("1"))
			back := b.rewind()
			b.append(l, b.sequenced(7, 0, "2"))
			back()
			if err := do(b, l); !errors.Is(err, store.ErrFailed) {
				t.Errorf("%v", err)
			}
			if end := b.do("HGET", b.keys().meta, "end"); end != "2" {
				t.Errorf("the log ends at %s", end)
			}
			if got := b.do("XLEN", b.keys().stream); got != map[bool]string{true: "3", false: "2"}[name == "adopt"] {
				t.Errorf("%s entries are left", got)
			}
			_ = l.Close()
			if n := b.do("EXISTS", b.keys().producers); n != "0" {
				t.Error("a producer is remembered by what was lost")
			}
			b.wantSound()
		})
	}
}

// sequenced makes a batch of an idempotent producer.
func (b *bed) sequenced(id int64, sequence int32, values ...string) record.Batch {
	b.Helper()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = id, 1, sequence
	recs := make([]record.Record, len(values))
	for i, v := range values {
		recs[i] = record.Record{OffsetDelta: int32(i), Timestamp: time.Now().UnixMilli(), Key: []byte("k"), Value: []byte(v)}
	}
	batch, err := record.Build(tmpl, recs)
	must(b.T, err)
	return batch
}

// What others added may be forgotten too, and that it had an offset.
func TestALeaderThatHasAdoptedWhatWasLostEnds(t *testing.T) {
	for name, do := range map[string]func(b *bed, l store.Log) error{
		"append": func(b *bed, l store.Log) error {
			_, err := l.Append(b.ctx, b.valued("1"))
			return err
		},
		"adopt": func(b *bed, l store.Log) error {
			b.do("XADD", b.keys().stream, "*", "value", "theirs")
			_, err := l.(store.Refresher).Refresh(b.ctx)
			_, again := l.Append(b.ctx, b.valued("1"))
			return errors.Join(err, again)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0"))
			back := b.rewind()
			b.do("XADD", b.keys().stream, "*", "value", "forgotten")
			b.refresh(l)
			back()
			if err := do(b, l); !errors.Is(err, store.ErrStorage) && !errors.Is(err, store.ErrFailed) {
				t.Errorf("%v", err)
			}
			if got := b.values(b.open(2)); !slices.Equal(got, map[string][]string{"append": {"0"}, "adopt": {"0", "theirs"}}[name]) {
				t.Errorf("%q", got)
			}
			b.wantSound()
		})
	}
}

// The last id of a millisecond is one like any other, and so is the last of all.
func TestEntriesWithTheLastIdsThatThereAreAreAdopted(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.do("XADD", b.keys().stream, "5-18446744073709551615", "value", "0")
	b.append(l, b.valued("1"))
	b.do("XADD", b.keys().stream, "99999999999999-18446744073709551614", "value", "2")
	b.do("XADD", b.keys().stream, "99999999999999-18446744073709551615", "value", "3")
	b.append(l, b.valued("4"))
	b.do("XADD", b.keys().stream, "18446744073709551615-18446744073709551615", "value", "5")
	b.refresh(l)
	if _, err := l.Append(b.ctx, b.valued("6")); !errors.Is(err, store.ErrStorage) {
		t.Errorf("above the last id of all: %v", err)
	}
	if got := b.values(b.open(2)); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5"}) {
		t.Errorf("%q", got)
	}
	b.wantSound()
}

// Large entries are adopted a few at a time, so that not very much is in memory.
func TestFewLargeEntriesAreAdoptedAtATime(t *testing.T) {
	for size, most := range map[int]int64{1: adoptEntries, 1 << 18: 32} {
		b := newBed(t, inIndex)
		var counts []int64
		m := &meddler{Client: connect(t, single(t))}
		m.after = func(words []string) {
			if words[0] == "XRANGE" && len(words) == 6 {
				n, err := strconv.ParseInt(words[5], 10, 64)
				must(t, err)
				counts = append(counts, n)
			}
		}
		s := New(m, Options{Prefix: b.prefix})
		t.Cleanup(func() { _ = s.Close() })
		l := b.openIn(s, 1)
		value := strings.Repeat("x", size)
		for range adoptFew + 20 {
			b.do("XADD", b.keys().stream, "*", "value", value)
		}
		counts = nil
		if end := b.refresh(l); end != adoptFew+20 {
			t.Errorf("the log ends at %d", end)
		}
		if len(counts) < 2 || counts[0] != adoptFew || slices.Max(counts[1:]) != most {
			t.Errorf("of entries of %d bytes so many are read at a time: %d", size, counts)
		}
		b.wantSound()
	}
}

// Without the meta hash no one knows of the log: its data is a stream of others.
func TestALogWhoseMetaHashIsGoneIsAdoptedAsAStreamOfOthers(t *testing.T) {
	for _, index := range []bool{false, true} {
		b := newBed(t, inIndex)
		l := b.open(1)
		marker, err := record.BuildMarker(7, 1, record.Marker{}, 3)
		must(t, err)
		inTxn := record.PlainTemplate()
		inTxn.ProducerID, inTxn.ProducerEpoch, inTxn.Transactional = 7, 1, true
		batch, err := record.Build(inTxn, []record.Record{{Value: []byte("0")}})
		must(t, err)
		b.append(l, batch)
		b.append(l, marker)
		b.append(l, b.valued("1", "2"))
		must(t, l.SaveProducers(b.ctx, nil, 0))
		if aborted, err := l.Aborted(b.ctx, 0, 4); err != nil || len(aborted) != 1 {
			t.Fatalf("%v, %v", aborted, err)
		}
		b.do("DEL", b.keys().meta)
		if index {
			b.do("DEL", b.keys().index)
		}
		if _, err := l.Append(b.ctx, b.valued("by the old leader")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("the old leader: %v", err)
		}
		l = b.open(1)
		b.append(l, b.valued("3"))
		if got := b.values(l); !slices.Equal(got, []string{"0", "1", "2", "3"}) {
			t.Errorf("%q", got)
		}
		if start, end := l.Bounds(); start != 0 || end != 4 {
			t.Errorf("it has offsets %d to %d", start, end)
		}
		l = b.openIn(b.newStore(single(t), Options{}), 2) // It is as long by now as it was.
		producers, _, err := l.Producers(b.ctx)
		must(t, err)
		aborted, err := l.Aborted(b.ctx, 0, 4)
		must(t, err)
		if len(producers) > 0 || len(aborted) > 0 {
			t.Errorf("%+v and %+v are of its earlier life", producers, aborted)
		}
		b.wantSound()
	}
}

// A leader whose keys are deleted is told when it appends; what others add in the meantime has
// offsets above all so far.
func TestALeaderWhoseKeysAreDeletedMustOpenAgain(t *testing.T) {
	for _, key := range []func(keys) string{func(k keys) string { return k.stream }, func(k keys) string { return k.index }} {
		for _, others := range []bool{false, true} {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0", "1"))
			if others {
				b.do("XADD", b.keys().stream, "*", "value", "2")
				b.refresh(l)
			}
			name := key(b.keys())
			b.do("DEL", name)
			if others {
				b.do("XADD", b.keys().stream, "99999999999999-7", "value", "theirs")
			}
			_, end := l.Bounds()
			at, err := l.Append(b.ctx, b.valued("ours"))
			if others && name == b.keys().stream {
				if err != nil || at.BaseOffset != end+1 {
					t.Errorf("a stream that others have made anew: %+v, %v", at, err)
				}
			} else if !errors.Is(err, store.ErrStorage) {
				t.Errorf("%s is gone: %v", name, err)
			}
			l = b.open(2)
			b.append(l, b.valued("last"))
			got, last := b.content(l), int64(0)
			for i := range got {
				last = got[i].Offset
			}
			if start, next := l.Bounds(); start > end || next <= end || string(got[len(got)-1].Value) != "last" || last != next-1 {
				t.Errorf("%s is gone: it has offsets %d to %d, and ended at %d; %d records", name, start, next, end, len(got))
			}
			b.wantSound()
		}
	}
}

func TestNothingIsAdoptedWithoutAnIndex(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	b.do("DEL", b.keys().index)
	b.do("XADD", b.keys().stream, "*", "value", "1")
	if end, err := l.(store.Refresher).Refresh(b.ctx); !errors.Is(err, store.ErrStorage) {
		t.Errorf("it ends at %d, %v", end, err)
	}
	if end := b.do("HGET", b.keys().meta, "end"); end != "1" {
		t.Errorf("it ends at %s", end)
	}
}

// What a leader adopts is of its epoch, though it appends nothing.
func TestEntriesOfOthersAreOfTheEpochThatAdoptsThem(t *testing.T) {
	b := newBed(t, inIndex)
	b.append(b.open(1), b.valued("0"))
	for epoch := int32(2); epoch < 5; epoch++ {
		l := b.open(epoch)
		b.do("XADD", b.keys().stream, "*", "value", "theirs")
		b.refresh(l)
	}
	l := b.open(5)
	if got, want := l.Epochs(), []store.EpochStart{{Epoch: 1}, {Epoch: 2, Start: 1}, {Epoch: 3, Start: 2}, {Epoch: 4, Start: 3}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for at := range int64(4) {
		r, err := l.Read(b.ctx, store.ReadRequest{Offset: at, NextOffset: at + 1, MaxBytes: 1 << 20})
		must(t, err)
		if got := record.Batch(r.Bytes).LeaderEpoch(); got != int32(at)+1 {
			t.Errorf("offset %d has leader epoch %d", at, got)
		}
	}
}

// Entries of others are adopted by an append or by themselves, and it makes no difference to
// what is read.
func TestEntriesOfOthersAreTheSameHoweverTheyAreAdopted(t *testing.T) {
	for _, byAppend := range []bool{true, false} {
		b := newBed(t, inIndex)
		l := b.open(1)
		for _, e := range [][]string{
			{"5-9007199254740994", "value", "0", "timestamp", "300"}, {"5-9007199254740996", "value", "1"}, {"5-9007199254740997", "value", "2", "timestamp", "+7"},
			{"6-0", "value", "3", "timestamp", "99999999999999"}, {"6-1", "value", "4", "timestamp", "18014398509481984"}, {"6-2", "value", "5", "timestamp", "soon"},
		} {
			b.do(append([]string{"XADD", b.keys().stream}, e...)...)
		}
		if !byAppend {
			b.refresh(l)
		}
		b.append(l, b.batchOf(record.Record{Timestamp: 8, Value: []byte("6")}))
		var got []string
		for _, r := range b.content(l) {
			got = append(got, fmt.Sprint(r.Offset, " ", string(r.Value), " ", r.Timestamp))
		}
		if want := []string{"0 0 300", "1 1 5", "2 2 7", "3 3 99999999999999", "4 4 6", "5 5 6", "6 6 8"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		for ts, want := range map[int64]int64{1: 0, 301: 3, 99999999999999: 3} {
			if at, ok, err := l.OffsetForTimestamp(b.ctx, ts); err != nil || !ok || at.Offset != want {
				t.Errorf("the first record with timestamp %d or more is at %+v, %v, %v", ts, at, ok, err)
			}
		}
		if at, ok, err := l.OffsetForTimestamp(b.ctx, 100000000000000); err != nil || ok {
			t.Errorf("%+v, %v", at, err)
		}
		b.wantSound()
	}
}

// Ids go on where they were, so that who reads with them misses nothing.
func TestIdsGoOnWhereADataKeyWasDeleted(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.do("XADD", b.keys().stream, "99999999999999-7", "value", "0")
	b.refresh(l)
	b.do("DEL", b.keys().stream)
	l = b.open(2)
	id, err := parseID(b.do("XADD", b.keys().stream, "*", "value", "1"))
	if must(t, err); !(entryID{99999999999999, 7}).less(id) {
		t.Errorf("the next id is %s", id)
	}
	b.append(l, b.valued("2"))
	if got := b.values(l); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("%q", got)
	}
	b.wantSound()
}

// holding is a client that does something before it tells what became of an append.
type holding struct {
	rueidis.Client
	before func()
}

func (h *holding) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	isAppend := cmds[0].Commands()[0] == "MULTI"
	r := h.Client.DoMulti(ctx, cmds...)
	if isAppend {
		h.before()
	}
	return r
}

// An append that is executed, but not yet told, is not adopted as if it were of others.
func TestRefreshWaitsForAppendsThatItSees(t *testing.T) {
	b := newBed(t, inIndex)
	h := &holding{Client: connect(t, single(t))}
	s := New(h, Options{Prefix: b.prefix})
	t.Cleanup(func() { _ = s.Close() })
	l := b.openIn(s, 1).(indexLog)
	var told atomic.Bool
	refreshed := make(chan struct{})
	h.before = func() {
		go func() {
			defer close(refreshed)
			if end, err := l.Refresh(b.ctx); err != nil || end != 1 || !told.Load() {
				t.Errorf("it ends at %d, %v, and whoever appended was told: %v", end, err, told.Load())
			}
		}()
		for l.claimed.Load() == 0 {
			select {
			case <-refreshed:
				return
			default:
				runtime.Gosched()
			}
		}
	}
	done := make(chan struct{})
	l.Begin(b.ctx, b.valued("0"), func(store.Appended, error) {
		told.Store(true)
		close(done)
	})
	<-done
	<-refreshed
}
