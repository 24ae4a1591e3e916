package redis

import (
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

// batched is a log of layout log with all that a log can have.
type batched struct {
	*bed
	url   string
	epoch int32
	log   store.Pipelined
	n     int
}

func newBatched(t *testing.T, url string) *batched {
	o := &batched{bed: newBedAt(t, url, inBatches), url: url}
	o.reopen()
	return o
}

func (o *batched) reopen() {
	o.Helper()
	o.epoch++
	o.log = o.openIn(o.newStore(o.url, Options{}), o.epoch)
}

// sent appends a batch of a producer, with some records of which the keys come again.
func (o *batched) sent(tmpl record.Template, records int) {
	o.Helper()
	recs := make([]record.Record, records)
	for i := range recs {
		o.n++
		recs[i] = record.Record{
			OffsetDelta: int32(i), Timestamp: int64(1_700_000_000_000 + o.n%5), Key: fmt.Append(nil, "k", o.n%4), Value: fmt.Append(nil, "v", o.n),
			Headers: []record.Header{{Key: "h", Value: []byte{byte(o.n)}}, {Key: "none"}},
		}
	}
	recs[0].Value = nil
	batch, err := record.Build(tmpl, recs)
	must(o.T, err)
	o.append(o.log, batch)
}

// fill appends batches of all kinds: plain and packed ones, those of idempotent producers, and transactions that
// are committed, aborted, or open.
func (o *batched) fill() {
	o.Helper()
	plain := record.PlainTemplate()
	o.sent(plain, 3)
	packed := plain
	packed.Codec = record.ZSTD
	o.sent(packed, 4)
	idempotent := plain
	idempotent.ProducerID, idempotent.ProducerEpoch, idempotent.BaseSequence = 7, 2, int32(o.n)
	o.sent(idempotent, 2)
	for id := range int64(3) {
		txn := plain
		txn.ProducerID, txn.ProducerEpoch, txn.BaseSequence, txn.Transactional = 20+id, 1, int32(o.n), true
		o.sent(txn, 2)
	}
	for id := range int64(2) {
		marker, err := record.BuildMarker(20+id, 1, record.Marker{Commit: id == 0, CoordinatorEpoch: 3}, 0) // No record is as old.
		must(o.T, err)
		o.append(o.log, marker)
	}
}

// picture is all that clients see of a log.
type picture struct {
	records                     []string
	producers, aborted, offsets string
	start, end                  int64
}

// pictureOf reads a log, batch by batch.
func (b *bed) pictureOf(l store.Log) (p picture) {
	b.Helper()
	p.start, p.end = l.Bounds()
	for at := p.start; at < p.end; {
		r, err := l.Read(b.ctx, store.ReadRequest{Offset: at, NextOffset: p.end, MaxBytes: 1 << 20, MinOne: true})
		must(b.T, err)
		if r.Len == 0 {
			break
		}
		for rest := r.Bytes; len(rest) > 0; {
			batch, more, err := record.Next(rest)
			must(b.T, err)
			must(b.T, batch.Check())
			must(b.T, batch.Each(func(r *record.Record) error {
				if r.Offset < p.start {
					return nil
				}
				line := fmt.Sprint(r.Offset, " ", r.Timestamp, " epoch ", batch.LeaderEpoch(), " control ", batch.Control(), " txn ", batch.Transactional(), " ")
				if batch.Transactional() {
					line += fmt.Sprint("producer ", batch.ProducerID(), " ", batch.ProducerEpoch(), " ", record.AddSequence(batch.BaseSequence(), r.OffsetDelta), " ")
				}
				p.records = append(p.records, line+fmt.Sprintf("%q %q %t %v", r.Key, r.Value, r.Value == nil, r.Headers))
				return nil
			}))
			rest, at = more, max(at, batch.LastOffset()+1)
		}
	}
	producers, next, err := l.Producers(b.ctx)
	must(b.T, err)
	p.producers = fmt.Sprintf("%+v %d", producers, next)
	aborted, err := l.Aborted(b.ctx, p.start, p.end)
	must(b.T, err)
	p.aborted = fmt.Sprint(aborted, l.Epochs())
	var at []string
	for ts := int64(1_699_999_999_999); ts < 1_700_000_000_006; ts++ {
		o, ok, err := l.OffsetForTimestamp(b.ctx, ts)
		must(b.T, err)
		at = append(at, fmt.Sprint(o.Offset, o.Timestamp, ok))
	}
	p.offsets = strings.Join(at, ", ")
	return p
}

// converted opens the log in its new layout, and compares it with what it was.
func (o *batched) converted(want picture) store.Pipelined {
	o.Helper()
	_ = o.openIn(o.newStore(o.url, Options{}), o.epoch) // The setting is written last.
	if n := o.logged.count("keeps the layout"); n > 0 {
		o.Errorf("there are %d warnings of its layout", n)
	}
	o.epoch++
	o.cfg = inIndex
	l := o.openIn(o.newStore(o.url, Options{}), o.epoch)
	if name := l.(store.Laid).Layout(); name != store.LayoutIndexed {
		o.Fatalf("it is in layout %s", name)
	}
	o.refresh(l)
	got := o.pictureOf(l)
	for i := range max(len(got.records), len(want.records)) {
		if i >= len(got.records) || i >= len(want.records) || got.records[i] != want.records[i] {
			o.Fatalf("record %d of %d, not %d:\n%q, not\n%q", i, len(got.records), len(want.records), got.records[min(i, len(got.records)):min(i+1, len(got.records))], want.records[min(i, len(want.records)):min(i+1, len(want.records))])
		}
	}
	got.records, want.records = nil, nil
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		o.Errorf("it is\n%+v, and was\n%+v", got, want)
	}
	if _, ok := l.(store.Converted).Until(); ok {
		o.Error("it is said to have had other offsets")
	}
	k := o.keys()
	for _, key := range []string{k.stream, k.index} {
		if ttl := o.do("TTL", key); ttl != "-1" {
			o.Errorf("%s expires in %s s", key, ttl)
		}
	}
	if n := o.do("EXISTS", k.copied, k.conversion, k.copiedHeld, k.replaced); n != "0" {
		o.Errorf("%s keys are left over", n)
	}
	o.wantSound()
	return l
}

