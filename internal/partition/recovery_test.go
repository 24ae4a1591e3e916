package partition

import (
	"context"
	"errors"
	"path"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// smallSegments has some dozens of batches in each.
var smallSegments = map[string]string{"segment.bytes": "16384"}

// appendOfThree appends n batches of three producers.
func (r *rig) appendOfThree(n int) {
	r.t.Helper()
	for i := range n {
		r.wantAppend(r.batch(producerAt{int64(i % 3), 0, int32(i / 3)}, 1), int64(i))
	}
}

// The state of the producers is saved when a segment is closed, so that a start
// has to read the last one only. Here it cannot read any other.
func TestProducerStateSurvivesCloseAndCrash(t *testing.T) {
	for name, reopen := range map[string]func(*rig, *vfs.Mem, store.Store) *vfs.Mem{
		"clean": func(r *rig, fs *vfs.Mem, s store.Store) *vfs.Mem {
			must(t, errors.Join(r.Close(context.Background()), s.Close()))
			return fs
		},
		"killed":        func(_ *rig, fs *vfs.Mem, _ store.Store) *vfs.Mem { return fs.CrashKeepAll() },
		"loss of power": func(_ *rig, fs *vfs.Mem, _ store.Store) *vfs.Mem { return fs.CrashStrict() },
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := diskStore(t, fs)
			r := newRig(t, s, smallSegments)
			r.appendOfThree(600)
			want := r.part().Producers()
			fs = reopen(r, fs, s)
			last := lastSegment(t, fs)
			fs.SetHook(func(op vfs.Op) error {
				// A loss of power takes the indexes, which are made anew.
				if name != "loss of power" && op.Kind == vfs.OpRead && op.Bytes > 0 && strings.HasSuffix(op.Name, ".log") && path.Base(op.Name) != last {
					return syscall.EIO
				}
				return nil
			})
			r = newRig(t, diskStore(t, fs), smallSegments)
			fs.SetHook(nil)
			if got := r.part().Producers(); !reflect.DeepEqual(got, want) {
				t.Errorf("producers are\n%+v, were\n%+v", got, want)
			}
			r.now = r.now.Add(soon)
			for id := range int64(3) {
				r.wantAppend(r.batch(producerAt{id, 0, 199}, 1), 597+id)
				r.wantRefused(r.batch(producerAt{id, 0, 201}, 1), kerr.OutOfOrderSequenceNumber)
				r.wantAppend(r.batch(producerAt{id, 0, 200}, 1), 600+id)
			}
		})
	}
}

// A log whose producers are none is not read to its end at each start to find that out,
// unless it is small: then a file for it would cost more.
func TestALargeLogWithoutProducersIsNotReadAtAStart(t *testing.T) {
	for name, tt := range map[string]struct {
		bytes   int
		segment string
		kill    bool
		reads   bool // more than its last segment
	}{
		"large, clean":   {2 * worthRead, "1073741824", false, false},
		"small, clean":   {worthRead / 2, "1073741824", false, true},
		"large, killed":  {6 * worthRead, "2097152", true, false},
		"small segments": {worthRead / 2, "16384", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			s := diskStore(t, fs)
			set := map[string]string{"segment.bytes": tt.segment}
			r := newRig(t, s, set)
			value := strings.Repeat("v", 8<<10)
			for i := range tt.bytes / (2 * len(value)) {
				r.wantAppend(r.batch(plain, 1, value), int64(i)) // Key and value are the same.
			}
			end := r.part().LogEndOffset()
			if tt.kill {
				fs = fs.CrashKeepAll()
			} else if err := errors.Join(r.Close(context.Background()), s.Close()); err != nil {
				t.Fatal(err)
			}
			last, read := lastSegment(t, fs), 0
			fs.SetHook(func(op vfs.Op) error {
				if op.Kind == vfs.OpRead && strings.HasSuffix(op.Name, ".log") && (!tt.kill || path.Base(op.Name) != last) {
					read += op.Bytes
				}
				return nil
			})
			r = newRig(t, diskStore(t, fs), set)
			fs.SetHook(nil)
			if got := r.part().LogEndOffset(); got != end {
				t.Errorf("it ends at %d, did at %d", got, end)
			}
			if reads := read > worthRead/4; reads != tt.reads {
				t.Errorf("%d bytes were read", read)
			}
		})
	}
}

func lastSegment(t *testing.T, fs vfs.FS) (last string) {
	t.Helper()
	entries, err := fs.ReadDir("data/" + testTopic + "-0")
	must(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".log") {
			last = e.Name()
		}
	}
	return last
}

// A snapshot is of the very batches before its offset, no more and no less:
// those from there on are read in addition.
func TestASnapshotHoldsTheProducersAsOfItsOffset(t *testing.T) {
	r := newRig(t, diskStore(t, vfs.NewMem()), smallSegments)
	l := r.part().log.Load()
	seen := map[int64]bool{}
	for i := range 600 {
		r.wantAppend(r.batch(producerAt{int64(i % 3), 0, int32(i / 3)}, 1), int64(i))
		saved, offset, err := l.Producers(t.Context())
		must(t, err)
		if seen[offset] {
			continue
		}
		seen[offset] = true
		want := store.ProducerMap{}
		records, err := l.Read(t.Context(), store.ReadRequest{NextOffset: offset, MaxBytes: 1 << 20, MinOne: true})
		for at := int64(0); at < offset; {
			must(t, err)
			b, loadErr := records.Load()
			records.Release()
			if loadErr != nil {
				t.Fatal(loadErr)
			}
			for len(b) > 0 {
				var batch record.Batch
				if batch, b, err = record.Next(b); err != nil {
					t.Fatal(err)
				}
				if _, err := want.Note(batch, batch.MaxTimestamp()); err != nil {
					t.Fatal(err)
				}
				at = batch.LastOffset() + 1
			}
			records, err = l.Read(t.Context(), store.ReadRequest{Offset: at, NextOffset: offset, MaxBytes: 1 << 20, MinOne: true})
		}
		if len(saved)+len(want) > 0 && !reflect.DeepEqual(saved, want.List()) {
			t.Fatalf("saved as of %d:\n%+v, want\n%+v", offset, saved, want.List())
		}
	}
	if len(seen) < 3 {
		t.Errorf("there were snapshots as of %v only", seen)
	}
}

// A live producer is known after a crash, whatever took its batches away before.
func TestProducersOfRecordsThatAreGoneAreKnownAfterACrash(t *testing.T) {
	for name, take := range map[string]func(*rig){
		"retention": func(r *rig) {
			r.now = r.now.Add(time.Hour)
			r.each(r.t.Context(), "retention", (*Partition).Retain)
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
			r.now = r.now.Add(soon)
			r.wantAppend(r.batch(producerAt{7, 0, 9}, 1), 9) // A retry, which is answered and not stored again.
			r.wantRefused(r.batch(producerAt{7, 0, 11}, 1), kerr.OutOfOrderSequenceNumber)
			r.wantAppend(r.batch(producerAt{7, 0, 10}, 1), 30)
			r.wantAppend(r.batch(producerAt{8, 0, 20}, 1), 31)
		})
	}
}
