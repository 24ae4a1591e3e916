package window

import (
	"slices"
	"sort"
)

// Load returns a window as it was stored. Start is where it begins, by the group's settings
// if the stored one is -1.
//
// What was acquired is available again, with the count that was written last. Offsets between
// stored runs may have been delivered without that anything was said of them, and are read
// again (KAFKA-18494). Sparse says that the offsets of the log have holes.
func Load(set Settings, epochs Epochs, sparse bool, start int64, batches []StateBatch) *Partition {
	p := &Partition{set: set, epochs: epochs, sparse: sparse, start: start, next: start, writes: map[uint64]span{}}
	batches = slices.Clone(batches)
	sort.SliceStable(batches, func(i, j int) bool { return batches[i].First < batches[j].First })
	for _, b := range batches {
		b.First = max(b.First, p.next) // No two are of one offset, by right.
		if b.First > b.Last {
			continue
		}
		if b.First > p.next {
			p.append(b.First-1, is{state: Available})
		}
		to := is{state: Available, count: max(b.Count, 0)}
		switch {
		case b.State == Acknowledged:
			to.state = Acknowledged
		case b.State != Available && b.State != Acquired: // Among them what Kafka calls archiving, with a dead letter queue.
			to.state = Archived
		}
		p.append(b.Last, to)
	}
	p.advance()
	return p
}
