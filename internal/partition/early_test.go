package partition

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

// engines are the stores that a partition may have.
var engines = map[string]func(t *testing.T) store.Store{
	"mem":   func(*testing.T) store.Store { return mem.New() },
	"pipe":  func(*testing.T) store.Store { return &pipe{Store: mem.New(), free: true} },
	"disk":  func(t *testing.T) store.Store { return diskStore(t, vfs.NewMem()) },
	"redis": func(t *testing.T) store.Store { return redisStore(t, redistest.Single(t), "engine", time.Minute) },
}

// onEngines runs a test on each of them, with dense offsets.
func onEngines(t *testing.T, test func(t *testing.T, s store.Store)) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

var denseOffsets = map[string]string{"muster.redis.layout": "log"}

// TestABatchThatOvertookOneWhileTheLogWasNotOpenIsSentAgain has a producer with two
// batches under way. The first came before the log was open and was refused. Told
// that the second is out of order the producer would begin anew, and send both
// again under another epoch.
func TestABatchThatOvertookOneWhileTheLogWasNotOpenIsSentAgain(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newRig(t, s, denseOffsets)
		r.wantAppend(r.batch(producerAt{7, 0, 0}, 1), 0)
		r.wantAppend(r.batch(producerAt{8, 0, 0}, 1), 1)
		r.now = r.now.Add(time.Hour)
		must(t, r.part().Reopen(t.Context()))
		r.wantRefused(r.batch(producerAt{7, 0, 2}, 1), kerr.NotLeaderForPartition)
		r.wantRefused(r.batch(producerAt{7, 1, 2}, 1), kerr.NotLeaderForPartition)
		r.wantAppend(r.batch(producerAt{7, 0, 1}, 1), 2)
		r.wantAppend(r.batch(producerAt{7, 0, 2}, 1), 3)
		r.wantRefused(r.batch(producerAt{7, 0, 4}, 1), kerr.OutOfOrderSequenceNumber) // It has appended since.
		r.now = r.now.Add(soon - time.Millisecond)
		r.wantRefused(r.batch(producerAt{8, 0, 2}, 1), kerr.NotLeaderForPartition)
		r.now = r.now.Add(time.Millisecond)
		r.wantRefused(r.batch(producerAt{8, 0, 2}, 1), kerr.OutOfOrderSequenceNumber) // Nothing was overtaken.
	})
}

// TestNothingCanHaveOvertakenBeforeALogOfOurOwn has a log that no one knew of before it
// was open: what is out of order there is so for good.
func TestNothingCanHaveOvertakenBeforeALogOfOurOwn(t *testing.T) {
	r := newRig(t, mem.New(), nil)
	r.wantRefused(r.batch(producerAt{7, 0, 5}, 1), kerr.OutOfOrderSequenceNumber)
}
