package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"syscall"
	"testing"

	"muster/internal/assert"
	"muster/internal/store/vfs"
)

// onBoth runs a test on the real file system and on Mem, with an empty folder.
func onBoth(t *testing.T, test func(t *testing.T, fsys vfs.FS, dir string)) {
	t.Parallel()
	t.Run("os", func(t *testing.T) {
		t.Parallel()
		test(t, vfs.OS(), t.TempDir())
	})
	t.Run("mem", func(t *testing.T) {
		t.Parallel()
		m := vfs.NewMem()
		must(t, m.MkdirAll("/var/lib"))
		test(t, m, "/var/lib")
	})
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	assert.ErrorIs(t, err, want, "%s: got error", what)
}

func TestWritesAreReadBackWithHolesAsZeros(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		write(t, f, 0, "hello")
		write(t, f, 8, "world")
		write(t, f, 1, "E")
		must(t, f.Datasync())
		assert.Equal(t, contents(t, f), "hEllo\x00\x00\x00world")
		assert.Equal(t, read(t, fsys, path.Join(dir, "f")), "hEllo\x00\x00\x00world", "a second handle read")
	})
}

func TestReadAtTheEndGivesEOF(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		write(t, f, 0, "abc")
		for _, c := range []struct {
			off int64
			len int
			n   int
			err error
		}{{0, 3, 3, nil}, {1, 3, 2, io.EOF}, {3, 1, 0, io.EOF}, {9, 1, 0, io.EOF}, {9, 0, 0, nil}} {
			n, err := f.ReadAt(make([]byte, c.len), c.off)
			assert.True(t, n == c.n && err == c.err, "ReadAt %d at %d: got %d, %v, want %d, %v", c.len, c.off, n, err, c.n, c.err)
		}
	})
}

func TestNegativeOffsetsAndSizesAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		if _, err := f.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("ReadAt took a negative offset")
		}
		if _, err := f.WriteAt([]byte("x"), -1); err == nil {
			t.Error("WriteAt took a negative offset")
		}
		wantError(t, "Truncate", f.Truncate(-1), syscall.EINVAL)
	})
}

func TestEmptyWriteBeyondTheEndDoesNotExtend(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		write(t, f, 100, "")
		assert.Equal(t, contents(t, f), "")
	})
}

func TestTruncateShrinksAndExtendsWithZeros(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		write(t, f, 0, "abcdef")
		must(t, f.Truncate(2))
		must(t, f.Truncate(4))
		assert.Equal(t, contents(t, f), "ab\x00\x00")
	})
}

func TestCreateAndOpenCheckExistence(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := path.Join(dir, "f")
		_, err := fsys.Open(name)
		wantError(t, "Open of nothing", err, fs.ErrNotExist)
		create(t, fsys, name)
		_, err = fsys.Create(name)
		wantError(t, "Create of what exists", err, fs.ErrExist)
		_, err = fsys.Create(path.Join(dir, "missing/f"))
		wantError(t, "Create in a missing folder", err, fs.ErrNotExist)
		_, err = fsys.Open(path.Join(name, "x"))
		wantError(t, "Open below a file", err, syscall.ENOTDIR)
		_, err = fsys.Open(dir)
		wantError(t, "Open of a folder", err, syscall.EISDIR)
	})
}

func TestClosedFileRefusesUse(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		must(t, f.Close())
		_, err := f.WriteAt([]byte("x"), 0)
		wantError(t, "WriteAt", err, fs.ErrClosed)
		_, err = f.ReadAt(make([]byte, 1), 0)
		wantError(t, "ReadAt", err, fs.ErrClosed)
		_, err = f.Size()
		wantError(t, "Size", err, fs.ErrClosed)
		wantError(t, "Truncate", f.Truncate(0), fs.ErrClosed)
		wantError(t, "Datasync", f.Datasync(), fs.ErrClosed)
		wantError(t, "Close", f.Close(), fs.ErrClosed)
	})
}

