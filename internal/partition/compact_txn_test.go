package partition

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// compacted are settings under which compaction takes all that it may.
var compacted = map[string]string{
	"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "segment.bytes": "16384", "delete.retention.ms": "60000",
}

// fill rolls the segment, so that what is before may be compacted, and compacts.
func (r *txnRig) fill() {
	r.t.Helper()
	for range 20 {
		if a := r.append(r.batch(plain, 1, "filler"+string(make([]byte, 1000))), AcksAll); a.Err != nil {
			r.t.Fatal(a.Err)
		}
	}
	r.each(r.t.Context(), "compaction", (*Partition).compact)
}

// keyed is what readers of committed records get, who drop what is aborted.
func (r *rig) keyed(maxBytes int) (out []string) {
	r.t.Helper()
	for offset := r.part().LogStartOffset(); offset < r.part().LastStableOffset(); {
		batches, f := r.fetch(offset, true, maxBytes)
		if len(batches) == 0 {
			return out
		}
		aborted, list := map[int64]bool{}, f.Aborted
		for _, b := range batches {
			for len(list) > 0 && list[0].FirstOffset <= b.LastOffset() {
				aborted[list[0].ProducerID] = true
				list = list[1:]
			}
			if m, ok, _ := b.Marker(); b.Control() && ok && !m.Commit {
				delete(aborted, b.ProducerID())
			}
			if !b.Control() && !(b.Transactional() && aborted[b.ProducerID()]) {
				_ = b.Each(func(x *record.Record) error {
					if at := b.BaseOffset() + int64(x.OffsetDelta); at >= offset && len(x.Key) < 10 {
						out = append(out, fmt.Sprintf("%s@%d", x.Key, at))
					}
					return nil
				})
			}
			offset = b.LastOffset() + 1
		}
	}
	return out
}

func TestCompactAborted(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, compacted)
		r.wantAppend(r.batch(plain, 1, "key"), 0)
		r.wantProduce(r.txnBatch(producerAt{7, 0, 0}, 1, "key"), oldTxn, 1)
		r.wantMarker(marker(7, 0, false), nil, 1)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 0}, 1, "other"), oldTxn, 3)
		r.wantProduce(r.txnBatch(producerAt{8, 0, 1}, 1, "other"), oldTxn, 4)
		r.wantMarker(marker(8, 0, true), nil, 1)
		r.fill()
		if got := fmt.Sprint(r.keyed(1 << 20)); got != "[key@0 other@4]" {
			t.Errorf("%s are left: an aborted record superseded a committed one, or did not go", got)
		}
		batches, _ := r.fetch(0, false, 1<<20)
		for _, b := range batches {
			if b.BaseOffset() == 1 && b.Count() > 0 {
				t.Error("an aborted record is left")
			}
		}
	})
}

// TestCompactKeepsMarkers looks for the marker of each aborted transaction that is
// listed: clients drop records until they find it.
func TestCompactKeepsMarkers(t *testing.T) {
	onEngines(t, func(t *testing.T, s store.Store) {
		r := newTxnRig(t, s, compacted)
		for i := range int64(3) {
			r.wantProduce(r.txnBatch(producerAt{7, 0, int32(i)}, 1, "key"), oldTxn, 2*i)
			r.wantMarker(marker(7, 0, i == 2), nil, 1)
		}
		for range 3 {
			r.fill()
			batches, f := r.fetch(0, true, 1<<20)
			for _, x := range f.Aborted {
				if !slices.ContainsFunc(batches, func(b record.Batch) bool {
					m, ok, err := b.Marker()
					return b.Control() && b.BaseOffset() == x.LastOffset && ok && err == nil && !m.Commit
				}) {
					t.Errorf("%+v is listed, and its marker is gone", x)
				}
			}
			if got := fmt.Sprint(r.keyed(1 << 20)); got != "[key@4]" {
				t.Errorf("%s are left", got)
			}
			r.now = r.now.Add(time.Hour)
		}
		must(t, r.part().Reopen(t.Context()))
		if x := r.part().producers[7]; x == nil || x.CoordinatorEpoch != 3 || len(x.Batches) == 0 {
			t.Errorf("its producer is forgotten: %+v", x)
		}
	})
}

// TestCompactionNeverChangesWhatIsCommitted compacts amid random transactions.
func TestCompactionNeverChangesWhatIsCommitted(t *testing.T) {
	for seed := range uint64(3) {
		onEngines(t, func(t *testing.T, s store.Store) {
			r := newTxnRig(t, s, compacted)
			rng := rand.New(rand.NewPCG(seed, 2))
			newest := map[string]int64{}
			pending, next := map[int64]map[string]int64{}, map[int64]int32{}
			for range 300 {
				id := int64(1 + rng.IntN(4))
				switch n := rng.IntN(10); {
				case n < 6:
					key := fmt.Sprint("k", rng.IntN(6))
					a := r.produce(r.txnBatch(producerAt{id, 0, next[id]}, 1, key), oldTxn)
					if a.Err != nil {
						t.Fatal(a)
					}
					next[id]++
					if pending[id] == nil {
						pending[id] = map[string]int64{}
					}
					pending[id][key] = a.BaseOffset
				case n < 9:
					commit := rng.IntN(2) == 0
					if err := await(t, r.beginMarker(marker(id, 0, commit))); err != nil {
						t.Fatal(err)
					}
					for key, at := range pending[id] {
						if commit {
							newest[key] = max(newest[key], at)
						}
					}
					delete(pending, id)
				default:
					r.fill()
					r.now = r.now.Add(time.Duration(rng.IntN(3)) * time.Minute)
				}
			}
			for id := range pending {
				if err := await(t, r.beginMarker(marker(id, 0, false))); err != nil {
					t.Fatal(err)
				}
			}
			r.fill()
			for _, size := range []int{1 << 20, 1} {
				got := map[string]int64{}
				for _, text := range r.keyed(size) {
					var at int64
					if _, err := fmt.Sscanf(text[3:], "%d", &at); err != nil {
						t.Fatal(text, err)
					}
					got[text[:2]] = at
				}
				if fmt.Sprint(got) != fmt.Sprint(newest) {
					t.Fatalf("the newest are %v, want %v", got, newest)
				}
			}
		})
	}
}
