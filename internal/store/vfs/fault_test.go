package vfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"muster/internal/assert"
	"muster/internal/store/vfs"
)

// failing makes the operations of one kind fail.
func failing(kind vfs.OpKind, err error) func(vfs.Op) error {
	return func(op vfs.Op) error {
		if op.Kind == kind {
			return err
		}
		return nil
	}
}

func TestHookSeesEveryOperationInOrder(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	var got []string
	m.SetHook(func(op vfs.Op) error {
		got = append(got, fmt.Sprintf("%d %v %s%s %d", op.Seq, op.Kind, op.Name, op.NewName, op.Bytes))
		return nil
	})
	must(t, m.MkdirAll("/a/b"))
	must(t, m.MkdirAll("/a/b"))
	f := create(t, m, "/a/f")
	write(t, f, 0, "123")
	must(t, f.Truncate(2))
	_ = contents(t, f)
	must(t, f.Datasync())
	must(t, m.Rename("/a/f", "/a/b/g"))
	must(t, m.SyncDir("/a"))
	_, err := m.Open("/a/b/g")
	must(t, err)
	_, err = m.Stat("/a")
	must(t, err)
	must(t, m.RemoveAll("/a"))
	want := []string{
		"0 mkdir /a 0", "1 mkdir /a/b 0", "2 create /a/f 0", "3 write /a/f 3", "4 truncate /a/f 2",
		"5 read /a/f 2", "5 datasync /a/f 0", "6 rename /a/f/a/b/g 0", "7 syncdir /a 0", "8 open /a/b/g 0",
		"8 read /a 0", "8 remove /a/b/g 0", "9 remove /a/b 0", "10 remove /a 0",
	}
	assert.EqualSlices(t, got, want)
	assert.Equal(t, m.Ops(), 11, "Ops")
}

func TestFailedOperationDoesNothing(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	must(t, m.MkdirAll("d"))
	f := createSynced(t, m, "d/f", "abc")
	for kind, do := range map[vfs.OpKind]func() error{
		vfs.OpCreate:   func() error { _, err := m.Create("d/g"); return err },
		vfs.OpOpen:     func() error { _, err := m.Open("d/f"); return err },
		vfs.OpWrite:    func() error { _, err := f.WriteAt([]byte("x"), 0); return err },
		vfs.OpTruncate: func() error { return f.Truncate(0) },
		vfs.OpRead:     func() error { _, err := f.ReadAt(make([]byte, 1), 0); return err },
		vfs.OpRename:   func() error { return m.Rename("d/f", "d/g") },
		vfs.OpRemove:   func() error { return m.RemoveAll("d") },
		vfs.OpMkdir:    func() error { return m.MkdirAll("d/e") },
		vfs.OpSyncDir:  func() error { return m.SyncDir("/") },
	} {
		m.SetHook(failing(kind, syscall.EIO))
		wantError(t, kind.String(), do(), syscall.EIO)
	}
	m.SetHook(nil)
	if got := dump(t, m, "/"); len(got) != 2 || got["d/f"] != "abc" {
		t.Errorf("left %q", got)
	}
	if got := names(t, m.CrashStrict(), "/"); got != "" {
		t.Errorf("the failed sync made %q durable", got)
	}
}

func TestPartialWriteWritesAPrefixAndFails(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := create(t, m, "f")
	m.SetHook(failing(vfs.OpWrite, vfs.PartialWrite{N: 2, Err: syscall.ENOSPC}))
	n, err := f.WriteAt([]byte("abc"), 0)
	wantError(t, "write", err, syscall.ENOSPC)
	if n != 2 || contents(t, f) != "ab" {
		t.Errorf("wrote %d, file has %q", n, contents(t, f))
	}
}

func TestWritesOfAFailedDatasyncAreNeverDurable(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "11")
	write(t, f, 1, "22")
	m.SetHook(failing(vfs.OpDatasync, syscall.EIO))
	wantError(t, "sync", f.Datasync(), syscall.EIO)
	m.SetHook(nil)
	write(t, f, 3, "33")
	must(t, f.Datasync())
	assert.Equal(t, contents(t, f), "12233", "the cache")
	// The size is metadata and was not lost: the data leaves a hole.
	const want = "11\x0033"
	assert.Equal(t, read(t, m.CrashStrict(), "f"), want, "the disk")
	got := crashes(t, m, func(c *vfs.Mem) string { return read(t, c, "f") })
	wantOutcomes(t, got, want)
	assert.Equal(t, read(t, m.CrashKeepAll(), "f"), "12233", "after a kill")
}

func TestSizeAfterAFailedDatasyncIsDurableWithTheNextOne(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "abcdef")
	must(t, f.Truncate(2))
	write(t, f, 3, "x")
	m.SetHook(failing(vfs.OpDatasync, syscall.EIO))
	wantError(t, "sync", f.Datasync(), syscall.EIO)
	m.SetHook(nil)
	must(t, f.Datasync())
	assert.Equal(t, read(t, m.CrashStrict(), "f"), "ab\x00\x00", "the disk")
}

