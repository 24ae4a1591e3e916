package partition

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
