package redis

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// TestAReaderFarBehindAsksForTheIndexSeldom reads a log from its start, in small steps: each
// asks for data, and few for the index, along with the data.
func TestAReaderFarBehindAsksForTheIndexSeldom(t *testing.T) {
	s := redistest.Single(t)
	b := newBedAt(t, s.URL(), inIndex)
	l := b.open(1)
	const appends, records = 1000, 5
	for range appends {
		b.append(l, b.valued(strings.Split(strings.Repeat("some value,", records), ",")[:records]...))
	}
	l = b.open(2)
	ranges := func() int {
		text, _, _ := strings.Cut(strings.TrimPrefix(s.Nodes[0].Info("commandstats", "cmdstat_xrange"), "calls="), ",")
		n, err := strconv.Atoi(text)
		must(t, err)
		return n
	}
	before, reads := ranges(), 0
	at, end := l.Bounds()
	for ; at < end; reads++ {
		r, err := l.Read(b.ctx, store.ReadRequest{Offset: at, NextOffset: math.MaxInt64, MaxBytes: 2000, MinOne: true})
		must(t, err)
		for rest := r.Bytes; len(rest) > 0; {
			batch, more, err := record.Next(rest)
			must(t, err)
			if batch.BaseOffset() != at {
				t.Fatalf("a batch at offset %d, after the record at %d", batch.BaseOffset(), at-1)
			}
			rest, at = more, batch.LastOffset()+1
		}
		r.Release()
	}
	got := ranges() - before
	t.Logf("%d reads, %d XRANGE", reads, got)
	if most := reads + reads/4 + 10; got > most {
		t.Errorf("%d reads took %d XRANGE, and %d are enough", reads, got, most)
	}
}

// What is remembered for readers far behind is bounded by bytes, whatever the entries are like.
func TestWindowsAreBoundedByBytes(t *testing.T) {
	var w indexWindows
	logs := []*index{{}, {}}
	large := indexEntry{next: 10, runs: make([]idRun, maxWindowBytes/32/4)} // A little more than a quarter of what is kept.
	for i := range int64(6) {
		e := large
		e.base, e.next = 10*i, 10*i+10
		w.add(indexWindow{log: logs[i%2], from: 10 * i, entries: []indexEntry{e}})
	}
	if w.bytes > maxWindowBytes || len(w.list) != 3 {
		t.Errorf("%d windows have %d bytes", len(w.list), w.bytes)
	}
	for i, want := range []int{0, 0, 0, 1, 1, 1} {
		if got := len(w.from(logs[i%2], int64(10*i))); got != want {
			t.Errorf("window %d: %d entries", i, got)
		}
	}
	for _, l := range logs {
		w.forget(l)
	}
	if w.bytes != 0 || len(w.list) != 0 {
		t.Errorf("of nothing there are %d bytes in %d windows", w.bytes, len(w.list))
	}
	for range maxWindowsKept + 10 {
		w.add(indexWindow{log: logs[0], entries: []indexEntry{{next: 1}}})
	}
	if len(w.list) != maxWindowsKept {
		t.Errorf("%d windows are kept", len(w.list))
	}
}
