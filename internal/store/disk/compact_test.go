package disk

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// rewritten counts the segments that are being written anew from now on.
func (b *bed) rewritten() func() int {
	n := 0
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.HasSuffix(op.Name, cleanedSuffix) {
			n++
		}
		return nil
	})
	return func() int { return n }
}

// compact compacts all closed segments, at an hour.
func (b *bed) compact(hour int) {
	b.Helper()
	b.must(b.log.Compact(context.Background(), store.Compaction{
		Now: time.UnixMilli(int64(hour) * time.Hour.Milliseconds()), NextOffset: 1 << 40, DeleteRetention: 24 * time.Hour,
	}))
}

// bedWithTombstone has a log of which the closed segments hold a tombstone, with
// a timestamp of long ago, and a value.
func bedWithTombstone(t *testing.T) *bed {
	b := newBed(t, store.LogConfig{})
	batch, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: 1, Key: []byte("gone")}})
	b.must(err)
	_, err = b.log.Append(context.Background(), batch)
	b.must(err)
	b.must(b.put("stays", "here"))
	b.roll()
	return b
}

func TestARestartDoesNotCompactAgain(t *testing.T) {
	for name, restart := range map[string]func(*bed){
		"clean": func(b *bed) { b.must(b.st.Close()); b.start() },
		"crash": func(b *bed) { b.crash((*vfs.Mem).CrashStrict) },
	} {
		t.Run(name, func(t *testing.T) {
			b := bedWithTombstone(t)
			b.compact(100)
			restart(b)
			count := b.rewritten()
			b.compact(101)
			assert.Equal(t, count(), 0, "segments were compacted again")
			b.must(b.put("stays", "newer"))
			b.roll()
			b.compact(123)
			b.wantValues(deleted, "newer")
			// The tombstone's day began at hour 100, before the restart.
			b.must(b.put("other", "one"))
			b.roll()
			b.compact(124)
			b.wantValues("newer", "one")
		})
	}
}

func TestADamagedNoteOfCompactionMeansThatNothingIsClean(t *testing.T) {
	for name, content := range map[string]string{
		"torn":           "2@36",
		"wrong checksum": "2@360000000\n00000000\n",
		"nonsense":       "never\n" + "6f9bd53d\n",
		"empty":          "",
		"zeros":          strings.Repeat("\x00", 30),
	} {
		t.Run(name, func(t *testing.T) {
			b := bedWithTombstone(t)
			b.compact(100)
			b.must(b.st.Close())
			note := path.Join(worldRoot, "orders-0", cleanedFile)
			b.must(b.fs.Remove(note))
			f, err := b.fs.Create(note)
			b.must(err)
			_, err = f.WriteAt([]byte(content), 0)
			b.must(err)
			b.must(f.Close())
			b.start()
			count := b.rewritten()
			b.compact(200)
			assert.True(t, count() != 0, "the log passes for clean")
			b.wantValues(deleted, "here") // The tombstone's day begins again.
		})
	}
}

// A note must not say more than the log holds: what is in the active segment
// was never compacted.
func TestTheActiveSegmentIsNeverTakenForClean(t *testing.T) {
	b := bedWithTombstone(t)
	b.must(b.put("stays", "newer"))
	l := b.log.(*handle).log
	l.cleaned = store.Cleaned{{NextOffset: 500, At: 1}}
	l.writeCleaned()
	b.crash((*vfs.Mem).CrashKeepAll)
	if got := b.log.(*handle).cleaned.NextOffset(); got != 2 {
		t.Errorf("clean up to %d, but the active segment begins at 2", got)
	}
}

func TestMaxCompactionLagClosesTheActiveSegment(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.put("key", "old")) // At 1000 ms, as are all records here.
	b.must(b.put("key", "new"))
	b.must(b.put("key", "not to be seen yet"))
	compact := func(now int64, next int64) {
		t.Helper()
		b.must(b.log.Compact(context.Background(), store.Compaction{
			Now: time.UnixMilli(now), NextOffset: next, MinDirtyRatio: 0.5, MaxLag: time.Minute,
		}))
	}
	compact(61_000, 3)
	b.wantValues("old", "new", "not to be seen yet")
	compact(61_001, 2)
	b.wantValues("old", "new", "not to be seen yet")
	if got := b.names(); len(got) != 1 {
		t.Errorf("a segment that cannot be compacted yet was closed: %v", got)
	}
	compact(61_001, 3)
	b.wantValues("not to be seen yet")
	// An empty active segment is not closed again and again.
	before := fmt.Sprint(b.names())
	compact(1<<40, 3)
	if after := fmt.Sprint(b.names()); after != before {
		t.Errorf("files were %s, are %s", before, after)
	}
}

// The lag of a segment is that of its first record, whatever came after, also
// when the log was opened again and that record must be looked up.
func TestMaxCompactionLagIsThatOfTheOldestDirtyRecord(t *testing.T) {
	for _, again := range []bool{false, true} {
		b := newBed(t, store.LogConfig{})
		for i := range 20 {
			b.must(b.put(fmt.Sprint("clean", i), "v"))
		}
		b.roll()
		b.compact(0)
		b.must(b.put("key", "old"))
		late, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: 1 << 30, Key: []byte("key"), Value: []byte("new")}})
		b.must(err)
		_, err = b.log.Append(context.Background(), late)
		b.must(err)
		b.roll()
		if again {
			b.must(b.st.Close())
			b.start()
		}
		b.must(b.log.Compact(context.Background(), store.Compaction{
			Now: time.UnixMilli(70_000), NextOffset: 100, MinDirtyRatio: 0.9, MaxLag: time.Minute,
		}))
		assert.False(t, slices.Contains(b.values(), "old"), "what is late was not compacted (opened again: %v)", again)
	}
}
