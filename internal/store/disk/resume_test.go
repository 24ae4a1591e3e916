package disk

import (
	"fmt"
	"path"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// indexedBed has a log whose active segment is indexed each time a few batches were synced.
func indexedBed(t *testing.T) *bed {
	return newBedWith(t, store.LogConfig{IndexInterval: 100}, Options{noJournal: true, inline: true, indexEach: 200})
}

func (b *bed) segmentFile() vfs.File {
	b.Helper()
	f, err := b.fs.Open(b.log.(*handle).active().path)
	b.must(err)
	b.Cleanup(func() { _ = f.Close() })
	return f
}

// indexedTo is how much of the active segment is indexed.
func (b *bed) indexedTo() int64 {
	l := b.log.(*handle).log
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	return l.indexed
}

// What was synced is not read again: so damage to it is not found by the start.
func TestAStartAfterAKillReadsWhatWasNotSynced(t *testing.T) {
	b := indexedBed(t)
	for i := range 20 {
		b.store(fmt.Sprint(i))
	}
	b.must(b.append("not synced"))
	_, err := b.segmentFile().WriteAt([]byte("damage"), 70)
	b.must(err)
	b.crash((*vfs.Mem).CrashKeepAll)
	if _, end := b.log.Bounds(); end != 21 {
		t.Errorf("the log ends at %d", end)
	}
	b.store("more")
	if _, end := b.log.Bounds(); end != 22 {
		t.Errorf("the log ends at %d", end)
	}
}

// An index is not used if what it was made of is not there.
func TestAnIndexOfOtherBatchesIsNotUsed(t *testing.T) {
	for name, change := range map[string]func(*bed, vfs.File, int64) error{
		"the last batch is another": func(_ *bed, f vfs.File, size int64) error {
			_, err := f.WriteAt([]byte("damage"), size-6)
			return err
		},
		"it is longer": func(_ *bed, f vfs.File, size int64) error { return f.Truncate(size - 1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := indexedBed(t)
			for i := 0; b.indexedTo() < 1000; i++ {
				b.store(fmt.Sprint(i))
			}
			_, end := b.log.Bounds()
			b.must(change(b, b.segmentFile(), b.indexedTo()))
			b.crash((*vfs.Mem).CrashKeepAll)
			if _, got := b.log.Bounds(); got != end-1 {
				t.Errorf("the log ends at %d, not at %d", got, end-1)
			}
			if _, err := b.fs.Stat(path.Join(worldRoot, "orders-0", "00000000000000000000.index")); err == nil {
				t.Error("the index is still there")
			}
			b.store("more")
			b.crash((*vfs.Mem).CrashStrict)
			if got := b.values(); len(got) != int(end) || got[end-1] != "more" {
				t.Errorf("the log holds %v", got)
			}
		})
	}
}

func TestALargeSegmentIsIndexedLessOften(t *testing.T) {
	l := &log{store: &Store{indexEach: 8}}
	for _, c := range []struct{ indexed, after int64 }{{0, 8}, {8, 8}, {16, 16}, {32, 32}, {64, 32}, {128, 32}, {256, 64}} {
		l.indexed = c.indexed
		assert.Equal(t, l.indexAfter(), c.after, "of %d, the next after", c.indexed)
	}
}
