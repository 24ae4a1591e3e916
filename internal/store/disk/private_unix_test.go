//go:build unix

package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"muster/internal/store"
)

// readable lists what others than the owner may do something with, by its path in a folder.
func readable(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			rel, _ := filepath.Rel(root, name)
			out = append(out, rel)
		}
		return err
	})
	must(t, err)
	return out
}

// used opens a store, has it make a log with a record, and closes it again.
func used(t *testing.T, root string) *Store {
	t.Helper()
	s, err := Open(root, Options{})
	must(t, err)
	if _, err := s.Open(t.Context(), store.TopicPartition{Topic: "a", Partition: 0}, 1, store.LogConfig{SegmentBytes: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	must(t, s.Close())
	return s
}

func TestWhatAStoreMakesIsItsOwnersAlone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data")
	used(t, root)
	if got := readable(t, root); len(got) != 0 {
		t.Errorf("others can use %q", got)
	}
}

func TestWhatOthersCouldReadIsTakenFromThem(t *testing.T) {
	root := filepath.Join(t.TempDir(), "data")
	used(t, root)
	foreign := filepath.Join(root, "notes.txt")
	must(t, os.WriteFile(foreign, nil, 0o600))
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chmod(name, map[bool]fs.FileMode{true: 0o755, false: 0o644}[d.IsDir()])
		}
		return err
	})
	must(t, err)
	before := len(readable(t, root))
	s := used(t, root)
	if got := readable(t, root); len(got) != 1 || got[0] != "notes.txt" {
		t.Errorf("others can use %q, want only the file that is none of ours", got)
	}
	if n, err := s.Private(); n < 4 || n > before || err != nil {
		t.Errorf("%d of %d tightened, %v", n, before, err)
	}
	if n, err := used(t, root).Private(); n != 0 || err != nil {
		t.Errorf("once more: %d tightened, %v", n, err)
	}
}
