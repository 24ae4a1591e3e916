package sim

import "slices"

// compact keeps of a prefix the last record of each key, and some of the
// tombstones among them, sometimes in another order: with one record of each key
// it must not matter. Transactions that are open end the prefix; aborted records
// go, and markers once nothing of their transaction is left, but for each
// producer's last.
func (l *offsetsLog) compact() {
	w := l.w
	fates := l.fates()
	n := w.Rand.IntN(len(l.records) + 1)
	if first := slices.Index(fates, fateOpen); first >= 0 && n > first {
		n = first
		w.Count("compaction up to an open transaction")
	}
	keepTombstones := w.Rand.Float64()
	last, lastMarker := make(map[string]int, n), map[int64]int{}
	for i, r := range l.records[:n] {
		switch {
		case r.control != nil:
			lastMarker[r.producer.ID] = i
		case fates[i] == fateCounts:
			last[string(r.key)] = i
		}
	}
	kept := make([]stored, 0, len(l.records))
	left := map[int64]bool{} // records of the producer's transaction were kept
	inOrder := false
	for i, r := range l.records[:n] {
		switch {
		case r.control != nil:
			if left[r.producer.ID] || lastMarker[r.producer.ID] == i || w.Chance(keepTombstones) {
				kept = append(kept, r)
				inOrder = true
			}
			left[r.producer.ID] = false
		case fates[i] == fateCounts && last[string(r.key)] == i && (r.value != nil || w.Chance(keepTombstones)):
			kept = append(kept, r)
			if r.producer != nil {
				left[r.producer.ID] = true
			}
		case fates[i] == fateAborted:
			w.Count("aborted record compacted away")
		}
	}
	w.Tracef("log: compacted the first %d of %d records to %d", n, len(l.records), len(kept))
	if len(kept) < n {
		w.Count("compaction")
	}
	if !inOrder && w.Rand.IntN(2) == 0 {
		w.Rand.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	}
	l.records = append(kept, l.records[n:]...)
	l.said.records, l.history = len(l.records), nil
}

// fate is what became of a record.
type fate int8

const (
	fateCounts fate = iota
	fateAborted
	fateOpen
)

// fates says what became of each record.
func (l *offsetsLog) fates() []fate {
	out := make([]fate, len(l.records))
	open := map[int64][]int{}
	for i, r := range l.records {
		switch {
		case r.producer == nil:
		case r.control == nil:
			out[i] = fateOpen
			open[r.producer.ID] = append(open[r.producer.ID], i)
		default:
			for _, j := range open[r.producer.ID] {
				if out[j] = fateCounts; !r.control.Commit {
					out[j] = fateAborted
				}
			}
			delete(open, r.producer.ID)
		}
	}
	return out
}
