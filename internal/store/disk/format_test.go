package disk

import (
	"path"
	"strings"
	"syscall"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

func TestAFolderOfALaterVersionIsRefused(t *testing.T) {
	for content, want := range map[string]string{
		"3\n": "format 3, this version knows up to 2", "\n": "does not hold a version", "two": "does not hold a version", "0": "does not hold a version",
	} {
		fs := vfs.NewMem()
		must(t, fs.MkdirAll(worldRoot))
		must(t, writeFile(fs, path.Join(worldRoot, formatFile), []byte(content), true))
		for range 2 { // The first must have let the lock go.
			if _, err := Open(worldRoot, Options{FS: fs}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v", content, err)
			}
		}
	}
}

func TestAFullDiskOpensWithoutANote(t *testing.T) {
	fs := vfs.NewMem()
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	st, err := Open(worldRoot, Options{FS: fs})
	must(t, err)
	assert.NoError(t, st.Close())
}

func TestAFolderOfAnEarlierVersionIsOpened(t *testing.T) {
	b := newBedWith(t, store.LogConfig{}, Options{noJournal: true})
	b.store("a", "b")
	b.must(b.st.Close())
	b.must(b.fs.Remove(path.Join(worldRoot, formatFile)))
	b.opts = smallJournal
	b.start()
	assert.True(t, b.st.WasClean(), "it was no clean stop")
	b.wantValues("a", "b")
	b.store("c", "d", "e")
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues("a", "b", "c", "d", "e")
	got, err := readFile(b.fs, path.Join(worldRoot, formatFile), -1)
	assert.True(t, err == nil && string(got) == "2\n", "the format is %q (%v)", got, err)
}
