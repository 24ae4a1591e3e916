package disk

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

func TestAnotherBrokerCannotTakeTheFolder(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	if _, err := Open(worldRoot, Options{FS: b.fs}); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open: %v", err)
	}
	b.must(b.st.Close())
	b.start()
}

// A clean stop says that no log needs a scan. A log that was torn by the crash
// before, and not opened since, does.
func TestAStopIsNotCleanWhileALogWaitsForItsScan(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	other := store.TopicPartition{Topic: "other"}
	b.must(b.append("one"))
	torn := b.open(other, b.st)
	_, err := torn.Append(context.Background(), one("k", "whole"))
	b.must(err)
	b.must(flush(torn))
	f, err := b.fs.Open(torn.(*handle).segments[0].path)
	b.must(err)
	size, err := f.Size()
	b.must(err)
	_, err = f.WriteAt(one("k", "torn")[:50], size)
	b.must(err)
	b.must(f.Close())
	b.crash((*vfs.Mem).CrashKeepAll) // It opens one of the two.
	b.must(b.st.Close())
	b.start()
	assert.False(t, b.st.WasClean(), "the stop counts as clean, but a log was not scanned")
	b.log = b.open(other, b.st)
	b.wantValues("whole")
	b.must(b.append("after"))
	b.wantValues("whole", "after")
	b.must(b.st.Close())
	b.start()
	assert.True(t, b.st.WasClean(), "all logs were scanned, but the stop does not count as clean")
}

// Compaction gives a name to several segments in turn. If the index of one were
// taken for that of another, which size alone does not prevent, readers would
// land in the middle of batches.
func TestAnIndexIsNotTakenForThatOfAnotherSegmentOfTheSameSize(t *testing.T) {
	b := newBed(t, store.LogConfig{IndexInterval: 1})
	var want []string
	// Two rounds of the same keys and sizes, but in another order.
	for round, order := range [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {7, 6, 5, 4, 3, 2, 1, 0}} {
		for _, i := range order {
			value := fmt.Sprint(round, i, strings.Repeat("v", 10*i))
			b.must(b.put(fmt.Sprint("key", i), value))
			if round == 1 {
				want = append(want, value)
			}
		}
		b.roll()
	}
	// A reader keeps the old segment's file, and asks for its index when the
	// new one has taken its name.
	h := b.log.(*handle)
	old := h.segments[0]
	f, err := h.acquire(old)
	b.must(err)
	defer h.release(f)
	v := old.view()
	b.must(b.log.Compact(context.Background(), store.Compaction{Now: time.UnixMilli(1 << 40), NextOffset: 16}))
	joined := h.segments[0]
	assert.MustTrue(t, joined != old && joined.sum.size == old.sum.size, "the test wants a new segment of %d bytes, got %d", old.sum.size, joined.sum.size)
	entries, err := h.entries(f, v)
	b.must(err)
	assert.Equal(t, len(entries), 8, "index entries for 8 batches")
	for _, e := range entries {
		header := make(record.Batch, record.HeaderSize)
		_, err := f.ReadAt(header, int64(e.pos))
		b.must(err)
		if _, err := readBatch(f, int64(e.pos), header); err != nil {
			t.Errorf("index entry at %d: %v", e.pos, err)
		}
	}
	b.wantValues(want...)
}

func TestCallbacksOfFlushMayUseTheLog(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("one"))
	called := make(chan error, 1)
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return errors.New("no sync before the store closes")
		}
		return nil
	})
	b.log.Flush(func(error) { called <- b.append("refused") })
	b.want(<-called, store.ErrFailed)
	b.log.Flush(func(error) { called <- b.append("refused") })
	_ = b.st.Close()
	assert.Error(t, (<-called), "appended to a closed log")
}

// While a compaction stands still, new owners must not wait for it; whoever
// wants to end the log must not wait for more than its current step.
func TestCompactionGivesWay(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 300})
	for i := range 60 {
		b.must(b.put(fmt.Sprint("key", i%3), fmt.Sprint("value", i)))
	}
	standing, goOn := make(chan struct{}), make(chan struct{})
	var created atomic.Int32
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.HasSuffix(op.Name, cleanedSuffix) && created.Add(1) == 2 {
			close(standing)
			<-goOn
		}
		return nil
	})
	compacted := make(chan error, 1)
	l := b.log
	go func() {
		compacted <- l.Compact(context.Background(), store.Compaction{Now: time.UnixMilli(1 << 40), NextOffset: 60})
	}()
	<-standing
	b.reopen()
	b.must(b.append("meanwhile"))
	// Retention of other logs comes after that of this one.
	b.must(b.log.Retain(context.Background(), store.Retention{MaxAge: -1, MaxBytes: 0, NextOffset: 60}))
	other := b.open(store.TopicPartition{Topic: "other"}, b.st)
	_, err := other.Append(context.Background(), one("k", "v"))
	b.must(err)

	removed := make(chan error, 1)
	go func() { removed <- b.st.Delete(context.Background(), b.tp) }()
	for b.log.(*handle).halting.Load() == 0 {
		runtime.Gosched()
	}
	close(goOn)
	b.want(<-compacted, store.ErrClosed)
	b.must(<-removed)
	if n := created.Load(); n > 2 {
		t.Errorf("compaction went on to write %d files", n)
	}
}

