//go:build unix

package vfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"muster/internal/assert"
)

// What is made is its owner's alone, whatever the process may give to others, and what was
// others' too can be taken from them.
func TestFilesAreTheirOwnersAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Cleanup(func(old int) func() { return func() { syscall.Umask(old) } }(syscall.Umask(0)))
	sys := OS()
	must := func(err error) {
		t.Helper()
		assert.Must(t, err)
	}
	must(sys.MkdirAll("data/log"))
	f, err := sys.Create("data/log/segment")
	must(err)
	must(f.Close())
	lock, err := sys.Lock("data/.lock")
	must(err)
	must(lock.Close())
	all := map[string]os.FileMode{"data": 0o700, "data/log": 0o700, "data/log/segment": 0o600, "data/.lock": 0o600}
	want := func() {
		t.Helper()
		for name, want := range all {
			info, err := os.Stat(filepath.FromSlash(name))
			must(err)
			assert.Equal(t, info.Mode().Perm(), want, "%s has mode", name)
		}
	}
	want()
	for name, mode := range all {
		must(os.Chmod(name, mode|mode>>3|mode>>6))
		for _, changes := range []bool{true, false} {
			if changed, err := sys.Private(name); err != nil || changed != changes {
				t.Errorf("%s is taken from others: %v, %v", name, changed, err)
			}
		}
	}
	want()
}
