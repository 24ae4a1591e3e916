package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

func TestEntriesOfARedisClientAreRecords(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	key := b.keys().stream
	b.append(l, b.valued("ours"))
	b.do("XADD", key, "*", "key", "k1", "value", "v1", "timestamp", "1234", "header:a", "1", "header:a", "2", "header-null:n", "", "colour", "red")
	b.do("XADD", key, "*", "temperature", "21.5", "unit", "°C", "unit", "\xff")
	id := b.do("XADD", key, "*", "value", "")
	_, err := l.(store.Refresher).Refresh(b.ctx)
	must(t, err)
	b.append(l, b.valued("ours again"))
	got := b.content(l)
	if len(got) != 5 {
		t.Fatalf("%d records: %v", len(got), got)
	}
	r := got[1]
	want := []record.Header{{Key: "a", Value: []byte("1")}, {Key: "a", Value: []byte("2")}, {Key: "n"}, {Key: "colour", Value: []byte("red")}}
	if string(r.Key) != "k1" || string(r.Value) != "v1" || r.Timestamp != 1234 || !slices.EqualFunc(r.Headers, want, sameHeader) {
		t.Errorf("with key and value: %+v", r)
	}
	if want := `{"temperature":"21.5","unit":"°C","unit":"\ufffd"}`; string(got[2].Value) != want || got[2].Key != nil || got[2].Headers != nil {
		t.Errorf("without key and value: %+v, value %s", got[2], got[2].Value)
	}
	parsed, err := parseID(id)
	must(t, err)
	if r := got[3]; r.Key != nil || r.Value == nil || len(r.Value) != 0 || r.Timestamp != int64(parsed.ms) {
		t.Errorf("with an empty value: %+v", r)
	}
}

func sameHeader(a, b record.Header) bool {
	return a.Key == b.Key && bytes.Equal(a.Value, b.Value) && (a.Value == nil) == (b.Value == nil)
}

func TestARedisClientSeesRecordsAsFields(t *testing.T) {
	b := newBed(t, inStreams)
	b.append(b.open(1), b.batchOf(
		record.Record{Timestamp: 5, Key: []byte("k"), Value: []byte("v"), Headers: []record.Header{{Key: "h", Value: []byte("1")}, {Key: "h"}, {Key: "", Value: []byte{}}}},
		record.Record{Timestamp: 6, Key: []byte{}},
		record.Record{Timestamp: record.NoTimestamp, Value: []byte{}},
	))
	entries, err := b.client.Do(b.ctx, b.client.B().Xrange().Key(b.keys().stream).Start("-").End("+").Build()).AsXRangeSlices()
	must(t, err)
	var got []string
	for _, e := range entries {
		var fields []string
		for _, f := range e.FieldValues {
			fields = append(fields, f.Field+"="+f.Value)
		}
		got = append(got, strings.Join(fields, " "))
	}
	want := []string{"key=k value=v timestamp=5 header:h=1 header-null:h= header:=", "key= timestamp=6", "value= timestamp=-1"}
	if !slices.Equal(got, want) {
		t.Errorf("entries %q, want %q", got, want)
	}
}

