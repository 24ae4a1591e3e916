package disk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// cycle ends the use of the current file, and settles all that are full.
func (b *bed) cycle() bool {
	j := b.st.sync.journal
	j.round.Lock()
	j.mu.Lock()
	j.retire()
	j.mu.Unlock()
	j.round.Unlock()
	return j.settleFull()
}

// other returns a function that appends to another log, and flushes it.
func (b *bed) other(name string) func(value string) {
	l := b.open(store.TopicPartition{Topic: name}, b.st)
	return func(value string) {
		b.Helper()
		_, err := l.Append(context.Background(), one("key", value))
		b.must(err)
		b.must(flush(l))
	}
}

// wantAfter opens a store on what a crash has left, and compares what the log holds.
func (b *bed) wantAfter(crashed *vfs.Mem, want ...string) {
	b.Helper()
	st, err := Open(worldRoot, Options{FS: crashed, inline: true})
	b.must(err)
	defer func() { b.must(st.Close()) }()
	content, err := readContent(b.open(b.tp, st))
	b.must(err)
	var got []string
	for _, n := range content {
		got = append(got, n.value)
	}
	assert.EqualSlices(b, got, want, "the log holds")
}

// TestAUseOfAFileEndsAtOnce has the power fail while a file with frames of a log that was
// deleted, and the void after them, is used again: if the void goes first, the frames
// are written over the log that has the name now.
func TestAUseOfAFileEndsAtOnce(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{inline: true, journalSize: 16 * roundBlock, journaledMost: 6 << 10})
	b.warm()
	put := b.other("other")
	b.cycle()
	b.store("old 1")
	b.must(b.st.Delete(context.Background(), b.tp))
	b.reopen()
	b.must(b.append("new 1"))
	b.must(b.append("new 2"))
	b.must(b.log.(*handle).syncNow())
	syncs := 0
	b.fail(func(op vfs.Op) error {
		if op.Kind != vfs.OpDatasync || !strings.HasSuffix(op.Name, journalSuffix) {
			return nil
		}
		syncs++
		for seed := range uint64(60) {
			b.wantAfter(b.fs.Crash(rand.New(rand.NewPCG(seed, 1))), "new 1", "new 2")
		}
		return nil
	})
	for range 3 { // There are two files.
		b.cycle()
		put(strings.Repeat("x", 4500)) // of two blocks
	}
	b.fail(nil)
	assert.True(t, syncs >= 5, "the journal was synced %d times", syncs)
}

// TestAUseThatCannotBeBegun has a file fail when it is used again, or when the first round
// is written to it. What its use before holds counts until it cannot be found.
func TestAUseThatCannotBeBegun(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpDatasync} {
		for _, when := range []string{"begun", "used"} {
			t.Run(kind.String()+" when it is "+when, func(t *testing.T) {
				b := newJournalBed(t)
				put := b.other("warm")
				b.cycle()
				b.store("old 1", "old 2", "old 3")
				fails := func() { b.fail(failing(kind, journalSuffix)) }
				if when == "begun" {
					fails()
				}
				assert.Equal(t, b.cycle(), when == "used", "the use of a file began, or did not")
				fails()
				put("v") // Its own file makes up for it.
				b.fail(nil)
				assert.True(t, b.cycle(), "the files stay full")
				put("v")
				b.must(b.st.Delete(context.Background(), b.tp))
				b.reopen()
				b.must(b.append("new 1"))
				b.must(b.log.(*handle).syncNow())
				for _, c := range crashes(5) {
					b.wantAfter(c.do(b.fs), "new 1")
				}
			})
		}
	}
}

