package partition

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"muster/internal/store"
)

// TestReadersOfCommittedRecordsFollow has producers whose transactions overlap, and
// readers that are always at the end of what is stable.
func TestReadersOfCommittedRecordsFollow(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, map[string]string{"segment.bytes": "16384"})
		const producers, transactions, readers = 4, 25, 2
		var writing, reading sync.WaitGroup
		for id := range int64(producers) {
			writing.Go(func() {
				next := int32(0)
				for i := range transactions {
					for range 1 + (i+int(id))%3 {
						how := oldTxn
						how.Acks = []int16{1, AcksAll}[i%2]
						if a := r.produce(r.txnBatch(producerAt{id, 0, next}, 2), how); a.Err != nil {
							t.Errorf("producer %d: %+v", id, a)
							return
						}
						next += 2
					}
					if err := await(t, r.beginMarker(marker(id, 0, (i+int(id))%2 == 0))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		done, end := context.WithCancel(t.Context())
		got := make([][]int64, readers)
		for i := range readers {
			reading.Go(func() { got[i] = r.follow(done, 300+1000*i) })
		}
		writing.Wait()
		end()
		reading.Wait()
		var h history
		h.read(r.rig)
		lso := r.part().LastStableOffset()
		if lso != r.part().LogEndOffset() {
			t.Errorf("all have ended, and the last stable offset is %d of %d", lso, r.part().LogEndOffset())
		}
		want := h.committed(0, lso)
		for _, offsets := range got {
			if !slices.Equal(offsets, want) {
				t.Errorf("a reader got\n%v, want\n%v", offsets, want)
			}
		}
	})
}

// follow reads as clients do until the end, once there is one, and returns the
// offsets that it got.
func (r *rig) follow(done context.Context, maxBytes int) (out []int64) {
	w := NewWaiter()
	r.part().WatchCommitted(w)
	defer r.part().Unwatch(w)
	for offset, last := int64(0), int64(0); ; {
		over := done.Err() != nil
		batches, f := r.fetch(offset, true, maxBytes)
		if f.LastStableOffset < last || f.LastStableOffset > f.HighWatermark {
			r.t.Errorf("the last stable offset went from %d to %d of %d", last, f.LastStableOffset, f.HighWatermark)
		}
		last = f.LastStableOffset
		got, next := kept(batches, f.Aborted)
		out = append(out, got...)
		if len(batches) > 0 {
			offset = next
			continue
		}
		if over {
			return out
		}
		select {
		case <-w.C:
		case <-done.Done():
		case <-time.After(20 * time.Second):
			r.t.Errorf("nobody woke who waits at %d of %d", offset, r.part().LastStableOffset())
			return out
		}
	}
}