func TestStopAfterStopsTheWorld(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	f := createSynced(t, m, "f", "abc")
	m.StopAfter(m.Ops() + 1)
	write(t, f, 0, "x")
	before := m.Ops()
	_, writeErr := f.WriteAt([]byte("y"), 1)
	_, readErr := f.ReadAt(make([]byte, 1), 0)
	_, sizeErr := f.Size()
	_, openErr := m.Open("f")
	_, createErr := m.Create("g")
	_, listErr := m.ReadDir("/")
	_, statErr := m.Stat("f")
	_, lockErr := m.Lock("lock")
	for i, err := range []error{
		writeErr, readErr, sizeErr, openErr, createErr, listErr, statErr, lockErr,
		f.Datasync(), f.Truncate(0), m.Rename("f", "g"), m.Remove("f"),
		m.RemoveAll("none"), m.MkdirAll("/"), m.SyncDir("/"),
	} {
		wantError(t, fmt.Sprint("call ", i), err, vfs.ErrStopped)
	}
	must(t, f.Close())
	if m.Ops() != before {
		t.Errorf("Ops went from %d to %d", before, m.Ops())
	}
	m.StopAfter(-1)
	assert.Equal(t, read(t, m, "f"), "xbc", "what is left")
	if got := read(t, m.CrashStrict(), "f"); got != "abc" {
		t.Errorf("left %q on disk", got)
	}
	f, err := m.Open("f")
	must(t, err)
	must(t, f.Datasync())
	assert.Equal(t, read(t, m.CrashStrict(), "f"), "xbc", "the sync that was stopped counted as failed: the disk")
}

// TestCrashAtEachPointKeepsWhatWasAcknowledged is the loop that Mem is for.
func TestCrashAtEachPointKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	// replace writes a file the safe way, and returns the last version for
	// which all went well.
	replace := func(m *vfs.Mem) (acknowledged int) {
		for version := 1; version <= 5; version++ {
			f, err := m.Create("f.tmp")
			if err != nil {
				return acknowledged
			}
			_, err = f.WriteAt([]byte{byte(version)}, 0)
			err = errors.Join(err, f.Datasync(), f.Close(), m.Rename("f.tmp", "f"), m.SyncDir("/"))
			if err != nil {
				return acknowledged
			}
			acknowledged = version
		}
		return acknowledged
	}
	whole := vfs.NewMem()
	assert.MustEqual(t, replace(whole), 5, "it does not even work without a crash")
	for stop := range whole.Ops() + 1 {
		for seed := range uint64(20) {
			m := vfs.NewMem()
			m.StopAfter(stop)
			acknowledged := replace(m)
			c := m.Crash(seeded(seed))
			if _, err := c.Stat("f"); errors.Is(err, fs.ErrNotExist) && acknowledged == 0 {
				continue
			}
			if got := read(t, c, "f"); len(got) != 1 || int(got[0]) < acknowledged || int(got[0]) > acknowledged+1 {
				t.Errorf("stop %d, seed %d: acknowledged %d, found %q", stop, seed, acknowledged, got)
			}
		}
	}
}

func TestHookMayCrashTheFileSystemItWatches(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	var images []string
	m.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			images = append(images, read(t, m.CrashKeepAll(), "f"))
		}
		return nil
	})
	f := create(t, m, "f")
	write(t, f, 0, "a")
	write(t, f, 1, "b")
	assert.EqualSlices(t, images, []string{"", "a"}, "before the writes")
}

func TestFullDiskRefusesGrowthUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	m.SetCapacity(10)
	f, g := create(t, m, "f"), create(t, m, "g")
	write(t, f, 0, "123456")
	n, err := g.WriteAt([]byte("123456"), 0)
	wantError(t, "write", err, syscall.ENOSPC)
	if n != 4 || contents(t, g) != "1234" {
		t.Errorf("wrote %d, file has %q", n, contents(t, g))
	}
	write(t, f, 0, "abcdef")
	wantError(t, "extend", g.Truncate(5), syscall.ENOSPC)
	m.SetCapacity(12)
	write(t, g, 4, "56")
	must(t, g.Truncate(0))
	write(t, f, 6, "ghijkl")
	m.SetCapacity(-1)
	write(t, g, 0, "no limit")
}

func TestRemovedFileGivesItsSpaceBackOnceClosed(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	m.SetCapacity(4)
	f := create(t, m, "f")
	write(t, f, 0, "full")
	g := create(t, m, "g")
	must(t, m.Remove("f"))
	_, err := g.WriteAt([]byte("x"), 0)
	wantError(t, "write while the removed file is open", err, syscall.ENOSPC)
	must(t, f.Close())
	write(t, g, 0, "full")
	must(t, g.Close())
	h := create(t, m, "h")
	must(t, m.Rename("h", "g"))
	write(t, h, 0, "full")
}

func TestCapacityHoldsAfterACrash(t *testing.T) {
	t.Parallel()
	m := vfs.NewMem()
	m.SetCapacity(4)
	createSynced(t, m, "f", "full")
	for _, c := range []*vfs.Mem{m.CrashStrict(), m.CrashKeepAll()} {
		g := create(t, c, "g")
		_, err := g.WriteAt([]byte("x"), 0)
		wantError(t, "write", err, syscall.ENOSPC)
		must(t, c.Remove("f"))
		write(t, g, 0, "full")
	}
}
