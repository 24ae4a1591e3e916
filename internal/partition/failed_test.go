package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

// TestAFailedLogIsToldAndMendedWithoutAnAppend has a disk that fails for a while.
func TestAFailedLogIsToldAndMendedWithoutAnAppend(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	r.wantAppend(r.batch(plain, 1, "kept"), 0)
	if n, _ := r.Failed(); n != 0 {
		t.Errorf("%d failed of a disk that is well", n)
	}
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return errors.New("medium error")
		}
		return nil
	})
	if a := r.append(r.batch(plain, 1, "lost"), AcksAll); !errors.Is(a.Err, kerr.KafkaStorageError) {
		t.Fatalf("got %+v", a)
	}
	if n, one := r.Failed(); n != 1 || one != "t-0" {
		t.Errorf("%d failed, of which one is %s", n, one)
	}
	fs.SetHook(nil)
	r.Mend(t.Context())
	if n, _ := r.Failed(); n != 0 {
		t.Errorf("%d failed of a disk that is well again", n)
	}
	r.wantAppend(r.batch(plain, 1, "next"), 1)
}

// TestALogThatFailsInTheBackgroundIsMended has a sync fail that no producer waits for, as
// when a file of the journal is to be used again.
func TestALogThatFailsInTheBackgroundIsMended(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	r.wantAppend(r.batch(plain, 1, "kept"), 0)
	if a := r.append(r.batch(plain, 1, "lost"), 1); a.Err != nil {
		t.Fatal(a.Err)
	}
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return errors.New("medium error")
		}
		return nil
	})
	p := r.part()
	log := p.log.Load()
	flushed := make(chan error, 1)
	log.Flush(func(err error) { flushed <- err })
	if <-flushed == nil {
		t.Fatal("the sync did not fail")
	}
	if n, one := r.Failed(); n != 1 || one != "t-0" {
		t.Errorf("%d failed, of which one is %s", n, one)
	}
	fs.SetHook(nil)
	r.Mend(t.Context())
	if p.log.Load() == log {
		t.Error("the log was not opened again")
	}
}

// meeting is a store in which every Open waits for another one.
type meeting struct {
	store.Store
	mu      sync.Mutex
	waiting chan struct{}
}

func (m *meeting) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	m.mu.Lock()
	if m.waiting == nil {
		met := make(chan struct{})
		m.waiting = met
		m.mu.Unlock()
		select {
		case <-met:
		case <-time.After(time.Minute):
			return nil, fmt.Errorf("%v is opened alone", tp)
		}
	} else {
		close(m.waiting)
		m.waiting = nil
		m.mu.Unlock()
	}
	return m.Store.Open(ctx, tp, epoch, cfg)
}

// TestPartitionsAreOpenedSideBySide has topics of one partition, and one of many.
func TestPartitionsAreOpenedSideBySide(t *testing.T) {
	for _, counts := range [][]int{{1, 1, 1, 1}, {6}} {
		m := NewManager(Options{Store: &meeting{Store: mem.New()}, Self: 1, Logger: slog.New(slog.DiscardHandler)})
		empty := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1})
		edit := empty.Edit()
		for i, n := range counts {
			topic := metadata.Topic{Name: fmt.Sprint("t", i)}
			for range n {
				topic.Partitions = append(topic.Partitions, metadata.Partition{Leader: 1})
			}
			edit.PutTopic(topic)
		}
		if err := m.Apply(t.Context(), empty, edit.Image(), edit.Changed()); err != nil {
			t.Error(err)
		}
		for i, n := range counts {
			for p := range n {
				if m.Get(fmt.Sprint("t", i), int32(p)) == nil {
					t.Errorf("t%d-%d is not there", i, p)
				}
			}
		}
	}
}

// A panic while an append begins ends the connection of its request. The partition is
// loaded again, and all others go on, however often that happens.
func TestAPanicWhileAnAppendBeginsLeavesThePartitionUsable(t *testing.T) {
	s, r := newPipe(t)
	for round := range maxUnderWay + 1 { // Each would keep a slot for ever.
		s.boom = true
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			r.part().Append(t.Context(), r.batch(producerAt{7, 0, 0}, 1), Produce{Acks: AcksAll}, func(Appended) {})
		}()
		if !r.part().mu.TryLock() {
			t.Fatal("the partition is locked")
		}
		if n := len(r.part().underWay); n != 0 {
			t.Fatalf("%d are under way", n)
		}
		r.part().mu.Unlock()
		if round%2 == 0 {
			s.queue = nil
		}
		for s.next(true) { // The log may yet tell of the append.
		}
	}
	s.opens(r, producerAt{8, 0, 0}, 0)
}
