package redistest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	n.putBack(t, s)
	n.Start(t)
}

// RestoreCut is Restore of a snapshot whose append-only file ends after so many bytes. Redis
// itself is left to see to what is not whole at its end.
func (n *Node) RestoreCut(t testing.TB, s Snapshot, size int64) {
	t.Helper()
	n.putBack(t, s)
	if err := os.Truncate(n.lastPart(t), size); err != nil {
		t.Fatal(err)
	}
	n.Start(t)
}

// putBack ends the server, and puts its files back.
func (n *Node) putBack(t testing.TB, s Snapshot) {
	t.Helper()
	n.Kill()
	for _, name := range dataNames {
		if err := os.RemoveAll(filepath.Join(n.dir, name)); err != nil {
			t.Fatal(err)
		}
		copyAll(t, filepath.Join(s.dir, name), filepath.Join(n.dir, name))
	}
}

// FileSize returns how many bytes the last part of the append-only file has. What was
// acknowledged is in it.
func (n *Node) FileSize(t testing.TB) int64 {
	t.Helper()
	info, err := os.Stat(n.lastPart(t))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// lastPart returns the part of the append-only file to which the server appends.
func (n *Node) lastPart(t testing.TB) string {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(n.dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(parts) == 0 {
		t.Fatalf("there is no append-only file: %v", err)
	}
	return slices.MaxFunc(parts, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
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

// Cut ends the server as a power cut does that takes the end of its append-only file along,
// at whatever byte that is, and starts it again. lose says how many bytes go, of so many in
// the last part of the file.
func (n *Node) Cut(t testing.TB, lose func(size int64) int64) {
	t.Helper()
	n.Kill()
	last := n.lastPart(t)
	info, err := os.Stat(last)
	if err == nil {
		err = os.Truncate(last, info.Size()-lose(info.Size()))
	}
	if err != nil {
		t.Fatal(err)
	}
	n.fix(t, last)
	n.Start(t)
}

// fix has a file end before the transaction that is not whole any more. Redis 7.0 itself
// leaves the beginning of it there when it loads the file, and at the next start takes
// what follows for the rest of it.
func (n *Node) fix(t testing.TB, file string) {
	t.Helper()
	checker := filepath.Join(filepath.Dir(n.binary), strings.Replace(filepath.Base(n.binary), "-server", "-check-aof", 1))
	if _, err := exec.LookPath(checker); err != nil {
		t.Skipf("there is no %s: %v", checker, err)
	}
	cmd := exec.Command(checker, "--fix", file)
	cmd.Stdin = strings.NewReader("y\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", checker, err, out)
	}
}
