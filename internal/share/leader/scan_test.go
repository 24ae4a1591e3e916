package leader

import (
	"math"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store"
)

// Java's consumer asks for 50 MiB, of which it gets 500 records.
func TestAFetchReadsNoMoreThanItNeeds(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		assert.Equal(t, w.fetch("m", func(f *Fetch) { f.MaxBytes = 50 << 20 }), "0-2")
		w.logs.mu.Lock()
		defer w.logs.mu.Unlock()
		assert.True(t, w.logs.most <= lookBytes, "%d bytes", w.logs.most)
	})
}

func TestAScanEndsWhereTheWindowHasNoMoreRoom(t *testing.T) {
	var all []byte
	for _, base := range []int64{10, 12, 14, 5000} {
		tmpl := record.PlainTemplate()
		tmpl.BaseOffset = base
		b, err := record.Build(tmpl, []record.Record{{}, {OffsetDelta: 1}})
		assert.Must(t, err)
		all = append(all, b...)
	}
	for limit, want := range map[int64]struct {
		batches int
		next    int64
	}{12: {1, 12}, 13: {2, 14}, 14: {2, 14}, 16: {3, 5000}, math.MaxInt64: {4, 5002}} {
		read, err := scan(&partition.Fetched{Records: store.BytesRecords(all)}, 10, limit, false)
		assert.Must(t, err)
		assert.True(t, len(read.batches) == want.batches && len(read.places) == want.batches && read.next == want.next, "limit %d: %+v", limit, read)
	}
	read, err := scan(&partition.Fetched{Records: store.BytesRecords(all[3*len(all)/4:])}, 16, 2016, false)
	assert.Must(t, err)
	assert.Equal(t, read.next, 5000, "where a hole ends that is larger than the window")
}

func TestAFetchGoesOnBehindMoreThanItLooksAtAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set.Committed, w.set.Window = true, 2
		const batches = 3 * maxLooks
		for i := range int32(batches - 1) {
			w.transact(7, 2*i, 2, "")
		}
		w.transact(7, 2*(batches-1), 2, "abort")
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "m", wait
		began := time.Now()
		for {
			got := w.l.Acquire(t.Context(), w.in(), f)
			if s := show(&got); s != "" {
				assert.Equal(t, s, "96-96", "the marker")
				break
			}
			select {
			case <-wait.C:
			case <-time.After(time.Minute):
			}
		}
		assert.Equal(t, time.Since(began), 0, "waited")
	})
}
