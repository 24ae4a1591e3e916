package disk

import (
	"context"
	"io/fs"
	"path"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// Logs that always have someone waiting must leave the syncers to others.
func TestALogIsFlushedThoughOthersAreBusy(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	var logs []store.Log
	for i := range syncers + 1 {
		l := b.open(store.TopicPartition{Topic: "busy", Partition: int32(i)}, b.st)
		_, err := l.Append(context.Background(), one("k", "v"))
		b.must(err)
		logs = append(logs, l)
	}
	syncing, goOn := make(chan string, 2*syncers+1), make(chan struct{})
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			syncing <- path.Base(path.Dir(op.Name))
			<-goOn
		}
		return nil
	})
	next := func() string {
		t.Helper()
		select {
		case name := <-syncing:
			return name
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is being synced")
		}
		return ""
	}
	flushed := make(chan error, 2*syncers+1)
	flush := func(l store.Log) { l.Flush(func(err error) { flushed <- err }) }
	for _, l := range logs[:syncers] {
		flush(l)
		next()
	}
	// Every syncer has a log now. More is asked of each, and then a first flush
	// of another.
	for _, l := range logs[:syncers] {
		_, err := l.Append(context.Background(), one("k", "again"))
		b.must(err)
		flush(l)
	}
	flush(logs[syncers])
	goOn <- struct{}{}
	assert.Equal(t, next(), "busy-4", "synced again while busy-4 waits for its first")
	close(goOn)
	for range 2*syncers + 1 {
		b.must(<-flushed)
	}
}

func TestHowLongAFlushTookIsTold(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.must(b.st.Close())
	told := 0
	var err error
	b.st, err = Open(worldRoot, Options{FS: b.fs, Flushed: func(took time.Duration) {
		if took >= 0 {
			told++
		}
	}})
	b.must(err)
	b.reopen()
	flush := func() error {
		done := make(chan error, 1)
		b.log.Flush(func(err error) { done <- err })
		return <-done
	}
	b.must(flush()) // There is nothing to flush.
	b.must(b.append("v"))
	b.must(flush())
	assert.True(t, told == 1, "told of %d flushes", told)
	b.must(b.append("w"))
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return fs.ErrInvalid
		}
		return nil
	})
	assert.True(t, flush() != nil && told == 1, "told of %d flushes, of which one failed", told)
}
