package disk

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// TestMain lets garbage lie for longer: many short lives of stores leave much of it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	goleak.VerifyTestMain(m)
}

// countingFS counts the files that are open. It leaves syncs out: the test that
// uses it is about many logs, and no power fails.
type countingFS struct {
	vfs.FS
	open, peak atomic.Int64
}

func (c *countingFS) Create(name string) (vfs.File, error) { return c.count(c.FS.Create(name)) }
func (c *countingFS) Open(name string) (vfs.File, error)   { return c.count(c.FS.Open(name)) }
func (c *countingFS) SyncDir(string) error                 { return nil }

func (c *countingFS) count(f vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	n := c.open.Add(1)
	for {
		peak := c.peak.Load()
		if n <= peak || c.peak.CompareAndSwap(peak, n) {
			return &countedFile{File: f, fs: c}, nil
		}
	}
}

type countedFile struct {
	vfs.File
	fs *countingFS
}

func (f *countedFile) Datasync() error { return nil }

func (f *countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

// inParallel does something for n logs, as a broker does when it starts.
func inParallel(t *testing.T, n int, do func(i int) error) {
	t.Helper()
	var workers sync.WaitGroup
	var next atomic.Int64
	for range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := do(int(i)); err != nil {
					t.Errorf("log %d: %v", i, err)
					return
				}
			}
		})
	}
	workers.Wait()
}

func TestTenThousandPartitions(t *testing.T) {
	const limit = 256
	logs := 10_000
	if testing.Short() {
		logs = 1000
	}
	fs := &countingFS{FS: vfs.OS()}
	root := t.TempDir()
	name := func(i int) store.TopicPartition {
		return store.TopicPartition{Topic: fmt.Sprintf("topic-%d", i%100), Partition: int32(i / 100)}
	}
	start := func() *Store {
		st, err := Open(root, Options{FS: fs, MaxOpenFiles: limit})
		must(t, err)
		return st
	}
	checkOpen := func(when string) {
		t.Helper()
		if n := fs.open.Load(); n > limit {
			t.Errorf("%s: %d files are open, more than %d", when, n, limit)
		}
	}
	st := start()
	inParallel(t, logs, func(i int) error {
		l, err := st.Open(context.Background(), name(i), 1, store.LogConfig{})
		if err == nil {
			_, err = l.Append(context.Background(), one("log", fmt.Sprint(i)))
		}
		return err
	})
	checkOpen("after append")
	must(t, st.Close())
	assert.Equal(t, fs.open.Load(), 0, "files are open after close")
	st = start()
	defer st.Close()
	assert.True(t, st.WasClean(), "the stop was not clean")
	opened := make([]store.Log, logs)
	inParallel(t, logs, func(i int) (err error) {
		opened[i], err = st.Open(context.Background(), name(i), 1, store.LogConfig{})
		return err
	})
	checkOpen("after reopening")
	inParallel(t, logs, func(i int) error {
		content, err := readContent(opened[i])
		if err == nil && (len(content) != 1 || content[0].value != fmt.Sprint(i)) {
			err = fmt.Errorf("it holds %v", content)
		}
		return err
	})
	checkOpen("after reading")
	if n := fs.peak.Load(); n > limit+100 {
		t.Errorf("up to %d files were open, the limit is %d", n, limit)
	}
}
