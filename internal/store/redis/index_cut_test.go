package redis

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

var cutStep = flag.Int64("cut-step", 211, "how many bytes are between the places where TestAFileThatIsCutHoldsAPrefix cuts")

// moment is a log as it is when Redis had written so many bytes.
type moment struct {
	what      string
	size      int64
	records   []record.Record
	producers string
	aborted   []store.Aborted
}

// cutBed is a log in a Redis whose file is to be cut, and what it is after each change.
type cutBed struct {
	*bed
	server  *redistest.Server
	moments []moment
}

// did notes how much Redis has written by now.
func (c *cutBed) did(what string) {
	c.Helper()
	c.moments = append(c.moments, moment{what: what, size: c.server.Nodes[0].FileSize(c)})
}

// TestAFileThatIsCutHoldsAPrefix has a server come back with its append-only file cut somewhere in the last
// transactions: each is there as a whole or not at all, in all keys. (make cuts tries every byte)
func TestAFileThatIsCutHoldsAPrefix(t *testing.T) {
	server := redistest.Single(t)
	c := &cutBed{bed: newBedAt(t, server.URL(), inIndex), server: server}
	l := c.open(1)
	c.append(l, c.valued("before", "all"))
	c.did("what was there before")
	c.foreign("alone")
	c.did("an entry of a Redis client")
	c.append(l, c.sequenced(7, 0, "a", "b", "c"))
	c.did("an append that adopts")
	c.append(l, c.transactional(8, 0))
	c.did("an open transaction")
	c.foreign("f")
	c.did("another entry")
	c.foreign("g")
	c.did("one more")
	c.refresh(l)
	c.did("an adoption")
	c.append(l, c.marker(8, false))
	c.did("its abort")
	must(t, l.SaveProducers(c.ctx, nil, 0))
	c.did("a snapshot")
	c.append(l, c.sequenced(7, 3, "h"))
	c.did("the last append")
	whole := server.Nodes[0].Snapshot(t)
	for i := range c.moments { // What is there then is known from servers whose files end there.
		c.at(i, whole)
	}
	var cuts []int64
	first, last := c.moments[0].size, c.moments[len(c.moments)-1].size
	for size := first; size < last; size += *cutStep {
		cuts = append(cuts, size)
	}
	for _, m := range c.moments[1:] {
		cuts = append(cuts, m.size-1)
	}
	slices.Sort(cuts)
	for _, size := range slices.Compact(cuts) {
		i := 0
		for i+1 < len(c.moments) && c.moments[i+1].size <= size {
			i++
		}
		if !c.cut(whole, size, i) {
			return
		}
	}
	t.Logf("%d cuts in the last %d bytes of the file", len(cuts), last-first)
}

// foreign adds an entry as a Redis client does.
func (c *cutBed) foreign(value string) {
	c.Helper()
	c.do("XADD", c.keys().stream, "*", "value", value)
}

// look opens the log in a server that is there again, and says what is in it.
func (c *cutBed) look(t *testing.T) (b *bed, m moment) {
	t.Helper()
	b = &bed{T: t, ctx: t.Context(), client: connect(t, c.server.URL()), prefix: c.prefix, at: c.bed.at, cfg: inIndex, logged: &lines{}}
	b.store = b.newStore(c.server.URL(), Options{})
	l := b.open(2)
	b.wantSound()
	m.records = b.content(l)
	producers, _, err := l.Producers(b.ctx)
	must(t, err)
	m.producers = fmt.Sprint(producers)
	_, end := l.Bounds()
	m.aborted, err = l.Aborted(b.ctx, 0, end)
	must(t, err)
	return b, m
}

// at finds out what is there after a command, and that it is more than after the one before.
func (c *cutBed) at(i int, whole redistest.Snapshot) {
	m := &c.moments[i]
	c.Run(fmt.Sprintf("after %s", m.what), func(t *testing.T) {
		c.server.Nodes[0].RestoreCut(t, whole, m.size)
		_, is := c.look(t)
		m.records, m.producers, m.aborted = is.records, is.producers, is.aborted
		if i > 0 {
			before := c.moments[i-1].records
			if len(before) > len(m.records) || !slices.EqualFunc(before, m.records[:len(before)], sameRecord) {
				t.Errorf("%d records became %d", len(before), len(m.records))
			}
		}
	})
}

func sameRecord(a, b record.Record) bool {
	return a.Offset == b.Offset && a.Timestamp == b.Timestamp && string(a.Value) == string(b.Value)
}

// cut cuts the file between a moment and the next, and looks that nothing else is there than at that moment. The
// next leader goes on from there, under its own epoch.
func (c *cutBed) cut(whole redistest.Snapshot, size int64, i int) bool {
	want := c.moments[i]
	return c.Run(fmt.Sprintf("%d of %s", size-want.size, c.moments[min(i+1, len(c.moments)-1)].what), func(t *testing.T) {
		c.server.Nodes[0].RestoreCut(t, whole, size)
		b, is := c.look(t)
		if !slices.EqualFunc(is.records, want.records, sameRecord) {
			t.Fatalf("%d records are there, not %d", len(is.records), len(want.records))
		}
		if is.producers != want.producers || !slices.Equal(is.aborted, want.aborted) {
			t.Fatalf("the producers are %s, aborted is %v, not %s, %v", is.producers, is.aborted, want.producers, want.aborted)
		}
		_, end := b.log.Bounds()
		if at := b.append(b.log, b.valued("next")); at.BaseOffset != end {
			t.Errorf("the next record is at %d, not %d", at.BaseOffset, end)
		}
		if epochs := b.log.Epochs(); epochs[len(epochs)-1].Epoch != 2 || epochs[len(epochs)-1].Start > end {
			t.Errorf("the epochs are %+v", epochs)
		}
		b.wantSound()
	})
}
