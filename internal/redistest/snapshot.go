package redistest

import (
	"os"
	"path/filepath"
	"testing"
)

// Snapshot is a copy of what a server has stored.
type Snapshot struct{ dir string }

// dataNames are where a server keeps what it has stored: the append-only file,
// in parts, and snapshots of its own.
var dataNames = []string{"appendonlydir", "dump.rdb"}

// Snapshot copies what the server has stored so far. Everything that was
// acknowledged is in its file.
func (n *Node) Snapshot(t testing.TB) Snapshot {
	t.Helper()
	s := Snapshot{dir: t.TempDir()}
	for _, name := range dataNames {
		copyAll(t, filepath.Join(n.dir, name), filepath.Join(s.dir, name))
	}
	return s
}

// Restore ends the server and starts it again with what it had stored at a
// snapshot, as one does that lost its last seconds.
func (n *Node) Restore(t testing.TB, s Snapshot) {
	t.Helper()
	n.Kill()
	for _, name := range dataNames {
		if err := os.RemoveAll(filepath.Join(n.dir, name)); err != nil {
			t.Fatal(err)
		}
		copyAll(t, filepath.Join(s.dir, name), filepath.Join(n.dir, name))
	}
	n.Start(t)
}

// copyAll copies a file, or a folder, if it exists.
func copyAll(t testing.TB, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	switch {
	case os.IsNotExist(err):
	case err != nil:
		t.Fatal(err)
	case info.IsDir():
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	default:
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
