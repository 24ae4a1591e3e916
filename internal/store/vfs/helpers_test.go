package vfs_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"path"
	"testing"

	"muster/internal/assert"
	"muster/internal/store/vfs"
)

// seeds is how many crashes a test looks at: enough that each outcome a test
// waits for, one in a few dozen, is certain to come up.
const seeds = 500

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, fsys vfs.FS, name string) vfs.File {
	t.Helper()
	f, err := fsys.Create(name)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func write(t testing.TB, f vfs.File, off int64, data string) {
	t.Helper()
	n, err := f.WriteAt([]byte(data), off)
	must(t, err)
	assert.MustTrue(t, n == len(data), "wrote %d of %d bytes", n, len(data))
}

// createSynced makes a file that no crash can take.
func createSynced(t testing.TB, fsys vfs.FS, name, data string) vfs.File {
	t.Helper()
	f := create(t, fsys, name)
	write(t, f, 0, data)
	must(t, f.Datasync())
	must(t, fsys.SyncDir(path.Dir(name)))
	return f
}

func contents(t testing.TB, f vfs.File) string {
	t.Helper()
	size, err := f.Size()
	must(t, err)
	buf := make([]byte, size)
	if n, err := f.ReadAt(buf, 0); err != nil && (err != io.EOF || n != len(buf)) {
		t.Fatal(err)
	}
	return string(buf)
}

func read(t testing.TB, fsys vfs.FS, name string) string {
	t.Helper()
	f, err := fsys.Open(name)
	must(t, err)
	defer f.Close()
	return contents(t, f)
}

// dump gives every name below root, with the content of files. Folders end in
// a slash.
func dump(t testing.TB, fsys vfs.FS, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	var visit func(dir, prefix string)
	visit = func(dir, prefix string) {
		list, err := fsys.ReadDir(dir)
		must(t, err)
		for _, e := range list {
			if e.IsDir() {
				all[prefix+e.Name()+"/"] = ""
				visit(path.Join(dir, e.Name()), prefix+e.Name()+"/")
				continue
			}
			all[prefix+e.Name()] = read(t, fsys, path.Join(dir, e.Name()))
		}
	}
	visit(root, "")
	return all
}

// letters is data in which no byte is zero, and no two sectors are the same.
func letters(n int, from byte) string {
	var b bytes.Buffer
	for i := range n {
		b.WriteByte(from + byte(i/512%26))
	}
	return b.String()
}