func TestMkdirAllMakesParentsAndMayRepeat(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		must(t, fsys.MkdirAll(path.Join(dir, "a/b/c")))
		must(t, fsys.MkdirAll(path.Join(dir, "a/b/c")))
		info, err := fsys.Stat(path.Join(dir, "a/b/c"))
		must(t, err)
		if !info.IsDir() || info.Name() != "c" {
			t.Errorf("Stat: %s, a folder: %v", info.Name(), info.IsDir())
		}
		create(t, fsys, path.Join(dir, "f"))
		wantError(t, "MkdirAll below a file", fsys.MkdirAll(path.Join(dir, "f/x")), syscall.ENOTDIR)
	})
}

func TestReadDirIsSortedAndDescribesEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		write(t, create(t, fsys, path.Join(dir, "c")), 0, "123")
		must(t, fsys.MkdirAll(path.Join(dir, "b")))
		create(t, fsys, path.Join(dir, "a"))
		list, err := fsys.ReadDir(dir)
		must(t, err)
		var got []string
		for _, e := range list {
			info, err := e.Info()
			must(t, err)
			if !e.IsDir() {
				got = append(got, fmt.Sprint(e.Name(), info.Size()))
				continue
			}
			got = append(got, e.Name()+"/")
		}
		assert.EqualSlices(t, got, []string{"a0", "b/", "c3"})
		_, err = fsys.ReadDir(path.Join(dir, "a"))
		wantError(t, "ReadDir of a file", err, syscall.ENOTDIR)
		_, err = fsys.ReadDir(path.Join(dir, "none"))
		wantError(t, "ReadDir of nothing", err, fs.ErrNotExist)
	})
}

func TestRenameReplacesAFileAndMovesFolders(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		at := func(name string) string { return path.Join(dir, name) }
		write(t, create(t, fsys, at("new")), 0, "new")
		write(t, create(t, fsys, at("old")), 0, "old")
		must(t, fsys.Rename(at("new"), at("old")))
		must(t, fsys.Rename(at("old"), at("old")))
		must(t, fsys.MkdirAll(at("a/b")))
		must(t, fsys.Rename(at("old"), at("a/b/f")))
		must(t, fsys.MkdirAll(at("c")))
		must(t, fsys.Rename(at("a/b"), at("c/d")))
		must(t, fsys.SyncDir(at("a")))
		must(t, fsys.SyncDir(at("c")))
		want := map[string]string{"a/": "", "c/": "", "c/d/": "", "c/d/f": "new"}
		assert.EqualMaps(t, dump(t, fsys, dir), want)
	})
}

func TestRenameRefusesWhatCannotBe(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		at := func(name string) string { return path.Join(dir, name) }
		create(t, fsys, at("f"))
		must(t, fsys.MkdirAll(at("d")))
		must(t, fsys.MkdirAll(at("e")))
		wantError(t, "nothing", fsys.Rename(at("none"), at("x")), fs.ErrNotExist)
		wantError(t, "into nothing", fsys.Rename(at("f"), at("none/x")), fs.ErrNotExist)
		wantError(t, "file to folder", fsys.Rename(at("f"), at("d")), fs.ErrExist)
		wantError(t, "folder to folder", fsys.Rename(at("e"), at("d")), fs.ErrExist)
		wantError(t, "folder to file", fsys.Rename(at("d"), at("f")), syscall.ENOTDIR)
		wantError(t, "folder into itself", fsys.Rename(at("d"), at("d/x")), syscall.EINVAL)
	})
}

func TestRemoveTakesFilesAndEmptyFoldersOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		must(t, fsys.MkdirAll(path.Join(dir, "d")))
		create(t, fsys, path.Join(dir, "d/f"))
		wantError(t, "folder in use", fsys.Remove(path.Join(dir, "d")), syscall.ENOTEMPTY)
		must(t, fsys.Remove(path.Join(dir, "d/f")))
		must(t, fsys.Remove(path.Join(dir, "d")))
		wantError(t, "second time", fsys.Remove(path.Join(dir, "d")), fs.ErrNotExist)
		_, err := fsys.Stat(path.Join(dir, "d"))
		wantError(t, "Stat", err, fs.ErrNotExist)
	})
}

