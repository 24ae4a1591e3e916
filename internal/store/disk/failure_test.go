package disk

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

func TestAFailedWriteStoresNothingAndTheNextOneWorks(t *testing.T) {
	failures := map[string]error{
		"nothing written":  syscall.EIO,
		"half written":     vfs.PartialWrite{N: 40, Err: syscall.EIO},
		"all but reported": vfs.PartialWrite{N: 1 << 20, Err: syscall.EIO},
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, store.LogConfig{})
			b.must(b.append("one"))
			b.fail(func(op vfs.Op) error {
				if op.Kind == vfs.OpWrite {
					return failure
				}
				return nil
			})
			for range 3 {
				b.want(b.append("a long value that is refused"), store.ErrStorage)
				b.wantValues("one")
			}
			b.fail(nil)
			b.must(b.append("two"))
			b.wantDurable("one", "two")
		})
	}
}

func TestAWriteThatCannotBeUndoneFailsTheLogUntilItIsOpenedAgain(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("one"))
	b.fail(func(op vfs.Op) error {
		switch op.Kind {
		case vfs.OpWrite:
			return vfs.PartialWrite{N: 1 << 20, Err: syscall.EIO}
		case vfs.OpTruncate:
			return syscall.EIO
		}
		return nil
	})
	b.want(b.append("refused"), store.ErrStorage)
	b.fail(nil)
	b.want(b.append("two"), store.ErrFailed)
	b.want(b.log.Trim(context.Background(), 1), store.ErrFailed)
	b.wantValues("one")
	b.reopen()
	b.wantValues("one")
	b.must(b.append("two"))
	b.wantValues("one", "two")
}

func TestAFullDiskRefusesAppendsUntilThereIsRoom(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 500})
	var want []string
	for i := range 10 {
		want = append(want, fmt.Sprintf("value %d", i))
		b.must(b.append(want[i]))
	}
	b.fs.SetCapacity(0)
	for range 3 {
		err := b.append("refused " + strings.Repeat("x", 100))
		b.want(err, store.ErrStorage)
		b.want(err, syscall.ENOSPC)
		b.wantValues(want...)
	}
	// To give room back, the log must open and trim without any.
	b.crash((*vfs.Mem).CrashKeepAll)
	b.wantValues(want...)
	b.fs.SetCapacity(-1)
	want = append(want, "more")
	b.must(b.append("more"))
	b.wantDurable(want...)
}

func TestAFailedSyncFailsTheLogAndOpeningItDropsWhatWasNotDurable(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("durable"))
	b.must(flush(b.log))
	b.must(b.append("in doubt"))
	b.fail(failing(vfs.OpDatasync, logSuffix))
	b.want(flush(b.log), store.ErrStorage)
	b.fail(nil)
	// The kernel would say that the next sync succeeds. It must not be asked.
	b.want(flush(b.log), store.ErrFailed)
	b.want(b.append("refused"), store.ErrFailed)
	b.wantValues("durable", "in doubt")

	old := b.log
	b.reopen()
	b.wantValues("durable")
	b.want(flush(old), store.ErrClosed)
	_, err := old.Append(context.Background(), one("k", "v"))
	b.want(err, store.ErrClosed)
	b.must(b.append("after"))
	b.must(flush(b.log))
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("durable", "after")
}

func TestAFailedSyncIsNotForgottenWhenOpeningFailsToo(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("durable"))
	b.must(flush(b.log))
	b.must(b.append("in doubt"))
	b.fail(failing(vfs.OpDatasync, logSuffix))
	b.want(flush(b.log), store.ErrStorage)
	for range 2 {
		_, err := b.st.Open(context.Background(), b.tp, 0, b.cfg)
		b.want(err, store.ErrStorage)
	}
	b.fail(nil)
	b.reopen()
	b.wantValues("durable")
}

func TestASyncThatFailsWhileAFailedLogIsOpenedCostsWhatItShouldHaveKept(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("durable"))
	b.must(flush(b.log))
	b.must(b.append("written"))
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite || op.Kind == vfs.OpTruncate {
			return syscall.EIO
		}
		return nil
	})
	b.want(b.append("refused"), store.ErrStorage)
	b.fail(failing(vfs.OpDatasync, logSuffix))
	_, err := b.st.Open(context.Background(), b.tp, 0, b.cfg)
	b.want(err, store.ErrStorage)
	b.fail(nil)
	b.reopen()
	b.must(b.append("after"))
	b.wantDurable("durable", "after")
}

func TestAFailedSyncIsNotForgottenWhenTheStoreCloses(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("durable"))
	b.must(flush(b.log))
	b.must(b.append("in doubt"))
	b.fail(failing(vfs.OpDatasync, logSuffix))
	b.want(flush(b.log), store.ErrStorage)
	b.fail(nil)
	b.want(b.st.Close(), store.ErrFailed)
	b.start()
	b.wantValues("durable")
	b.must(b.append("after"))
	b.must(flush(b.log))
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("durable", "after")
}

