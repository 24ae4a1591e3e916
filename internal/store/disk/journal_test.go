package disk

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// smallJournal has a journal of files with four rounds each, from the second flush on.
var smallJournal = Options{inline: true, journalSize: 4 * roundBlock, journaledMost: 1 << 10}

func newJournalBed(t *testing.T) *bed {
	b := newBedWith(t, store.LogConfig{}, smallJournal)
	b.warm()
	return b
}

// warm makes the journal.
func (b *bed) warm() {
	b.Helper()
	l := b.open(store.TopicPartition{Topic: "warm"}, b.st)
	for range 3 {
		_, err := l.Append(context.Background(), one("key", "warm"))
		b.must(err)
		b.must(flush(l))
	}
	assert.MustTrue(b, b.st.sync.journal.count() != 0, "there is no journal")
}

// store appends values to the log, and flushes it after each.
func (b *bed) store(values ...string) {
	b.Helper()
	for _, v := range values {
		b.must(b.append(v))
		b.must(flush(b.log))
	}
}

// counting counts the operations of a kind on names with a suffix from now on.
func (b *bed) counting(kind vfs.OpKind, suffix string) func() int {
	var n atomic.Int64
	b.fail(func(op vfs.Op) error {
		if op.Kind == kind && strings.HasSuffix(op.Name, suffix) {
			n.Add(1)
		}
		return nil
	})
	return func() int { return int(n.Load()) }
}

func TestWhatTheJournalHoldsSurvives(t *testing.T) {
	for _, c := range crashes(3) {
		t.Run(c.name, func(t *testing.T) {
			b := newJournalBed(t)
			var segments, folders atomic.Int64
			b.fail(func(op vfs.Op) error {
				switch {
				case op.Kind == vfs.OpSyncDir:
					folders.Add(1)
				case op.Kind == vfs.OpDatasync && strings.HasSuffix(op.Name, logSuffix):
					segments.Add(1)
				}
				return nil
			})
			b.store("a")
			if segments.Load() > 0 || folders.Load() > 0 {
				t.Errorf("%d segments and %d folders were synced", segments.Load(), folders.Load())
			}
			b.must(b.append("b"))
			b.fail(nil)
			b.crash(c.do)
			if got := b.values(); len(got) == 0 || got[0] != "a" {
				t.Errorf("the log holds %v", got)
			}
			if _, err := b.fs.Stat(path.Join(worldRoot, journalDir)); err == nil {
				t.Error("the journal is still there")
			}
		})
	}
}

func TestManyLogsShareASync(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{journalSize: 20 * 64 * roundBlock}) // None is settled.
	var logs []store.Log
	for i := range int32(64) {
		logs = append(logs, b.open(store.TopicPartition{Topic: "many", Partition: i}, b.st))
	}
	j := b.st.sync.journal
	b.must(j.make(1)) // Else some are synced by themselves before there is a journal.
	segments := b.counting(vfs.OpDatasync, logSuffix)
	var done sync.WaitGroup
	for range 20 {
		for _, l := range logs {
			_, err := l.Append(context.Background(), one("key", "value"))
			b.must(err)
		}
		for _, l := range logs {
			done.Add(1)
			l.Flush(func(err error) {
				assert.NoError(t, err)
				done.Done()
			})
		}
		done.Wait()
	}
	if n := segments(); n > 0 {
		t.Errorf("%d segments were synced", n)
	}
	if j.current.rounds == 0 || j.current.rounds > 20*64/2 {
		t.Errorf("%d rounds for %d flushes", j.current.rounds, 20*64)
	}
}

func TestFilesAreUsedAgainOnceTheirLogsAreSettled(t *testing.T) {
	b := newJournalBed(t)
	segments := b.counting(vfs.OpDatasync, logSuffix)
	for i := range 100 {
		b.store(fmt.Sprint(i))
	}
	j := b.st.sync.journal
	if j.count() > 2 || j.uses < 20 || segments() < 10 || segments() > 40 {
		t.Errorf("%d files, used %d times, and %d syncs of segments", j.count(), j.uses, segments())
	}
	b.fail(nil)
	b.crash((*vfs.Mem).CrashStrict)
	assert.Equal(t, len(b.values()), 100, "records are left")
}