// TestRedisClientsAppendAllTheTime lets others append while batches are begun
// as fast as they go. All records are there, those of a batch side by side, and
// each side's in its order. Now and then someone looks, as a broker does for those
// who wait: this is what keeps sequences small while ids are ahead of the clock.
func TestRedisClientsAppendAllTheTime(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	const batches, perBatch, others = 600, 20, 3
	stop := make(chan struct{})
	var foreign sync.WaitGroup
	counts := make([]int, others)
	for i := range others {
		client := connect(t, single(t))
		foreign.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				cmd := client.B().Arbitrary("XADD").Keys(b.keys().stream).Args("*", "key", fmt.Sprint("other", i), "value", fmt.Sprint(counts[i])).Build()
				if err := client.Do(b.ctx, cmd).Error(); err != nil {
					t.Error(err)
					return
				}
				if counts[i]++; counts[i]%5 == 0 {
					// Some of theirs are deleted at once, as queues do it.
					id, err := client.Do(b.ctx, client.B().Xadd().Key(b.keys().stream).Id("*").FieldValue().FieldValue("deleted", "1").Build()).ToString()
					if err != nil {
						t.Error(err)
					}
					client.Do(b.ctx, client.B().Xdel().Key(b.keys().stream).Id(id).Build())
				}
				if counts[i]%20 == 0 {
					if _, err := l.(store.Refresher).Refresh(b.ctx); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	outcomes := make(chan store.Appended, batches)
	for i := range batches {
		var values []string
		for j := range perBatch {
			values = append(values, fmt.Sprint(i*perBatch+j))
		}
		l.Begin(b.ctx, b.valued(values...), func(at store.Appended, err error) {
			if err != nil {
				t.Errorf("batch %d: %v", i, err)
			}
			outcomes <- at
		})
		if i >= 32 {
			<-outcomes
		}
	}
	for range 32 {
		<-outcomes
	}
	close(stop)
	foreign.Wait()
	_, err := l.(store.Refresher).Refresh(b.ctx)
	must(t, err)
	next := map[string]int{}
	for _, r := range b.content(l) {
		if r.Key == nil {
			continue
		}
		if string(r.Value) != fmt.Sprint(next[string(r.Key)]) {
			t.Fatalf("record %s of %s, after %d", r.Value, r.Key, next[string(r.Key)]-1)
		}
		next[string(r.Key)]++
	}
	for i, n := range counts {
		if got := next[fmt.Sprint("other", i)]; got != n {
			t.Errorf("%d of %d records of a Redis client", got, n)
		}
	}
	if next["k"] != batches*perBatch {
		t.Errorf("%d of %d records of ours", next["k"], batches*perBatch)
	}
}

func TestMoreRecordsThanAMillisecondHasOffsets(t *testing.T) {
	b := newBed(t, store.LogConfig{Layout: store.LayoutStream, SequenceBits: 3})
	l := b.open(1)
	var values []string
	for i := range 500 {
		values = append(values, fmt.Sprint(i))
	}
	for range 5 {
		at := b.append(l, b.valued(values...))
		if at.LastOffset-at.BaseOffset != 499 {
			t.Fatalf("500 records at %+v", at)
		}
		// Others go on in the same millisecond, and are seen.
		b.do("XADD", b.keys().stream, "*", "key", "other", "value", "x")
	}
	if got := b.content(l); len(got) != 5*500+4 {
		t.Errorf("%d records", len(got))
	}
	if n := b.logged.count("cannot be shown"); n != 0 {
		t.Errorf("%d warnings", n)
	}
}

// TestClocksDiffer alternates between stores whose clocks are a minute apart,
// one of which goes back. Offsets only grow.
func TestClocksDiffer(t *testing.T) {
	b := newBed(t, inStreams)
	var back time.Duration
	clocks := []func() time.Time{
		func() time.Time { return time.Now().Add(-time.Minute) },
		func() time.Time { return time.Now().Add(time.Minute) },
		func() time.Time { back += time.Second; return time.Now().Add(-back).Round(0) },
	}
	stores := make([]*Store, len(clocks))
	for i, now := range clocks {
		stores[i] = b.newStore(single(t), Options{Now: now})
	}
	last := int64(-1)
	for epoch := range int32(12) {
		l := b.openIn(stores[int(epoch)%len(stores)], epoch)
		for range 3 {
			at := b.append(l, b.valued("v", "w"))
			if at.BaseOffset <= last || at.LastOffset != at.BaseOffset+1 {
				t.Fatalf("appended at %+v after %d", at, last)
			}
			last = at.LastOffset
		}
		// The ids are about the server's time, whatever the broker's.
		if ms := last >> defaultBits; time.Since(time.UnixMilli(ms)).Abs() > 30*time.Second {
			t.Errorf("epoch %d: id of %v", epoch, time.UnixMilli(ms))
		}
	}
	if got := b.content(b.openIn(stores[0], 20)); len(got) != 12*3*2 {
		t.Errorf("%d records", len(got))
	}
}

// TestClockOfTheServerIsBehindTheStream is what others see of a clock that went
// back: the server gives them ids with the last time and a growing sequence.
func TestClockOfTheServerIsBehindTheStream(t *testing.T) {
	b := newBed(t, store.LogConfig{Layout: store.LayoutStream, SequenceBits: 4})
	l := b.open(1)
	at := b.append(l, b.valued("ours"))
	future := entryID{ms: uint64(at.LastOffset>>4) + 3_600_000}
	b.do("XADD", b.keys().stream, future.String(), "key", "other", "value", "0")
	for i := range 40 {
		b.do("XADD", b.keys().stream, "*", "key", "other", "value", fmt.Sprint(i+1))
		if i%4 == 0 {
			_, err := l.(store.Refresher).Refresh(b.ctx)
			must(t, err)
		}
	}
	b.append(l, b.valued("ours"))
	if got := b.content(l); len(got) != 43 {
		t.Errorf("%d records, want 43", len(got))
	}
}

func TestEntriesWithoutOffsetAreSkippedWithOneWarning(t *testing.T) {
	b := newBed(t, store.LogConfig{Layout: store.LayoutStream, SequenceBits: 2})
	l := b.open(1)
	at := b.append(l, b.valued("a"))
	ms := uint64(at.LastOffset>>2) + 1
	for seq := range uint64(8) {
		b.do("XADD", b.keys().stream, entryID{ms: ms, seq: seq}.String(), "value", fmt.Sprint(seq))
	}
	b.append(l, b.valued("z"))
	for range 3 {
		if got, want := b.values(l), []string{"a", "0", "1", "2", "3", "z"}; !slices.Equal(got, want) {
			t.Errorf("values %q, want %q", got, want)
		}
	}
	if n := b.logged.count("cannot be shown"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

func TestAnExistingStreamIsAdopted(t *testing.T) {
	b := newBed(t, inStreams)
	key := b.keys().stream
	b.do("XADD", key, "1000-0", "value", "gone")
	b.do("XGROUP", "CREATE", key, "readers", "1000-0")
	b.do("XADD", key, "2000-5", "value", "a")
	b.do("XADD", key, "3000-0", "value", "b")
	b.do("XDEL", key, "1000-0")
	l := b.open(1)
	if start, end := l.Bounds(); start != 2000<<10|5 || end != 3000<<10+1 {
		t.Errorf("the log goes from %d to %d", start, end)
	}
	b.append(l, b.valued("c"))
	for range 2 {
		if got, want := b.values(l), []string{"a", "b", "c"}; !slices.Equal(got, want) {
			t.Errorf("values %q, want %q", got, want)
		}
		if l.Size() == 0 {
			t.Error("no size")
		}
		l = b.open(2)
	}
	if groups := b.do("XINFO", "GROUPS", key); !strings.Contains(groups, "readers") || !strings.Contains(groups, "1000-0") {
		t.Errorf("groups are %s", groups)
	}
	start, _ := l.Bounds()
	_, err := l.Read(b.ctx, store.ReadRequest{Offset: start - 1, NextOffset: start, MaxBytes: 100})
	if !errors.Is(err, store.ErrOffsetOutOfRange) {
		t.Errorf("before the first entry: %v", err)
	}
}

func TestOthersMayTrimTheStream(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	for i := range 30 {
		b.append(l, b.valued(fmt.Sprint(i)))
	}
	b.do("XTRIM", b.keys().stream, "MAXLEN", "10")
	if got := b.values(l); len(got) != 10 || got[0] != "20" {
		t.Errorf("values %q", got)
	}
	b.do("XTRIM", b.keys().stream, "MAXLEN", "0")
	if got := b.values(l); len(got) != 0 {
		t.Errorf("values %q", got)
	}
	at := b.append(l, b.valued("next"))
	l = b.open(2)
	if again := b.append(l, b.valued("after")); again.BaseOffset <= at.LastOffset {
		t.Errorf("appended at %+v after %+v", again, at)
	}
	must(t, l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: 1 << 20, NextOffset: again(l)}))
	if got := b.values(l); !slices.Equal(got, []string{"next", "after"}) {
		t.Errorf("values %q", got)
	}
}

func again(l store.Log) int64 {
	_, end := l.Bounds()
	return end
}

// TestARedisClientReadsWhileAppendsAreRefused makes sure that the stream which
// a refused transaction moves away and back is never missed.
func TestARedisClientReadsWhileAppendsAreRefused(t *testing.T) {
	b := newBed(t, inStreams)
	b.append(b.open(0), b.valued("a"))
	b.do("XGROUP", "CREATE", b.keys().stream, "g", "$")
	reader := connect(t, single(t))
	got := make(chan error, 1)
	go func() {
		cmd := reader.B().Xreadgroup().Group("g", "c").Block(20_000).Streams().Key(b.keys().stream).Id(">").Build()
		entries, err := reader.Do(b.ctx, cmd).AsXRead()
		if err == nil && len(entries[b.keys().stream]) != 1 {
			err = fmt.Errorf("%v", entries)
		}
		got <- err
	}()
	redistest.Eventually(t, "the reader to wait", func() bool { return !strings.Contains(b.do("INFO", "clients"), "blocked_clients:0") })
	other := b.newStore(single(t), Options{})
	var owner store.Log
	for epoch := int32(1); epoch < 40; epoch += 2 {
		zombie := b.open(epoch)
		owner = b.openIn(other, epoch+1)
		if _, err := zombie.Append(b.ctx, b.valued("refused")); !errors.Is(err, store.ErrFenced) {
			t.Fatal(err)
		}
	}
	b.append(owner, b.valued("b"))
	must(t, <-got)
}

// A partition begins an append under the lock that done takes.
func TestBeginNeverCallsDone(t *testing.T) {
	gaps := record.PlainTemplate()
	gaps.LastOffsetDelta = 2
	uneven, err := record.Build(gaps, []record.Record{{}, {OffsetDelta: 2}, {OffsetDelta: 2}})
	must(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	b := newBed(t, store.LogConfig{Layout: store.LayoutStream})
	for _, c := range []struct {
		name  string
		ctx   context.Context
		batch []byte
		want  error
	}{
		{"batch that is refused", b.ctx, uneven, store.ErrInvalidBatch},
		{"context that has ended", ended, b.valued("v"), context.Canceled},
		{"good batch", b.ctx, b.valued("v"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := b.open(0)
			var mu sync.Mutex
			told := make(chan error, 1)
			mu.Lock()
			l.Begin(c.ctx, c.batch, func(_ store.Appended, err error) {
				mu.Lock()
				defer mu.Unlock()
				told <- err
			})
			mu.Unlock()
			if err := <-told; !errors.Is(err, c.want) {
				t.Errorf("told %v", err)
			}
		})
	}
}