func TestALogOfBatchesIsConvertedAsItIs(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		o := newBatched(t, url)
		o.fill()
		o.reopen()
		o.fill()
		want := o.pictureOf(o.log)
		must(t, convertIt(o.log))
		if _, err := o.log.Append(o.ctx, o.valued("late")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("an append to what it was: %v", err)
		}
		l := o.converted(want)
		if at := o.append(l, o.valued("new")); at.BaseOffset != want.end {
			t.Errorf("the next record is at %d, and it ended at %d", at.BaseOffset, want.end)
		}
		o.do("XADD", o.keys().stream, "*", "value", "of others")
		o.refresh(l)
		if got := o.values(l); !slices.Equal(got[len(got)-2:], []string{"new", "of others"}) {
			t.Errorf("%q", got)
		}
		marker, err := record.BuildMarker(22, 1, record.Marker{}, 1_700_000_000_000)
		must(t, err)
		o.append(l, marker)
		if aborted, err := l.Aborted(o.ctx, 0, want.end+3); err != nil || len(aborted) != 3 {
			t.Errorf("after the end of the open transaction %+v, %v", aborted, err)
		}
		o.wantSound()
	})
}

// Where compaction has left holes, within batches and between them, they stay; and so does a start within a batch.
func TestHolesAndTheStartOfAConvertedLogStay(t *testing.T) {
	for name, change := range map[string]func(o *batched){
		"compacted": func(*batched) {},
		"start within a batch": func(o *batched) {
			must(o.T, o.log.Trim(o.ctx, 9))
		},
		"start in a hole": func(o *batched) {
			must(o.T, o.log.Trim(o.ctx, 2))
		},
		"empty": func(o *batched) {
			_, end := o.log.Bounds()
			must(o.T, o.log.Trim(o.ctx, end))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newBatched(t, single(t))
			for range 3 {
				o.fill()
			}
			_, end := o.log.Bounds()
			must(t, o.log.Compact(o.ctx, store.Compaction{NextOffset: end, Now: time.Now()}))
			if n := len(o.content(o.log)); n == 0 || n > 40 {
				t.Fatalf("%d records are left", n)
			}
			change(o)
			want := o.pictureOf(o.log)
			must(t, convertIt(o.log))
			l := o.converted(want)
			o.append(l, o.valued("new"))
			_, end = l.Bounds()
			must(t, l.Compact(o.ctx, store.Compaction{NextOffset: end, Now: time.Now()}))
			o.wantSound()
		})
	}
}

func TestAnEmptyLogOfBatchesIsConverted(t *testing.T) {
	o := newBatched(t, single(t))
	want := o.pictureOf(o.log)
	must(t, convertIt(o.log))
	if at := o.append(o.converted(want), o.valued("first")); at.BaseOffset != 0 {
		t.Errorf("its first record is at %d", at.BaseOffset)
	}
}