// Each log that has frames in a file costs a sync before that is used again.
func TestManyLogsGetLargerFiles(t *testing.T) {
	opts := smallJournal
	opts.journalSize = 2 * settleShare * roundBlock
	for _, c := range []struct{ logs, files int }{{settleShare / 2, 2}, {settleShare * 3 / 2, 3}} {
		b := newBedWith(t, store.LogConfig{}, opts)
		var logs []store.Log
		for i := range int32(c.logs) {
			logs = append(logs, b.open(store.TopicPartition{Topic: "many", Partition: i}, b.st))
		}
		for range 40 {
			for _, l := range logs {
				_, err := l.Append(context.Background(), one("key", "value"))
				b.must(err)
				b.must(flush(l))
			}
		}
		assert.Equal(t, b.st.sync.journal.count(), c.files, "files for %d logs", c.logs)
	}
}

func TestALogThatCannotBeSettledKeepsItsFile(t *testing.T) {
	b := newJournalBed(t)
	b.store("a", "b")
	b.fail(failing(vfs.OpDatasync, logSuffix))
	other := b.open(store.TopicPartition{Topic: "other"}, b.st)
	for range 100 { // They fail when the journal is full, and are opened again.
		_, _ = other.Append(context.Background(), one("key", "value"))
		if flush(other) != nil {
			break
		}
	}
	if n := b.st.sync.journal.count(); n > journalFiles {
		t.Errorf("%d files", n)
	}
	b.fail(nil)
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("a", "b")
}

func TestADeletedLogDoesNotComeBackInItsSuccessor(t *testing.T) {
	for name, deleted := range map[string]func(*bed){
		"in use": func(*bed) {},
		// Its frames are settled, and can still be found.
		"settled": func(b *bed) {
			j := b.st.sync.journal
			j.round.Lock()
			j.retire()
			j.round.Unlock()
			j.settleFull()
		},
		"failed": func(b *bed) { b.log.(*handle).failed.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newJournalBed(t)
			b.store("old 1", "old 2", "old 3")
			deleted(b)
			b.must(b.st.Delete(context.Background(), b.tp))
			b.reopen()
			b.must(b.append("new 1"))
			// Not by the journal, whose frame would hide the old ones.
			b.must(b.log.(*handle).syncNow())
			b.crash((*vfs.Mem).CrashStrict)
			b.wantValues("new 1")
		})
	}
}

func TestADeleteThatFailsIsTriedAgain(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpDatasync, vfs.OpSyncDir, vfs.OpRename} {
		b := newJournalBed(t)
		b.store("old 1", "old 2", "old 3")
		b.fail(func(op vfs.Op) error {
			if op.Kind == kind {
				return syscall.EIO
			}
			return nil
		})
		b.want(b.st.Delete(context.Background(), b.tp), store.ErrStorage)
		b.fail(nil)
		b.must(b.st.Delete(context.Background(), b.tp))
		b.reopen()
		b.must(b.append("new 1"))
		b.must(b.log.(*handle).syncNow())
		b.crash((*vfs.Mem).CrashStrict)
		b.wantValues("new 1")
	}
}

func TestAFailedSyncOfTheJournalIsMadeUpForByTheSegments(t *testing.T) {
	b := newJournalBed(t)
	b.store("a")
	b.fail(failing(vfs.OpDatasync, journalSuffix))
	b.store("b")
	b.fail(nil)
	b.store("c")
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("a", "b", "c")
}

func TestAFailedSyncOfASegmentIsWrittenAgainFromTheJournal(t *testing.T) {
	b := newJournalBed(t)
	b.store("a", "b")
	b.must(b.append("c"))
	b.fail(failing(vfs.OpDatasync, logSuffix))
	assert.MustError(t, b.log.(*handle).syncNow(), "the sync does not fail")
	b.want(b.append("d"), store.ErrFailed)
	b.fail(nil)
	b.reopen()
	b.wantValues("a", "b")
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("a", "b")
}

// What was refused must not come back by a frame that a failed round left.
func TestARefusedBatchIsNotReplayed(t *testing.T) {
	opts := smallJournal
	opts.journalSize *= 4 // No log is settled before.
	b := newBedWith(t, store.LogConfig{}, opts)
	b.warm()
	b.store("a")
	b.must(b.append(strings.Repeat("refused ", 50)))
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return syscall.EIO
		}
		return nil
	})
	assert.MustError(t, flush(b.log), "the flush does not fail")
	b.fail(nil)
	b.reopen()
	b.must(b.append("b"))
	b.must(b.log.(*handle).syncNow())
	b.crash((*vfs.Mem).CrashKeepAll)
	b.wantValues("a", "b")
}