func TestRemoveAllTakesATreeAndAcceptsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		must(t, fsys.MkdirAll(path.Join(dir, "d/e")))
		create(t, fsys, path.Join(dir, "d/e/f"))
		create(t, fsys, path.Join(dir, "d/g"))
		create(t, fsys, path.Join(dir, "kept"))
		must(t, fsys.RemoveAll(path.Join(dir, "d")))
		must(t, fsys.RemoveAll(path.Join(dir, "d")))
		assert.EqualMaps(t, dump(t, fsys, dir), map[string]string{"kept": ""}, "what is left")
	})
}

func TestOpenHandleOutlivesRenameAndRemove(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		f := create(t, fsys, path.Join(dir, "f"))
		write(t, f, 0, "one")
		must(t, fsys.Rename(path.Join(dir, "f"), path.Join(dir, "g")))
		write(t, f, 3, "two")
		assert.Equal(t, read(t, fsys, path.Join(dir, "g")), "onetwo", "after rename: read")
		must(t, fsys.Remove(path.Join(dir, "g")))
		write(t, f, 6, "three")
		must(t, f.Datasync())
		assert.Equal(t, contents(t, f), "onetwothree", "after remove: read")
	})
}

func TestSyncDirWantsAFolder(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		create(t, fsys, path.Join(dir, "f"))
		must(t, fsys.SyncDir(dir))
		wantError(t, "file", fsys.SyncDir(path.Join(dir, "f")), syscall.ENOTDIR)
		wantError(t, "nothing", fsys.SyncDir(path.Join(dir, "none")), fs.ErrNotExist)
	})
}

func TestLockIsExclusiveUntilClosed(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		name := path.Join(dir, ".lock")
		lock, err := fsys.Lock(name)
		must(t, err)
		_, err = fsys.Lock(name)
		wantError(t, "second lock", err, vfs.ErrLocked)
		must(t, lock.Close())
		lock, err = fsys.Lock(name)
		must(t, err)
		must(t, lock.Close())
		_, err = fsys.Lock(path.Join(dir, "none/.lock"))
		wantError(t, "lock in a missing folder", err, fs.ErrNotExist)
	})
}

func TestOnlyRealFilesHaveADescriptor(t *testing.T) {
	onBoth(t, func(t *testing.T, fsys vfs.FS, dir string) {
		_, isMem := fsys.(*vfs.Mem)
		if _, ok := create(t, fsys, path.Join(dir, "f")).Fd(); ok == isMem {
			t.Errorf("Fd: got %v", ok)
		}
	})
}

// TestMemDoesWhatTheOSDoes makes the same random calls on both and compares
// each outcome, and all that is there in the end.
func TestMemDoesWhatTheOSDoes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		real, mem := vfs.OS(), vfs.NewMem()
		dir := t.TempDir()
		rng := seeded(seed)
		for i := range 300 {
			call := randomCall(rng)
			realErr, memErr := call.do(real, dir), call.do(mem, "/")
			assert.MustEqual(t, outcome(realErr), outcome(memErr), "seed %d, call %d, %+v: OS gives %v, Mem gives %v", seed, i, call, realErr, memErr)
		}
		want, got := dump(t, real, dir), dump(t, mem, "/")
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d: Mem has %q, OS has %q", seed, got, want)
		}
	}
}

type call struct {
	kind      int
	name, to  string
	off, size int64
}

func randomCall(rng *rand.Rand) call {
	name := func() string {
		parts := make([]string, 1+rng.IntN(3))
		for i := range parts {
			parts[i] = string(rune('a' + rng.IntN(3)))
		}
		return strings.Join(parts, "/")
	}
	return call{rng.IntN(8), name(), name(), rng.Int64N(50), rng.Int64N(50)}
}

func (c call) do(fsys vfs.FS, dir string) error {
	name := path.Join(dir, c.name)
	switch c.kind {
	case 0:
		return fsys.MkdirAll(name)
	case 1:
		return fsys.Rename(name, path.Join(dir, c.to))
	case 2:
		return fsys.Remove(name)
	case 3:
		return fsys.SyncDir(name)
	case 4, 5:
		f, err := fsys.Create(name)
		if err != nil {
			return err
		}
		return f.Close()
	}
	f, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.kind == 6 {
		return f.Truncate(c.size)
	}
	_, err = f.WriteAt([]byte(strings.Repeat(c.to[:1], int(c.size))), c.off)
	return err
}

// outcome is the errno, which errors of package os wrap.
func outcome(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