// A conversion dies before each of its steps, and after the last. Whoever leads next finds the log as it was, or as it is to
// be; it is written and trimmed, and the conversion goes on where it was.
func TestACopyThatDiesIsTakenUpAgain(t *testing.T) {
	died := errors.New("died")
	whole := false
	for at := 0; !whole; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			o := newBatched(t, single(t))
			for range 3 {
				o.fill()
				for range 2 {
					o.sent(record.PlainTemplate(), maxGroupEntries/2+1)
				}
			}
			steps := 0
			before := o.pictureOf(o.log)
			err := o.log.(batchLog).convert(o.ctx, func() error {
				if steps == at {
					return died
				}
				steps++
				return nil
			})
			if err == nil {
				whole = true
				if steps < 6 {
					t.Errorf("it has %d steps", steps)
				}
			} else if !errors.Is(err, died) {
				t.Fatalf("after %d steps: %v", steps, err)
			}
			if o.do("HGET", o.keys().meta, "layout") == "indexed" {
				o.converted(before)
				return
			}
			o.reopen()
			o.fill()
			must(t, o.log.Trim(o.ctx, 25))
			want := o.pictureOf(o.log)
			first := -1
			err = o.log.(batchLog).convert(o.ctx, func() error {
				if first < 0 {
					text, err := o.try("XREVRANGE", o.keys().conversion, "+", "-", "COUNT", "1")
					must(t, err)
					first = len(text)
				}
				return nil
			})
			must(t, err)
			if at > 1 && first <= len("[]") {
				t.Error("it began anew")
			}
			o.converted(want)
		})
	}
}

// What compaction removes must not come back: a copy of before is of no use then.
func TestACopyOfBeforeACompactionBeginsAnew(t *testing.T) {
	o := newBatched(t, single(t))
	o.fill()
	o.fill()
	l := o.log.(batchLog)
	if _, done, err := l.Prepare(o.ctx, forever); err != nil || !done {
		t.Fatalf("%t, %v", done, err)
	}
	compact := func(l store.Log) {
		_, end := l.Bounds()
		must(t, l.Compact(o.ctx, store.Compaction{NextOffset: end, Now: time.Now()}))
	}
	before := o.pictureOf(o.log)
	compact(o.log) // It waits for the copy.
	if now := o.pictureOf(o.log); len(now.records) != len(before.records) {
		t.Errorf("%d of %d records are left while it is copied", len(now.records), len(before.records))
	}
	o.reopen()
	compact(o.log)
	want := o.pictureOf(o.log)
	if len(want.records) >= len(before.records) {
		t.Errorf("%d of %d records are left", len(want.records), len(before.records))
	}
	must(t, convertIt(o.log))
	o.converted(want)
}

func TestADeposedLeaderCopiesNothing(t *testing.T) {
	o := newBatched(t, single(t))
	o.fill()
	deposed := o.log.(batchLog)
	c := &copying{batchLog: deposed, step: func() error { return nil }}
	must(t, c.begin(o.ctx))
	o.reopen()
	if _, err := c.extend(o.ctx, forever); !errors.Is(err, store.ErrFenced) {
		t.Errorf("it copies: %v", err)
	}
	if err := c.change(o.ctx); !errors.Is(err, store.ErrFenced) {
		t.Errorf("it changes the log: %v", err)
	}
	if err := convertIt(deposed); !errors.Is(err, store.ErrFenced) {
		t.Errorf("it converts: %v", err)
	}
	if n := o.do("XLEN", o.keys().copied); n != "0" {
		t.Errorf("it has copied %s records", n)
	}
	want := o.pictureOf(o.log)
	must(t, convertIt(o.log))
	o.converted(want)
}

// Two leaders of the same log copy one after the other. The one of before adds nothing that the next does not know.
func TestACopyThatAnotherWentOnWithIsLeftAlone(t *testing.T) {
	o := newBatched(t, single(t))
	o.fill()
	l := o.log.(batchLog)
	slow := &copying{batchLog: l, step: func() error { return nil }}
	must(t, slow.begin(o.ctx))
	if _, _, err := l.Prepare(o.ctx, forever); err != nil {
		t.Fatal(err)
	}
	n := o.do("XLEN", o.keys().copied)
	if _, err := slow.extend(o.ctx, forever); !errors.Is(err, store.ErrStorage) {
		t.Errorf("it goes on from where it does not end: %v", err)
	}
	if now := o.do("XLEN", o.keys().copied); now != n {
		t.Errorf("the copy has %s records, and had %s", now, n)
	}
	must(t, slow.begin(o.ctx))
	o.do("DEL", o.keys().conversion, o.keys().copied) // As if they had expired, and another had begun anew.
	must(t, (&copying{batchLog: l, step: slow.step}).begin(o.ctx))
	o.fill()
	if _, err := slow.extend(o.ctx, forever); !errors.Is(err, store.ErrStorage) || o.do("XLEN", o.keys().copied) != "0" {
		t.Errorf("it goes on where nothing is: %v", err)
	}
	must(t, (&copying{batchLog: l, step: slow.step}).begin(o.ctx))
	o.do("DEL", o.keys().conversion) // As if one had expired.
	want := o.pictureOf(o.log)
	must(t, convertIt(o.log))
	o.converted(want)
}