func TestOpeningOneLogDoesNotWaitForAnother(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("one"))
	b.crash((*vfs.Mem).CrashKeepAll)
	b.must(b.st.Close())
	standing, goOn := make(chan struct{}), make(chan struct{})
	st, err := Open(worldRoot, Options{FS: b.fs})
	b.must(err)
	b.st = st
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpRead && strings.HasSuffix(op.Name, "orders-0") {
			close(standing)
			<-goOn
			b.fail(nil)
		}
		return nil
	})
	opened := make(chan store.Log)
	go func() { opened <- b.open(b.tp, st) }()
	<-standing
	b.open(store.TopicPartition{Topic: "other"}, st)
	b.must(st.Delete(context.Background(), store.TopicPartition{Topic: "third"}))
	close(goOn)
	b.log = <-opened
	b.wantValues("one")
}

// Retention by time must get past a segment that compaction emptied, which has
// no timestamp of its own.
func TestRetentionDropsEmptySegments(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 1})
	for range 2 {
		b.must(b.append("superseded"))
	}
	for i := range 3 {
		b.must(b.put(fmt.Sprint("key", i), "value"))
	}
	b.must(b.append("newest"))
	b.must(b.append("active"))
	_, end := b.log.Bounds()
	b.must(b.log.Compact(context.Background(), store.Compaction{Now: time.UnixMilli(1 << 40), NextOffset: end}))
	if first := b.log.(*handle).segments[0]; first.sum.size != 0 {
		t.Fatalf("the test wants an empty segment first, not one of %d bytes", first.sum.size)
	}
	b.must(b.log.Retain(context.Background(), store.Retention{Now: time.UnixMilli(1 << 40), MaxAge: time.Hour, MaxBytes: -1, NextOffset: end}))
	b.wantValues()
}

func TestRetentionDropsWhatATrimLeftBehind(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 1})
	for i := range 5 {
		b.must(b.append(fmt.Sprint("value", i)))
	}
	b.must(flush(b.log))
	b.fail(failing(vfs.OpRemove, indexSuffix))
	b.want(b.log.Trim(context.Background(), 3), store.ErrStorage)
	b.fail(nil)
	b.crash((*vfs.Mem).CrashKeepAll)
	b.wantValues("value3", "value4")
	before := b.log.Size()
	b.must(b.log.Retain(context.Background(), store.Retention{Now: time.UnixMilli(1), MaxAge: -1, MaxBytes: -1, NextOffset: 5}))
	b.wantValues("value3", "value4")
	if after := b.log.Size(); after >= before {
		t.Errorf("size is %d, was %d", after, before)
	}
}

func TestEpochsAfterTrimAreTheSameAfterReopening(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	for epoch := range int32(4) {
		l, err := b.st.Open(context.Background(), b.tp, epoch, b.cfg)
		b.must(err)
		b.log = l
		b.must(b.append("one"))
		b.must(b.append("two"))
	}
	b.must(b.log.Trim(context.Background(), 3))
	want := fmt.Sprint(b.log.Epochs())
	b.must(b.st.Close())
	st, err := Open(worldRoot, Options{FS: b.fs})
	b.must(err)
	b.st = st
	l, err := st.Open(context.Background(), b.tp, 3, b.cfg)
	b.must(err)
	if got := fmt.Sprint(l.Epochs()); got != want {
		t.Errorf("epochs are %s, were %s", got, want)
	}
}

func TestRetentionLeavesASegmentOpenThatItMayNotDropYet(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("one"))
	b.must(b.append("two"))
	r := expireAll
	r.NextOffset = 1
	b.must(b.log.Retain(context.Background(), r))
	if got := b.names(); len(got) != 1 {
		t.Errorf("files are %v", got)
	}
	r.NextOffset = 2
	b.must(b.log.Retain(context.Background(), r))
	b.wantValues()
}