func TestACleanStopLeavesNoJournal(t *testing.T) {
	b := newJournalBed(t)
	b.store("a", "b")
	b.must(b.st.Close())
	entries, err := b.fs.ReadDir(worldRoot)
	b.must(err)
	for _, e := range entries {
		if strings.Contains(e.Name(), journalDir) {
			t.Errorf("there is %s", e.Name())
		}
	}
	b.fs = b.fs.CrashStrict()
	b.start()
	assert.True(t, b.st.WasClean(), "it was no clean stop")
	b.wantValues("a", "b")
}

// A broker of before there were journals may have used the folder after a crash.
func TestAJournalFromBeforeACleanStopIsNotUsed(t *testing.T) {
	b := newJournalBed(t)
	b.store("a")
	old, st := b.fs, b.st
	b.fs = b.fs.CrashStrict()
	old.StopAfter(old.Ops())
	_ = st.Close()
	f, err := b.fs.Create(path.Join(worldRoot, cleanFile))
	b.must(err)
	b.must(f.Close())
	b.start()
	if got := b.values(); len(got) > 0 {
		t.Errorf("the log holds %v", got)
	}
}

func TestARemovedFolderStaysAway(t *testing.T) {
	b := newJournalBed(t)
	for i := range 10 { // The first frames are settled, and their file is used again.
		b.store(fmt.Sprint(i))
	}
	old, st := b.fs, b.st
	b.fs = b.fs.CrashKeepAll()
	old.StopAfter(old.Ops())
	_ = st.Close()
	b.must(b.fs.RemoveAll(path.Join(worldRoot, "orders-0")))
	b.start()
	b.wantValues()
	if _, err := b.fs.Stat(path.Join(worldRoot, "orders-0")); err == nil {
		t.Error("it was made again")
	}
}

func TestWhatDoesNotFitTheJournalIsSyncedByItself(t *testing.T) {
	b := newJournalBed(t)
	segments := b.counting(vfs.OpDatasync, logSuffix)
	b.store(strings.Repeat("large ", 1000))
	assert.Equal(t, segments(), 1, "syncs of segments")
	b.store("small")
	assert.Equal(t, segments(), 1, "syncs of segments after a small one")
	b.fail(nil)
	b.crash((*vfs.Mem).CrashStrict)
	assert.Equal(t, len(b.values()), 2, "records")
}

func TestNoRoomForAJournalIsNoFailure(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, smallJournal)
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite && strings.HasSuffix(op.Name, journalSuffix) {
			return syscall.ENOSPC
		}
		return nil
	})
	b.store("a", "b", "c", "d")
	if entries, err := b.fs.ReadDir(path.Join(worldRoot, journalDir)); err != nil || len(entries) > 0 {
		t.Errorf("the journal has %v (%v)", entries, err)
	}
	b.fail(nil)
	b.store("e", "f", "g")
	assert.True(t, b.st.sync.journal.count() != 0, "it is not tried again")
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("a", "b", "c", "d", "e", "f", "g")
}

func TestManyNewLogsShareTheSyncOfTheirFolder(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{noJournal: true})
	root := 0
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpSyncDir && op.Name == worldRoot {
			root++
		}
		return nil
	})
	for i := range int32(10) {
		b.must(b.st.Delete(context.Background(), store.TopicPartition{Topic: "none", Partition: i}))
	}
	assert.True(t, root == 0, "%d syncs because of logs that are not there", root)
	for i := range int32(10) {
		l := b.open(store.TopicPartition{Topic: "many", Partition: i}, b.st)
		_, err := l.Append(context.Background(), one("key", "value"))
		b.must(err)
		b.log = l
	}
	b.must(b.log.(*handle).syncNow())
	for _, l := range b.st.loaded() {
		if len(l.segments) > 0 {
			b.must(l.syncNow())
		}
	}
	assert.Equal(t, root, 1, "syncs of the data folder")
	b.fail(nil)
}

