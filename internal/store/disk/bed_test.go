package disk

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// bed is a store on a file system in memory with one open log, for tests of
// one failure each.
type bed struct {
	*testing.T
	fs  *vfs.Mem
	st  *Store
	tp  store.TopicPartition
	cfg store.LogConfig
	log store.Log
	// opts are those of the store, without its file system.
	opts Options

	mu   sync.Mutex
	hook func(vfs.Op) error
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBed(t *testing.T, cfg store.LogConfig) *bed { return newBedWith(t, cfg, Options{}) }

func newBedWith(t *testing.T, cfg store.LogConfig, opts Options) *bed {
	b := &bed{T: t, fs: vfs.NewMem(), tp: store.TopicPartition{Topic: "orders"}, cfg: cfg, opts: opts}
	b.start()
	t.Cleanup(func() {
		b.fail(nil)
		if b.st != nil {
			_ = b.st.Close()
		}
	})
	return b
}

// start opens the store and the log.
func (b *bed) start() {
	b.Helper()
	b.fs.SetHook(func(op vfs.Op) error {
		b.mu.Lock()
		hook := b.hook
		b.mu.Unlock()
		if hook == nil {
			return nil
		}
		return hook(op)
	})
	opts := b.opts
	opts.FS = b.fs
	st, err := Open(worldRoot, opts)
	b.must(err)
	b.st, b.log = st, b.open(b.tp, st)
}

func (b *bed) open(tp store.TopicPartition, st *Store) store.Log {
	b.Helper()
	l, err := st.Open(context.Background(), tp, 0, b.cfg)
	b.must(err)
	return l
}

// reopen opens the log again under the same epoch.
func (b *bed) reopen() {
	b.Helper()
	b.log = b.open(b.tp, b.st)
}

// crash replaces the file system by what a crash leaves, and starts anew.
func (b *bed) crash(do func(*vfs.Mem) *vfs.Mem) {
	b.Helper()
	old, st := b.fs, b.st
	b.fs = do(b.fs)
	old.StopAfter(old.Ops())
	_ = st.Close()
	b.start()
}

// fail has operations fail for which hook returns an error; nil ends that.
func (b *bed) fail(hook func(vfs.Op) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hook = hook
}

// failing makes a hook that fails operations of a kind on names with a suffix.
func failing(kind vfs.OpKind, suffix string) func(vfs.Op) error {
	return func(op vfs.Op) error {
		if op.Kind == kind && strings.HasSuffix(op.Name, suffix) {
			return syscall.EIO
		}
		return nil
	}
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) want(got, want error) {
	b.Helper()
	assert.MustErrorIs(b, got, want)
}

// append appends a batch of one record.
func (b *bed) append(value string) error {
	return b.put("key", value)
}

func (b *bed) put(key, value string) error {
	_, err := b.log.Append(context.Background(), one(key, value))
	return err
}

// roll starts a new segment.
func (b *bed) roll() {
	b.Helper()
	l := b.log.(*handle).log
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	b.must(l.roll())
}

// one makes a batch of one record.
func one(key, value string) record.Batch {
	batch, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: 1000, Key: []byte(key), Value: []byte(value)}})
	if err != nil {
		panic(err)
	}
	return batch
}

// values returns the values in the log, in order.
func (b *bed) values() (out []string) {
	b.Helper()
	content, err := readContent(b.log)
	b.must(err)
	for _, n := range content {
		out = append(out, n.value)
	}
	return out
}

// wantDurable demands that the log holds exactly these values once it is flushed, and after
// a loss of power.
func (b *bed) wantDurable(want ...string) {
	b.Helper()
	b.must(flush(b.log))
	b.wantValues(want...)
	b.crash((*vfs.Mem).CrashStrict)
	b.wantValues(want...)
}

// wantValues demands that the log holds exactly these values, in order.
func (b *bed) wantValues(want ...string) {
	b.Helper()
	got := b.values()
	assert.MustEqual(b, fmt.Sprint(got), fmt.Sprint(want), "log holds %v, want %v", got, want)
}

// names lists the files of the log.
func (b *bed) names() []string {
	b.Helper()
	entries, err := b.fs.ReadDir(b.log.(*handle).dir)
	b.must(err)
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}