// TestAFileIsKeptUntilItsLastRoundIsKnown ends the use of a file when the round that fills
// it is written, and before its logs know.
func TestAFileIsKeptUntilItsLastRoundIsKnown(t *testing.T) {
	var then atomic.Pointer[func()]
	b := newBedWith(t, store.LogConfig{}, Options{journalSize: 4 * roundBlock, journaledMost: 1 << 10, Flushed: func(time.Duration) {
		if do := then.Swap(nil); do != nil {
			(*do)()
		}
	}})
	j := b.st.sync.journal
	b.must(j.make(1))
	b.must(j.make(2))
	b.must(b.append("a"))
	b.must(b.log.(*handle).syncNow())
	victim := store.TopicPartition{Topic: "victim"}
	put := b.other("victim")
	for range 3 {
		put("v")
	}
	full := func() {
		b.must(b.st.Delete(context.Background(), victim)) // Its void finds no room in the file.
		look := time.NewTicker(time.Millisecond)
		defer look.Stop()
		for range 200 {
			<-look.C
			j.mu.Lock()
			free := len(j.free)
			j.mu.Unlock()
			if free > 0 {
				t.Error("the file is free")
				return
			}
		}
	}
	then.Store(&full)
	b.store("b")
	uses := func() uint64 {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.uses
	}
	for put := b.other("other"); uses() < 4; {
		put("o")
	}
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("a", "b")
}

// TestALogThatFailedKeepsNoFile has a log fail that the journal holds frames of, and be
// opened again or deleted.
func TestALogThatFailedKeepsNoFile(t *testing.T) {
	ends := map[string]func(b *bed){
		"opened again": (*bed).reopen,
		"deleted":      func(b *bed) { b.must(b.st.Delete(context.Background(), b.tp)) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			opts := smallJournal
			opts.journalSize = 64 * roundBlock // None is settled before.
			b := newBedWith(t, store.LogConfig{}, opts)
			b.warm()
			b.store("a", "b")
			b.must(b.append("c"))
			b.fail(failing(vfs.OpDatasync, logSuffix))
			assert.MustTrue(t, b.log.(*handle).syncNow() != nil, "the sync did not fail")
			b.fail(nil)
			end(b)
			assert.True(t, b.cycle() && len(b.st.sync.journal.full) == 0, "a file stays full")
		})
	}
}

// TestFramesInAFullFileAreVoidToo has a log deleted whose frames are all in a file before
// the current one, which another log keeps from becoming free.
func TestFramesInAFullFileAreVoidToo(t *testing.T) {
	b := newJournalBed(t)
	b.cycle()
	stuck := b.other("stuck")
	stuck("v")
	b.store("old 1", "old 2")
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync && strings.Contains(op.Name, "stuck-0") {
			return syscall.EIO
		}
		return nil
	})
	assert.False(t, b.cycle(), "a file became free")
	b.other("other")("v")
	b.must(b.st.Delete(context.Background(), b.tp))
	b.reopen()
	b.must(b.append("new 1"))
	b.must(b.log.(*handle).syncNow())
	b.fail(nil)
	for _, c := range crashes(3) {
		b.wantAfter(c.do(b.fs), "new 1")
	}
}

// TestVoidsHaveRoomWhenTheJournalIsFull has a log that cannot be settled for a while, so
// that all files become full. Others must be deleted meanwhile, and it must be opened
// again after.
func TestVoidsHaveRoomWhenTheJournalIsFull(t *testing.T) {
	b := newJournalBed(t)
	j := b.st.sync.journal
	var logs []store.TopicPartition
	for i := range int32(25) {
		logs = append(logs, store.TopicPartition{Topic: "many", Partition: i})
	}
	stuck := b.other("stuck")
	b.cycle()
	stuck("v")
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync && strings.Contains(op.Name, "stuck-0") {
			return syscall.EIO
		}
		return nil
	})
	for _, tp := range logs {
		l := b.open(tp, b.st)
		_, err := l.Append(context.Background(), one("key", "v"))
		b.must(err)
		b.must(flush(l))
	}
	put := b.other("busy")
	for i := 0; len(j.full) < journalFiles; i++ {
		put("v")
		assert.MustTrue(t, i <= 100_000, "%d files are full", len(j.full))
	}
	for _, tp := range logs {
		b.must(b.st.Delete(context.Background(), tp))
		for range 50 { // More than fit into the file that the first void has made.
			put("v")
		}
	}
	assert.Equal(t, j.count(), journalFiles+1, "files: %d full ones, and those for voids", len(j.full))
	b.fail(nil)
	b.open(store.TopicPartition{Topic: "stuck"}, b.st)
	assert.True(t, b.cycle() && len(j.full) == 0, "files stay full")
	segments := b.counting(vfs.OpDatasync, logSuffix)
	put("v")
	assert.True(t, segments() == 0, "there are no rounds")
}