// Consumer groups of Redis stand where they did, at records now.
func TestGroupsOfRedisKeepTheirPlacesInAConvertedLog(t *testing.T) {
	o := newBatched(t, single(t))
	o.fill()
	o.fill()
	k := o.keys()
	o.do("XGROUP", "CREATE", k.stream, "start", "0")
	o.do("XGROUP", "CREATE", k.stream, "middle", "7-0") // It has read all below offset 7.
	o.do("XGROUP", "CREATE", k.stream, "end", "$")
	o.do("XGROUP", "CREATECONSUMER", k.stream, "middle", "c")
	want := o.pictureOf(o.log)
	must(t, convertIt(o.log))
	o.converted(want)
	if got := o.do("XINFO", "GROUPS", k.stream); !strings.Contains(got, "entries-read:7 lag:23") || !strings.Contains(got, "entries-read:0 lag:30") {
		t.Errorf("before they read on: %s", got)
	}
	for group, n := range map[string]int{"start": 30, "middle": 23, "end": 0} {
		got, _ := o.try("XREADGROUP", "GROUP", group, "c", "COUNT", "100", "STREAMS", k.stream, ">")
		if read := strings.Count(got, "timestamp"); read != n {
			t.Errorf("group %s reads %d records, and had %d to read: %s", group, read, n, got)
		}
	}
	if got := o.do("XINFO", "CONSUMERS", k.stream, "middle"); !strings.Contains(got, "name:c") {
		t.Errorf("its consumers are %s", got)
	}
}

// A leader appends while the log is copied. What was acknowledged is there, once, at its offset.
func TestALogOfBatchesIsConvertedWhileItIsWritten(t *testing.T) {
	for seed := range 4 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := newBatched(t, single(t))
			for range 20 {
				o.fill()
			}
			_, first := o.log.Bounds()
			acked := map[int64]string{}
			var all sync.WaitGroup
			all.Go(func() {
				for i := int32(0); ; i++ {
					v := fmt.Sprint("own", i)
					at, err := o.log.Append(context.Background(), o.sequenced(99, i, v))
					if err != nil {
						return // It has been converted.
					}
					acked[at.BaseOffset] = v
				}
			})
			for range 10 * seed {
				_, err := o.try("PING")
				must(t, err)
			}
			must(t, convertIt(o.log))
			all.Wait()
			o.epoch++
			o.cfg = inIndex
			l := o.openIn(o.newStore(o.url, Options{}), o.epoch)
			_, end := l.Bounds()
			if n := int(end - first); n < len(acked) || n > len(acked)+1 {
				t.Errorf("%d records were acknowledged, and %d are there", len(acked), n)
			}
			got := map[int64]string{}
			for _, r := range o.content(l) {
				got[r.Offset] = string(r.Value)
			}
			for at, v := range acked {
				if got[at] != v {
					t.Errorf("%s was acknowledged at %d, where %q is", v, at, got[at])
				}
			}
			o.wantSound()
		})
	}
}

func TestAPreviewOfACopyChangesNothing(t *testing.T) {
	o := newBatched(t, single(t))
	o.fill()
	want := o.pictureOf(o.log)
	x, err := o.log.(store.Convertible).Preview(o.ctx)
	if must(t, err); x.Records != want.end || x.Bytes != o.log.Size() || !x.Copied || x.Time <= 0 {
		t.Errorf("%+v", x)
	}
	if n := o.do("EXISTS", o.keys().copied, o.keys().conversion); n != "0" {
		t.Error("it has begun")
	}
}

// A copy that does not fit goes, so that others can write again.
func TestACopyThatFillsRedisIsRemoved(t *testing.T) {
	o := newBatched(t, redistest.Single(t, "maxmemory-policy noeviction").URL())
	value := strings.Repeat("v", 100<<10)
	for range 100 {
		o.append(o.log, o.valued(value))
	}
	o.do("CONFIG", "SET", "maxmemory", "16mb")
	for name, try := range map[string]func() error{
		"prepare": func() error { _, _, err := o.log.(store.Convertible).Prepare(o.ctx, forever); return err },
		"convert": func() error { return convertIt(o.log) },
	} {
		if err := try(); !errors.Is(err, store.ErrNotConvertible) || !strings.Contains(err.Error(), "maxmemory") {
			t.Errorf("%s: %v", name, err)
		}
		redistest.Eventually(t, "the copy to be gone", func() bool { return o.do("EXISTS", o.keys().copied, o.keys().conversion) == "0" })
		redistest.Eventually(t, "room", func() bool { // What was unlinked is freed in the background.
			if _, err := o.log.Append(o.ctx, o.valued("v")); err == nil {
				return true
			}
			o.reopen()
			return false
		})
	}
	want := o.pictureOf(o.log)
	o.do("CONFIG", "SET", "maxmemory", "0")
	must(t, convertIt(o.log))
	o.converted(want)
}
