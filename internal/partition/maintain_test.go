package partition

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

// While a compaction stands still, what was written with acks=1 becomes durable.
// When the manager is told to stop, it does.
func TestACompactionDoesNotHoldUpTheFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		r := newRig(t, diskStore(t, fs), map[string]string{"cleanup.policy": "compact", "segment.bytes": "16384"})
		for i := range 400 {
			r.wantAppend(r.batch(plain, 1, "key"), int64(i))
		}
		var standing, syncs atomic.Int32
		goOn := make(chan struct{})
		fs.SetHook(func(op vfs.Op) error {
			switch {
			case op.Kind == vfs.OpCreate && strings.HasSuffix(op.Name, ".cleaned"):
				standing.Add(1)
				<-goOn
			case op.Kind == vfs.OpDatasync:
				syncs.Add(1)
			}
			return nil
		})
		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { r.Run(ctx); close(stopped) }()
		time.Sleep(time.Minute)
		if standing.Load() != 1 {
			t.Fatalf("%d compactions have begun", standing.Load())
		}
		before := syncs.Load()
		if a := r.append(r.batch(plain, 1, "key"), 1); a.Err != nil {
			t.Fatal(a.Err)
		}
		time.Sleep(3 * time.Second)
		if syncs.Load() == before {
			t.Error("nothing was flushed")
		}
		stop()
		close(goOn)
		<-stopped
		fs.SetHook(nil)
	})
}

// What was written with acks=1 is durable once the background flush has come by,
// and not before.
func TestTheBackgroundFlushMakesAcksOneDurable(t *testing.T) {
	fs := vfs.NewMem()
	r := newRig(t, diskStore(t, fs), nil)
	synced := make(chan struct{}, 10)
	for round := range 3 {
		if a := r.append(r.batch(plain, 1), 1); a.Err != nil {
			t.Fatal(a.Err)
		}
		lost := newRig(t, diskStore(t, fs.CrashStrict()), nil)
		if end := lost.part().LogEndOffset(); end != int64(round) {
			t.Fatalf("a loss of power left %d records of %d that were flushed", end, round)
		}
		fs.SetHook(func(op vfs.Op) error {
			if op.Kind == vfs.OpDatasync {
				synced <- struct{}{}
			}
			return nil
		})
		r.flushDirty()
		select {
		case <-synced:
		case <-time.After(time.Minute):
			t.Fatal("nothing was synced")
		}
		fs.SetHook(nil)
		// A flush of what is durable, or about to be, is answered after it.
		done := make(chan error, 1)
		r.part().log.Load().Flush(func(err error) { done <- err })
		must(t, <-done)
	}
}

func TestRetentionRunsOverThePartitions(t *testing.T) {
	r := newRig(t, diskStore(t, vfs.NewMem()), map[string]string{"retention.ms": "60000"})
	r.wantAppend(r.batch(plain, 1), 0)
	r.each(t.Context(), "retention", (*Partition).Retain)
	if got := r.part().LogStartOffset(); got != 0 {
		t.Errorf("log start %d, the record is young", got)
	}
	r.now = r.now.Add(time.Hour)
	r.each(t.Context(), "retention", (*Partition).Retain)
	if got := r.part().LogStartOffset(); got != 1 {
		t.Errorf("log start %d", got)
	}
}

// heldFlushes is a store whose logs are not durable until the test says so.
type heldFlushes struct {
	store.Store
	mu   sync.Mutex
	held []func(error)
}

func (h *heldFlushes) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.held)
}

func (h *heldFlushes) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (store.Log, error) {
	l, err := h.Store.Open(ctx, tp, epoch, cfg)
	return heldLog{l, h}, err
}

type heldLog struct {
	store.Log
	h *heldFlushes
}

func (l heldLog) Flush(done func(error)) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	l.h.held = append(l.h.held, done)
}

// What is not below the high watermark may yet vanish, so nothing may be dropped
// because of it, nor may it be dropped itself.
func TestRetentionAndCompactionLeaveWhatIsAboveTheHighWatermarkAlone(t *testing.T) {
	s := &heldFlushes{Store: mem.New()}
	r := newRig(t, s, map[string]string{"cleanup.policy": "compact,delete", "retention.ms": "60000", "min.cleanable.dirty.ratio": "0"})
	for range 2 {
		r.part().Append(t.Context(), r.batch(plain, 1, "same key"), Produce{Acks: AcksAll}, func(Appended) {})
	}
	size := r.part().Size()
	s.held[0](nil)
	if hw := r.part().HighWatermark(); hw != 1 {
		t.Fatalf("high watermark is %d", hw)
	}
	r.each(t.Context(), "compaction", (*Partition).compact)
	if got := r.part().Size(); got != size {
		t.Errorf("compaction left %d bytes of %d: the record that supersedes is not durable", got, size)
	}
	r.now = r.now.Add(time.Hour)
	r.each(t.Context(), "retention", (*Partition).Retain)
	if start := r.part().LogStartOffset(); start != 1 {
		t.Errorf("log starts at %d, the high watermark is 1", start)
	}
	r.now = r.now.Add(-time.Hour)
	r.part().Append(t.Context(), r.batch(plain, 1, "same key"), Produce{Acks: AcksAll}, func(Appended) {})
	for _, done := range s.held[1:] {
		done(nil)
	}
	size = r.part().Size()
	r.each(t.Context(), "compaction", (*Partition).compact)
	if got := r.part().Size(); got >= size {
		t.Errorf("compaction left %d bytes of %d", got, size)
	}
}
