package disk

import (
	"fmt"
	"path"
	"testing"
	"testing/synctest"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// busyBed is a store of which little is in the logs' own files, durably: the journal has
// the rest. One log has something that is nowhere durable.
func busyBed(t *testing.T) *bed {
	b := newBedWith(t, store.LogConfig{}, Options{boot: "first", inline: true})
	for i := range 8 {
		l := b.open(store.TopicPartition{Topic: "t", Partition: int32(i)}, b.st)
		for range 3 {
			b.appendTo(l, fmt.Sprint("flushed ", i))
			b.must(flush(l))
		}
	}
	b.appendTo(b.log, "not flushed")
	return b
}

func (b *bed) appendTo(l store.Log, value string) {
	b.Helper()
	_, err := l.Append(b.Context(), sample(1, value))
	b.must(err)
}

// wantAll demands that everything of busyBed is there.
func (b *bed) wantAll(notFlushed bool) {
	b.Helper()
	for i := range 8 {
		if _, end := b.open(store.TopicPartition{Topic: "t", Partition: int32(i)}, b.st).Bounds(); end != 3 {
			b.Errorf("t-%d ends at %d, acknowledged were 3 records", i, end)
		}
	}
	if _, end := b.log.Bounds(); notFlushed && end != 1 {
		b.Errorf("what was written and not flushed is lost: the log ends at %d", end)
	}
}

// syncs counts the syncs that fn causes.
func (b *bed) syncs(fn func()) (n int) {
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync || op.Kind == vfs.OpSyncDir {
			n++
		}
		return nil
	})
	defer b.fail(nil)
	fn()
	return n
}

func TestQuickStopSyncsNothing(t *testing.T) {
	b := busyBed(t)
	if n := b.syncs(func() { b.must(b.st.Close()) }); n != 0 {
		t.Errorf("the stop made %d syncs", n)
	}
}

// What a write that failed has left is cut off, which only a sync makes durable: without one
// it could come back with the power.
func TestQuickStopSyncsALogThatWasCutBack(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{boot: "first", inline: true})
	b.must(b.append("good"))
	b.must(flush(b.log))
	b.fail(failing(vfs.OpWrite, ".log"))
	assert.Error(t, b.append("refused"), "the write does not fail")
	b.fail(nil)
	synced := false
	b.fail(func(op vfs.Op) error {
		synced = synced || op.Kind == vfs.OpDatasync && path.Ext(op.Name) == logSuffix
		return nil
	})
	b.must(b.st.Close())
	assert.True(t, synced, "the log is left as it is")
	b.fail(nil)
	b.start()
	b.wantValues("good")
}

// A note would have the next start trust every log: where one could not be ended, or was not
// opened since a crash, there is none.
func TestQuickStopLeavesNoNoteOfWhatItDoesNotKnow(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{boot: "first", inline: true})
	b.must(b.append("good"))
	b.must(flush(b.log))
	b.fail(failing(vfs.OpWrite, ".log"))
	assert.Error(t, b.append("refused"), "the write does not fail")
	b.fail(failing(vfs.OpDatasync, ".log"))
	assert.Error(t, b.st.Close(), "the stop does not fail")
	b.fail(nil)
	b.start()
	assert.False(t, b.st.WasClean(), "a stop that failed counts as a clean one")
	b.wantValues("good")
	b.crash((*vfs.Mem).CrashKeepAll)
	b.must(b.st.Close())
	b.start()
	assert.True(t, b.st.WasClean(), "every log was opened, and the stop counts as none")
	b.tp.Topic = "others" // The log of the orders is not opened.
	b.crash((*vfs.Mem).CrashKeepAll)
	b.must(b.st.Close())
	b.start()
	assert.False(t, b.st.WasClean(), "a log that was not scanned since a crash counts as good")
}

// A start goes on where a quick stop left off: it syncs the data folder and what had been
// written and not flushed, but none of the other logs.
func TestStartAfterQuickStopSettlesNothing(t *testing.T) {
	b := busyBed(t)
	b.must(b.st.Close())
	few := b.syncs(b.start)
	assert.MustTrue(t, b.st.WasClean(), "the start does not know of the stop")
	assert.Equal(t, b.syncs(func() { b.wantAll(true) }), 0, "syncs to open logs that the journal")
	assert.True(t, few <= 12, "the start made %d syncs", few)
}

// What was written and not flushed is made durable when its log is opened: whoever wrote it
// without waiting for that relies on it being so in a while.
func TestOpeningALogThatWasLeftFlushesIt(t *testing.T) {
	b := busyBed(t)
	b.must(b.st.Close())
	b.start()
	b.opts.boot = "second"
	b.crash((*vfs.Mem).CrashStrict)
	b.wantAll(true)
}

// Without a journal nothing but the names of its folder and file finds what a log holds.
func TestANewLogThatWasLeftHasADurableNameOnceItIsFlushed(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{boot: "first", inline: true, noJournal: true})
	b.appendTo(b.log, "not flushed")
	b.must(b.st.Close())
	b.start()
	b.must(flush(b.log))
	b.opts.boot = "second"
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("not flushed")
}

// Whoever waits for a flush when the stop begins is told that it is done, not that the store
// is closed.
func TestAQuickStopAnswersWhoWaitsForAFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBedWith(t, store.LogConfig{}, Options{boot: "first", noJournal: true})
		release, first, second := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		b.must(b.append("first"))
		b.log.Flush(func(err error) {
			first <- err
			<-release // The next flush has to wait for this one to end.
		})
		b.must(<-first)
		b.must(b.append("second"))
		b.log.Flush(func(err error) { second <- err })
		closed := make(chan error, 1)
		go func() { closed <- b.st.Close() }()
		synctest.Wait()
		close(release)
		b.must(<-closed)
		assert.NoError(t, (<-second), "a flush that was asked for before the stop")
	})
}