// TestALogIsOpenedAfterADeletionThatFailed has the folder of a log taken away, and fail what
// makes that durable, and the void after it. Until both are there the log cannot be
// opened again; then nothing of before comes back.
func TestALogIsOpenedAfterADeletionThatFailed(t *testing.T) {
	for name, fault := range map[string]func(vfs.Op) error{
		"void":   failing(vfs.OpDatasync, journalSuffix),
		"folder": failing(vfs.OpSyncDir, worldRoot),
	} {
		for _, synced := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s of a log that is synced %v", name, synced), func(t *testing.T) {
				b := newJournalBed(t)
				b.store("old 1")
				if synced {
					b.store("old 2", "old 3")
					b.must(b.log.(*handle).syncNow())
				}
				b.fail(fault)
				assert.True(t, b.st.Delete(context.Background(), b.tp) != nil, "a log was deleted that may come back")
				if _, err := b.st.Open(context.Background(), b.tp, 0, b.cfg); err == nil {
					t.Error("a log was opened in the place of one that may come back")
				}
				b.fail(nil)
				b.reopen()
				b.wantValues()
				b.store("new 1")
				for _, c := range crashes(3) {
					b.wantAfter(c.do(b.fs), "new 1")
				}
			})
		}
	}
}

// TestWhoIsToldOfAFailedFlushFindsADurableLog has no file left to open for a sync.
func TestWhoIsToldOfAFailedFlushFindsADurableLog(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{MaxOpenFiles: 1})
	b.store("a")
	b.must(b.append("b"))
	_, err := b.open(store.TopicPartition{Topic: "other"}, b.st).Append(context.Background(), one("k", "v"))
	b.must(err)
	b.fail(failing(vfs.OpOpen, logSuffix))
	assert.True(t, flush(b.log) != nil, "the log was flushed without a file")
	b.fail(nil)
	b.reopen()
	want := fmt.Sprint(b.values())
	b.crash((*vfs.Mem).CrashStrict)
	if got := fmt.Sprint(b.values()); got != want {
		t.Errorf("the log was shown with %v and holds %v", want, got)
	}
}

// TestALogThatEndedIsNotIndexed has a log deleted between its sync and the index: by then
// another one may have the folder.
func TestALogThatEndedIsNotIndexed(t *testing.T) {
	b := newBedWith(t, store.LogConfig{IndexInterval: 100}, Options{noJournal: true, inline: true, indexEach: 200})
	b.must(b.append(strings.Repeat("v", 500)))
	old := b.log.(*handle).log
	b.must(old.syncNow())
	b.must(b.st.Delete(context.Background(), b.tp))
	b.reopen()
	b.must(b.append("new"))
	old.indexActive()
	for _, name := range b.names() {
		if strings.HasSuffix(name, indexSuffix) {
			t.Errorf("there is %s", path.Base(name))
		}
	}
}

// A new log whose folder has no durable name yet, since the journal has all of it, must not
// come back from there with records that were deleted.
func TestTrimOfANewLogIsDurable(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{inline: true})
	b.warm()
	tp := store.TopicPartition{Topic: "new"}
	l := b.open(tp, b.st)
	for range 3 {
		_, err := l.Append(t.Context(), sample(1, "v"))
		b.must(err)
	}
	b.must(flush(l))
	assert.MustTrue(t, l.(*handle).hasUnsyncedNames(), "the names of the log's files are synced")
	b.must(l.Trim(t.Context(), 2))
	b.crash((*vfs.Mem).CrashStrict)
	if start, end := b.open(tp, b.st).Bounds(); start != 2 || end != 3 {
		t.Errorf("the log goes from %d to %d, want 2 to 3", start, end)
	}
}
