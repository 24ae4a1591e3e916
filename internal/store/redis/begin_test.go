package redis

import (
	"errors"
	"testing"
	"time"

	"muster/internal/store"
)

// nearNow says whether an offset stands for an id of the last minute.
func nearNow(offset int64) bool {
	return offset >= millis(time.Now().Add(-time.Minute).UnixMilli(), 0) && offset <= millis(time.Now().UnixMilli()+1000, 0)
}

// wantOutOfRange demands that a stale offset is not taken for the start of the
// log.
func (b *bed) wantOutOfRange(l store.Log, offset int64) {
	b.Helper()
	_, err := l.Read(b.ctx, store.ReadRequest{Offset: offset, NextOffset: 1 << 62, MaxBytes: 1 << 20, MinOne: true})
	if !errors.Is(err, store.ErrOffsetOutOfRange) {
		b.Errorf("reading from offset %d: %v", offset, err)
	}
}

func TestAnEmptyStreamBeginsNow(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	start, end := l.Bounds()
	if start != end || !nearNow(start) {
		t.Fatalf("an empty log goes from %d to %d", start, end)
	}
	if n := b.do("XLEN", b.keys().stream); n != "0" {
		t.Errorf("%s entries are in a new stream", n)
	}
	b.wantOutOfRange(l, 0)
	if id, err := b.try("XADD", b.keys().stream, "5-0", "value", "below the log"); err == nil {
		t.Errorf("an entry %s was added below the log start, where nobody would see it", id)
	}
	l = b.open(2)
	if again, end := l.Bounds(); again != start || end != start {
		t.Errorf("opened again, it goes from %d to %d, not %d", again, end, start)
	}
	b.do("XADD", b.keys().stream, "*", "value", "theirs")
	at := b.append(l, b.valued("ours"))
	if got := b.content(l); len(got) != 2 || got[0].Offset < start || got[1].Offset != at.BaseOffset {
		t.Errorf("records %v of a log that starts at %d", got, start)
	}
	if again, _ := l.Bounds(); again != start {
		t.Errorf("with records it starts at %d, not %d", again, start)
	}
	b.wantOutOfRange(l, start-1)
}

// TestALogThatBeganAtZeroBeginsWithItsFirstRecord opens logs as they were once
// written.
func TestALogThatBeganAtZeroBeginsWithItsFirstRecord(t *testing.T) {
	zero := func(b *bed) { b.do("HSET", b.keys().meta, "start", "0-0") }
	t.Run("with records", func(t *testing.T) {
		b := newBed(t, inStreams)
		at := b.append(b.open(1), b.valued("a"))
		zero(b)
		for epoch := range int32(2) {
			if start, _ := b.open(2 + epoch).Bounds(); start != at.BaseOffset {
				t.Errorf("it starts at %d, not %d", start, at.BaseOffset)
			}
		}
	})
	t.Run("whose first record was deleted", func(t *testing.T) {
		b := newBed(t, inStreams)
		l := b.open(1)
		at := b.append(l, b.valued("a"))
		b.append(l, b.valued("b"))
		b.do("XDEL", b.keys().stream, l.(recordLog).id(at.BaseOffset).String())
		zero(b)
		l = b.open(2)
		if start, _ := l.Bounds(); start != at.BaseOffset {
			t.Errorf("it starts at %d, not %d: who has read up to there goes on with what exists", start, at.BaseOffset)
		}
	})
	t.Run("which a redis client began", func(t *testing.T) {
		b := newBed(t, inStreams)
		l := b.open(1)
		id, err := parseID(b.do("XADD", b.keys().stream, "*", "value", "theirs"))
		must(t, err)
		_, err = l.(store.Refresher).Refresh(b.ctx)
		must(t, err)
		b.append(l, b.valued("ours"))
		zero(b)
		if start, _ := b.open(2).Bounds(); start != millis(int64(id.ms), int64(id.seq)) {
			t.Errorf("it starts at %d, not at %s", start, id)
		}
	})
	t.Run("without records", func(t *testing.T) {
		b := newBed(t, inStreams)
		b.open(1)
		b.do("DEL", b.keys().stream)
		b.do("XGROUP", "CREATE", b.keys().stream, "m", "0", "MKSTREAM")
		b.do("HSET", b.keys().meta, "start", "0", "end", "0")
		l := b.open(2)
		start, end := l.Bounds()
		if start != end || !nearNow(start) {
			t.Errorf("it goes from %d to %d", start, end)
		}
		b.append(l, b.valued("a"))
		if got := b.values(b.open(3)); len(got) != 1 {
			t.Errorf("values %q", got)
		}
		if again, _ := b.log.Bounds(); again != start {
			t.Errorf("then it starts at %d, not %d", again, start)
		}
	})
}

func TestALogOfBatchesBeginsAtZero(t *testing.T) {
	if start, end := newBed(t, inBatches).open(1).Bounds(); start != 0 || end != 0 {
		t.Errorf("an empty log goes from %d to %d", start, end)
	}
}