// However often the broker was stopped, the power takes nothing that was acknowledged.
func TestPowerLossAfterQuickStops(t *testing.T) {
	b := busyBed(t)
	for range 3 {
		b.must(b.st.Close())
		b.start()
	}
	b.must(b.st.Close())
	b.opts.boot = "second"
	b.crash((*vfs.Mem).CrashStrict)
	assert.False(t, b.st.WasClean(), "a start after a loss of power counts as one after a clean stop")
	b.wantAll(true) // A start has flushed it.
}

// Files of the journal are told apart, and put in order, by the numbers of their uses.
func TestUsesOfTheJournalAreCountedOnAfterAQuickStop(t *testing.T) {
	b := busyBed(t)
	b.must(b.st.Close())
	before := b.st.sync.journal.uses
	b.start()
	if got := b.st.sync.journal.nextUse(); got != before+1 {
		t.Errorf("use %d follows %d", got, before)
	}
}

// The journal is used on, and settles logs that no one has opened since.
func TestJournalSettlesLogsThatWereLeft(t *testing.T) {
	b := busyBed(t)
	b.must(b.st.Close())
	b.start()
	j := b.st.sync.journal
	j.round.Lock()
	j.mu.Lock()
	j.retire()
	j.mu.Unlock()
	j.round.Unlock()
	assert.MustTrue(t, j.tidy(), "not settled")
	b.must(b.fs.RemoveAll(path.Join(worldRoot, journalDir)))
	b.must(b.fs.SyncDir(worldRoot))
	b.opts.boot = "second"
	b.crash((*vfs.Mem).CrashStrict)
	b.wantAll(false)
}

func TestDeletedLogThatWasLeftStaysDeleted(t *testing.T) {
	b := busyBed(t)
	b.must(b.st.Close())
	b.start()
	tp := store.TopicPartition{Topic: "t", Partition: 3}
	b.must(b.st.Delete(t.Context(), tp))
	b.opts.boot = "second"
	b.crash((*vfs.Mem).CrashStrict)
	if _, end := b.open(tp, b.st).Bounds(); end != 0 {
		t.Errorf("it is back, up to %d", end)
	}
}

// A note is for the store and the kernel that it was made for. If either is another, the
// start is one after a crash.
func TestNoteOfAQuickStopThatDoesNotFit(t *testing.T) {
	for name, change := range map[string]func(*bed){
		"another boot": func(b *bed) { b.opts.boot = "second" },
		"no boot":      func(b *bed) { b.opts.boot = "" },
		"a log is longer": func(b *bed) {
			f, err := b.fs.Open(segmentPath(path.Join(worldRoot, "t-1"), 0))
			b.must(err)
			size, err := f.Size()
			b.must(err)
			_, err = f.WriteAt([]byte("x"), size)
			b.must(err)
			b.must(f.Close())
		},
		"a log has another segment": func(b *bed) {
			f, err := b.fs.Create(segmentPath(path.Join(worldRoot, "t-1"), 3))
			b.must(err)
			b.must(f.Close())
		},
		"the journal is gone": func(b *bed) {
			b.must(b.fs.Rename(path.Join(worldRoot, journalDir), path.Join(worldRoot, replayingDir)))
		},
		"a file of the journal is shorter": func(b *bed) {
			f, err := b.fs.Open(journalPath(path.Join(worldRoot, journalDir), 0))
			b.must(err)
			size, err := f.Size()
			b.must(err)
			b.must(f.Truncate(size - 1))
			b.must(f.Close())
		},
		"the note is torn": func(b *bed) {
			f, err := b.fs.Open(path.Join(worldRoot, stopFile))
			b.must(err)
			size, err := f.Size()
			b.must(err)
			b.must(f.Truncate(size - 1))
			b.must(f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := busyBed(t)
			b.must(b.st.Close())
			change(b)
			b.start()
			assert.False(t, b.st.WasClean(), "the note was believed")
			b.wantAll(false)
			if _, err := b.fs.Stat(path.Join(worldRoot, stopFile)); err == nil {
				t.Error("the note is still there")
			}
		})
	}
}

// A snapshot that a stop left without a sync is not relied upon when batches go.
func TestSnapshotOfAQuickStopIsSavedBeforeBatchesGo(t *testing.T) {
	b := newBedWith(t, store.LogConfig{SegmentBytes: 200}, Options{boot: "first", inline: true})
	for i := range 4 {
		b.produce(7, int32(i))
	}
	b.must(flush(b.log))
	_, end := b.log.Bounds()
	ps, _, err := completeProducers(b.log)
	b.must(err)
	b.must(b.log.(store.Leaver).LeaveProducers(t.Context(), ps.List(), end))
	b.must(b.st.Close())
	b.start()
	b.must(b.log.Trim(t.Context(), end))
	b.opts.boot = "second"
	b.crash((*vfs.Mem).CrashStrict)
	b.wantProducer(7, 3)
}

// A clean stop makes durable what was appended to a log that was clean when it was opened.
func TestCleanStopAfterACleanStart(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.appendTo(b.log, "before")
	b.must(b.st.Close())
	b.start()
	b.appendTo(b.log, "after")
	b.must(b.st.Close())
	b.crash((*vfs.Mem).CrashStrict)
	if _, end := b.log.Bounds(); end != 2 {
		t.Errorf("the log ends at %d, and had 2 records when the store was closed", end)
	}
}
