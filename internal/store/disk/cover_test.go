package disk

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// produce appends a batch of a producer.
func (b *bed) produce(id int64, sequence int32) {
	b.Helper()
	tmpl := record.PlainTemplate()
	tmpl.ProducerID, tmpl.ProducerEpoch, tmpl.BaseSequence = id, 0, sequence
	batch, err := record.Build(tmpl, []record.Record{{Timestamp: 1000, Key: []byte("k"), Value: []byte("v")}})
	b.must(err)
	_, err = b.log.Append(context.Background(), batch)
	b.must(err)
}

// wantProducer demands that the last sequence of a producer is known.
func (b *bed) wantProducer(id int64, sequence int32) {
	b.Helper()
	known, _, err := completeProducers(b.log)
	b.must(err)
	p := known[id]
	assert.MustTrue(b, p != nil && p.Batches[len(p.Batches)-1].LastSequence == sequence, "producer %d is known as %+v, want sequence %d", id, p, sequence)
}

var expireAll = store.Retention{Now: time.UnixMilli(1 << 40), MaxAge: 0, MaxBytes: -1, NextOffset: 1 << 40}

func TestRetentionOnAFullDiskMakesRoomAndThenSavesTheProducers(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	for i := range 5 {
		b.produce(7, int32(i))
	}
	b.fail(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && strings.Contains(op.Name, snapshotSuffix) {
			if _, err := b.fs.Stat(segmentPath("var/data/orders-0", 0)); err == nil {
				return syscall.ENOSPC
			}
		}
		return nil
	})
	b.must(b.log.Retain(context.Background(), expireAll))
	b.fail(nil)
	if start, _ := b.log.Bounds(); start != 5 {
		t.Fatalf("log starts at %d: the disk stays full", start)
	}
	b.crash((*vfs.Mem).CrashStrict)
	b.wantProducer(7, 4)
}

func TestRetentionDropsNothingWhoseProducersCannotBeSaved(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	b.produce(7, 0)
	b.fail(failing(vfs.OpDatasync, snapshotSuffix+tmpSuffix))
	b.want(b.log.Retain(context.Background(), expireAll), store.ErrStorage)
	b.want(b.log.Trim(context.Background(), 1), store.ErrStorage)
	if start, _ := b.log.Bounds(); start != 0 {
		t.Errorf("log starts at %d", start)
	}
	b.fail(nil)
	b.must(b.log.Trim(context.Background(), 1))
	b.crash((*vfs.Mem).CrashStrict)
	b.wantProducer(7, 0)
}

// What no one needs is not written again and again.
func TestProducersAreSavedOnceForWhatGoes(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	for i := range 10 {
		b.produce(7, int32(i))
	}
	snapshots := func() (out []string) {
		for _, name := range b.names() {
			if strings.HasSuffix(name, snapshotSuffix) {
				out = append(out, name)
			}
		}
		return out
	}
	b.must(b.log.Trim(context.Background(), 5))
	if got := snapshots(); len(got) != 1 || got[0] != "00000000000000000005.snapshot" {
		t.Errorf("after a trim to 5 there are %v", got)
	}
	b.crash((*vfs.Mem).CrashKeepAll)
	b.must(b.log.SaveProducers(context.Background(), nil, 9))
	b.crash((*vfs.Mem).CrashKeepAll)
	b.must(b.log.Trim(context.Background(), 7))
	if got := snapshots(); len(got) != 2 || got[1] != "00000000000000000009.snapshot" {
		t.Errorf("after a trim to 7 there are %v", got)
	}
}
