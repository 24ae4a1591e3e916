package redis

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// A log can start where compaction has removed everything.
func TestTheStartMovesToWhereItIsAskedToThoughTheIndexHasAHole(t *testing.T) {
	for to := int64(1); to <= 4; to++ {
		b := newBed(t, inIndex)
		l := b.open(1)
		for i, key := range []string{"a", "b", "b", "b"} {
			b.append(l, b.batchOf(record.Record{Timestamp: int64(i), Key: []byte(key), Value: fmt.Append(nil, i)}))
		}
		must(t, l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 4}))
		must(t, l.Trim(b.ctx, to))
		if start, _ := l.Bounds(); start != to {
			t.Errorf("trimmed to %d, the log starts at %d", to, start)
		}
		if got := b.values(l); !slices.Equal(got, []string{"3"}[to/4:]) {
			t.Errorf("trimmed to %d: %q", to, got)
		}
		b.wantSound()
	}
}

// Whoever trims must not go ahead of a snapshot that is under way.
func TestASnapshotIsDueUntilItIsWritten(t *testing.T) {
	b := newBed(t, inIndex)
	var l indexLog
	looked := false
	m := &meddler{Client: connect(t, single(t))}
	m.after = func(words []string) {
		if len(words) > 1 && words[1] == snapshotScript {
			l.mu.Lock()
			defer l.mu.Unlock()
			if looked = true; l.unsaved != 1 {
				t.Errorf("while a snapshot is written, %d entries are to be saved", l.unsaved)
			}
		}
	}
	s := New(m, Options{Prefix: b.prefix})
	t.Cleanup(func() { _ = s.Close() })
	l = b.openIn(s, 1).(indexLog)
	b.append(l, b.sequenced(7, 0, "0"))
	must(t, l.Trim(b.ctx, 1))
	if !looked || l.unsaved != 0 {
		t.Errorf("written %v, and %d entries are to be saved", looked, l.unsaved)
	}
}

// What an append adopted by the way counts too.
func TestEntriesAreCountedWhoeverAddsThem(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1).(indexLog)
	b.store.now = func() time.Time { return time.Now().Add(time.Hour) }
	for i := range 3 {
		b.do("XADD", b.keys().stream, "*", "value", fmt.Sprint(i))
		if i == 1 {
			b.refresh(l)
		}
		b.append(l, b.valued("a", "b"))
	}
	if n := b.do("XLEN", b.keys().stream); n != fmt.Sprint(l.tail.count) {
		t.Errorf("%s entries, and the log counts %d", n, l.tail.count)
	}
	if _, s, err := parseIndexState(b.do("HGET", b.keys().meta, "s")); err != nil || s != (indexState{l.tail.added, l.tail.maxTimestamp, l.tail.size}) {
		t.Errorf("the state is %+v, %v; the handle has %+v", s, err, l.tail)
	}
}

// Redis leaves entries behind an id that was deleted above them.
func TestATrimLeavesNothingBehindAnIdThatWasDeleted(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	b.do("XDEL", b.keys().stream, b.do("XADD", b.keys().stream, "99999999999999-7", "value", "deleted"))
	b.append(l, b.valued("1", "2", "3", "4"))
	must(t, l.Trim(b.ctx, 3))
	if got := b.values(l); !slices.Equal(got, []string{"3", "4"}) {
		t.Errorf("%q", got)
	}
	if n := b.do("XLEN", b.keys().stream); n != "2" {
		t.Errorf("%s entries are left", n)
	}
	b.wantSound()
}

// What Redis clients trim is gone for Kafka clients as well.
func TestTheStartFollowsWhatRedisClientsTrim(t *testing.T) {
	marker, err := record.BuildMarker(7, 0, record.Marker{Commit: true}, 3)
	must(t, err)
	for left, want := range map[string]int64{"7": 0, "6": 1, "5": 2, "4": 3, "3": 5, "1": 7, "0": 9} {
		for _, adopted := range []bool{true, false} {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0", "1"))
			b.append(l, b.valued("2"))
			b.append(l, marker)
			for i := range 3 {
				b.do("XADD", b.keys().stream, "*", "value", fmt.Sprint(i))
			}
			b.refresh(l)
			b.append(l, marker)
			b.append(l, b.valued("8"))
			if b.do("XTRIM", b.keys().stream, "MAXLEN", left); !adopted {
				b.do("XADD", b.keys().stream, "*", "value", "no offset yet")
			}
			must(t, l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: -1, NextOffset: 9}))
			if start, _ := l.Bounds(); start != want {
				t.Errorf("of 7 records %s are left, and the log starts at %d, not %d", left, start, want)
			}
			b.wantSound()
		}
	}
}

// A producer may write a smaller timestamp into the header than its records have.
func TestASearchByTimestampGoesByTheRecords(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	batch := b.batchOf(record.Record{Timestamp: 3, Value: []byte("0")}, record.Record{Timestamp: 90, Value: []byte("1")})
	binary.BigEndian.PutUint64(batch[35:], 5)
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], crc32.MakeTable(crc32.Castagnoli)))
	b.append(l, batch)
	b.append(l, b.batchOf(record.Record{Timestamp: 4, Value: []byte("2")}))
	for range 2 {
		if at, ok, err := l.OffsetForTimestamp(b.ctx, 50); err != nil || !ok || at.Offset != 1 {
			t.Errorf("the first record with a timestamp of 50 or more is at %+v, %v, %v", at, ok, err)
		}
		if at, ok, err := l.MaxTimestamp(b.ctx); err != nil || !ok || at.Timestamp != 90 {
			t.Errorf("the largest timestamp is %+v, %v, %v", at, ok, err)
		}
		l = b.open(2)
	}
}

func TestASnapshotHoldsManyProducers(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	var all sync.WaitGroup
	for id := range int64(1100) {
		all.Add(1)
		l.Begin(b.ctx, b.sequenced(id, 0, "v"), func(store.Appended, error) { all.Done() })
	}
	all.Wait()
	must(t, l.SaveProducers(b.ctx, nil, 0))
	if n := b.do("HLEN", b.keys().producers); n != "1101" {
		t.Errorf("%s fields", n)
	}
}

// The last entry of the index says how many there were.
func TestCompactionKeepsTheLastEntryOfTheIndex(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	for range 3 {
		b.append(l, b.batchOf(record.Record{Timestamp: 1, Value: []byte("without a key")}))
	}
	must(t, l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 3}))
	if data, index := b.do("XLEN", b.keys().stream), b.do("XLEN", b.keys().index); data != "0" || index != "1" {
		t.Errorf("%s entries are left in the data, and %s in the index", data, index)
	}
	b.wantSound()
}

// Whoever began an append hears of it before readers do.
func TestRefreshTellsNoOneOfAppendsThatNoOneWasTold(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	var all sync.WaitGroup
	for i := range 20 {
		all.Add(1)
		l.Begin(b.ctx, b.valued(fmt.Sprint(i)), func(at store.Appended, err error) {
			defer all.Done()
			end, again := l.(store.Refresher).Refresh(b.ctx)
			if err != nil || again != nil || end > at.LastOffset+1 {
				t.Errorf("while %+v is told, the log ends at %d, %v, %v", at, end, err, again)
			}
		})
	}
	all.Wait()
	if end := b.refresh(l); end != 20 {
		t.Errorf("it ends at %d", end)
	}
}
