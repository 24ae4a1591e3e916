package partition

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/store/vfs"
)

// A live producer is known after a crash, whatever took its batches away before.
func TestProducersOfRecordsThatAreGoneAreKnownAfterACrash(t *testing.T) {
	for name, take := range map[string]func(*rig){
		"retention": func(r *rig) {
			r.now = r.now.Add(time.Hour)
			r.each(r.t.Context(), "retention", (*Partition).retain)
		},
		"DeleteRecords of all": func(r *rig) {
			if _, err := r.part().DeleteBefore(r.t.Context(), -1); err != nil {
				r.t.Fatal(err)
			}
		},
		"DeleteRecords of some": func(r *rig) {
			if _, err := r.part().DeleteBefore(r.t.Context(), 20); err != nil {
				r.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := diskStore(t, fs)
			set := map[string]string{"retention.ms": "60000", "segment.bytes": "1048576"}
			r := newRig(t, s, set)
			for i := range 10 {
				r.wantAppend(r.batch(producerAt{7, 0, int32(i)}, 1), int64(i))
			}
			for i := range 20 {
				r.wantAppend(r.batch(producerAt{8, 0, int32(i)}, 1), int64(10+i))
			}
			take(r)
			if r.part().LogStartOffset() < 20 {
				t.Fatalf("log starts at %d, nothing of producer 7 was to be left", r.part().LogStartOffset())
			}
			r = newRig(t, diskStore(t, fs.CrashKeepAll()), set)
			r.wantAppend(r.batch(producerAt{7, 0, 9}, 1), 9) // A retry, which is answered and not stored again.
			r.wantRefused(r.batch(producerAt{7, 0, 11}, 1), kerr.OutOfOrderSequenceNumber)
			r.wantAppend(r.batch(producerAt{7, 0, 10}, 1), 30)
			r.wantAppend(r.batch(producerAt{8, 0, 20}, 1), 31)
		})
	}
}