// A log's own sync may take long, which must not keep the log out of the journal. What that
// has made durable meanwhile is not lost either if the sync fails in the end.
func TestASyncOfASegmentDoesNotStopRounds(t *testing.T) {
	for _, result := range []error{nil, syscall.EIO} {
		t.Run(fmt.Sprint(result), func(t *testing.T) {
			opts := smallJournal
			opts.journalSize = 64 * roundBlock
			b := newBedWith(t, store.LogConfig{}, opts)
			b.warm()
			b.store("a")
			b.must(b.append("b"))
			began, end := make(chan struct{}), make(chan error)
			var once sync.Once
			b.fail(func(op vfs.Op) (err error) {
				if op.Kind == vfs.OpDatasync && strings.HasSuffix(op.Name, logSuffix) {
					once.Do(func() {
						close(began)
						err = <-end
					})
				}
				return err
			})
			synced := make(chan error, 1)
			go func() { synced <- b.log.(*handle).syncNow() }()
			<-began
			b.must(b.append("c"))
			flushed := make(chan error, 1)
			b.log.Flush(func(err error) { flushed <- err })
			select {
			case err := <-flushed:
				b.must(err)
			case <-time.After(10 * time.Second):
				t.Error("a round waits for the sync of a segment")
			}
			end <- result
			b.want(<-synced, result)
			if l := b.log.(*handle).log; l.durableEnd != l.logEnd || l.durableSize != l.active().sum.size {
				t.Errorf("durable to %d of %d, %d of %d bytes", l.durableEnd, l.logEnd, l.durableSize, l.active().sum.size)
			}
			if result != nil {
				b.want(b.append("d"), store.ErrFailed)
				b.reopen()
			}
			b.wantValues("a", "b", "c")
			b.fail(nil)
			b.crash((*vfs.Mem).CrashStrict)
			b.wantValues("a", "b", "c")
		})
	}
}

// gathered has a round that has b.log in it, and is not written before end is called.
func (b *bed) gathered() (end func(), flushed chan error) {
	b.Helper()
	other := b.open(store.TopicPartition{Topic: "other"}, b.st) // Which must be read.
	for _, l := range []store.Log{b.log, other} {
		_, err := l.Append(context.Background(), one("key", "b"))
		b.must(err)
	}
	syncing, reading := make(chan struct{}), make(chan struct{})
	queued, ended := make(chan struct{}), make(chan struct{})
	var first, second sync.Once
	b.fail(func(op vfs.Op) error {
		switch {
		case op.Kind == vfs.OpDatasync && strings.HasSuffix(op.Name, journalSuffix):
			first.Do(func() {
				close(syncing)
				<-queued
			})
		case op.Kind == vfs.OpRead && strings.HasSuffix(op.Name, logSuffix) && strings.Contains(op.Name, "other"):
			second.Do(func() {
				close(reading)
				<-ended
			})
		}
		return nil
	})
	warm := b.open(store.TopicPartition{Topic: "warm"}, b.st)
	_, err := warm.Append(context.Background(), one("key", "warm"))
	b.must(err)
	flushed = make(chan error, 3)
	done := func(err error) { flushed <- err }
	warm.Flush(done)
	<-syncing // So that the next round takes all that come now.
	b.log.Flush(done)
	other.Flush(done)
	close(queued)
	<-reading
	return func() { close(ended) }, flushed
}

// A round that has a log in it ends before anything is done to the log that would make
// wrong what it holds.
func TestARoundEndsBeforeALogIsChanged(t *testing.T) {
	opts := smallJournal
	opts.journalSize = 64 * roundBlock
	for _, c := range []struct {
		name  string
		do    func(b *bed, l *log) error
		waits bool
		after []string
	}{
		{"opened again", func(_ *bed, l *log) error {
			l.failed.Store(true) // As if a sync of its own had failed.
			l.doubtful = true
			return l.reopen(0)
		}, true, []string{"a", "b"}},
		{"deleted", func(b *bed, l *log) error { return b.st.Delete(context.Background(), b.tp) }, true, nil},
		{"rolled", func(_ *bed, l *log) error {
			l.appendMu.Lock()
			defer l.appendMu.Unlock()
			return l.roll()
		}, true, []string{"a", "b"}},
		{"synced", func(_ *bed, l *log) error { return l.syncNow() }, false, []string{"a", "b"}},
		{"appended to and synced", func(b *bed, l *log) error { return errors.Join(b.append("c"), l.syncNow()) }, false, []string{"a", "b", "c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBedWith(t, store.LogConfig{}, opts)
			b.warm()
			b.store("a", "a") // The second is in the journal.
			end, flushed := b.gathered()
			l := b.log.(*handle).log
			patience := 50 * time.Millisecond
			if !c.waits {
				patience = 10 * time.Second
			}
			done := make(chan error, 1)
			go func() { done <- c.do(b, l) }()
			select {
			case err := <-done:
				if done <- err; c.waits {
					t.Error("it did not wait for the round")
				}
			case <-time.After(patience):
				assert.True(t, c.waits, "it waits for the round")
			}
			end()
			b.must(<-done)
			for range 3 {
				<-flushed
			}
			b.fail(nil)
			assert.True(t, l.durableEnd >= l.logEnd, "durable to %d of %d", l.durableEnd, l.logEnd)
			if want := c.after; want != nil {
				b.crash((*vfs.Mem).CrashStrict)
				b.wantValues(append([]string{"a"}, want...)...)
			}
		})
	}
}