func TestAFailedSyncDuringRecoveryIsMadeUpFor(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("written"))
	b.crash(func(m *vfs.Mem) *vfs.Mem { return m.CrashKeepAll() })
	b.must(b.append("more"))
	old := b.st
	b.fs = b.fs.CrashKeepAll()
	_ = old.Close()
	st, err := Open(worldRoot, Options{FS: b.fs})
	b.must(err)
	b.fs.SetHook(failing(vfs.OpDatasync, logSuffix))
	_, err = st.Open(context.Background(), b.tp, 0, b.cfg)
	b.want(err, store.ErrStorage)
	b.fs.SetHook(nil)
	b.st, b.log = st, b.open(b.tp, st)
	b.wantValues("written", "more")
	b.must(b.append("after"))
	b.must(flush(b.log))
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("written", "more", "after")
}

// After a roll has failed, its new segment may be on disk or not. If the old
// one took more batches then, recovery would take it for closed and complete.
func TestAfterAFailedRollNoBatchGoesToTheOldSegment(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 300})
	for _, value := range []string{"one", "two", "three"} {
		b.must(b.append(value))
	}
	b.must(flush(b.log))
	b.fail(failing(vfs.OpSyncDir, "orders-0"))
	b.want(b.append(strings.Repeat("l", 200)), store.ErrStorage)
	b.fail(nil)
	b.must(b.append("four")) // It would fit into the old segment.
	b.must(flush(b.log))
	b.wantValues("one", "two", "three", "four")
	for _, crash := range crashes(10) {
		b.crash(crash.do)
		b.wantValues("one", "two", "three", "four")
	}
}

func TestALogThatCannotBeDeletedGoesOn(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("one"))
	b.fail(failing(vfs.OpRename, "orders-0"))
	b.want(b.st.Delete(context.Background(), b.tp), store.ErrStorage)
	b.fail(nil)
	b.must(b.append("two"))
	b.wantValues("one", "two")
	b.must(b.st.Delete(context.Background(), b.tp))
	b.want(b.append("three"), store.ErrClosed)
}

func TestADeleteThatWasRepeatedIsDurable(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.append("one"))
	b.must(flush(b.log))
	b.fail(failing(vfs.OpSyncDir, "data"))
	b.want(b.st.Delete(context.Background(), b.tp), store.ErrStorage)
	b.fail(nil)
	b.must(b.st.Delete(context.Background(), b.tp))
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues()
}

func TestAFailedCompactionLeavesTheLogAsItWas(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 300})
	want := []string{"never superseded"}
	b.must(b.put("own key", want[0]))
	for i := 1; i < 20; i++ {
		want = append(want, fmt.Sprintf("value %d", i))
		b.must(b.append(want[i]))
	}
	compact := func() error {
		_, end := b.log.Bounds()
		return b.log.Compact(context.Background(), store.Compaction{Now: time.UnixMilli(1 << 40), NextOffset: end})
	}
	// Before the commit nothing has changed, and nothing is left behind.
	for _, kind := range []vfs.OpKind{vfs.OpCreate, vfs.OpWrite, vfs.OpDatasync} {
		before := fmt.Sprint(b.names())
		b.fail(failing(kind, cleanedSuffix))
		b.want(compact(), store.ErrStorage)
		b.fail(nil)
		if after := fmt.Sprint(b.names()); after != before {
			t.Fatalf("%v failed: files were\n%v, are\n%v", kind, before, after)
		}
		b.wantValues(want...)
	}
	// After it the log must be opened again, but still reads.
	b.fail(failing(vfs.OpRemove, logSuffix))
	b.want(compact(), store.ErrStorage)
	b.fail(nil)
	if _, err := readContent(b.log); err != nil {
		t.Fatal(err)
	}
	b.want(compact(), store.ErrFailed)
	b.reopen()
	b.must(compact())
	content, err := readContent(b.log)
	b.must(err)
	assert.True(t, len(content) != 0 && len(content) < len(want), "%d records after compaction of %d", len(content), len(want))
	for _, name := range b.names() {
		assert.True(t, !strings.HasSuffix(name, swapSuffix) && !strings.HasSuffix(name, cleanedSuffix), "%s is left", name)
	}
}

func TestAnIndexThatCannotBeWrittenStopsNothing(t *testing.T) {
	b := newBed(t, store.LogConfig{SegmentBytes: 300})
	b.fail(failing(vfs.OpCreate, indexSuffix+tmpSuffix))
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("value %d", i))
		b.must(b.append(want[i]))
	}
	b.wantValues(want...)
	b.must(b.st.Close())
	b.start()
	assert.True(t, b.st.WasClean(), "the stop was clean")
	b.wantValues(want...)
	b.fail(nil)
	b.crash((*vfs.Mem).CrashKeepAll)
	b.wantValues(want...)
}
