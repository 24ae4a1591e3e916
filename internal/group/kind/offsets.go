package kind

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

func (b *Base) ApplyOffset(r *schema.OffsetRecord) {
	t := b.Offsets[r.Topic]
	switch {
	case r.Value != nil:
		if t == nil {
			if b.Offsets == nil {
				b.Offsets = map[string]*TopicOffsets{}
			}
			t = &TopicOffsets{Parts: map[int32]Kept{}}
			b.Offsets[r.Topic] = t
		}
		t.put(r.Partition, r.Value)
	case t != nil:
		if delete(t.Parts, r.Partition); t.Len() == 0 {
			delete(b.Offsets, r.Topic)
		}
	}
}

// Committed yields the topics with their partitions that have offsets, in
// order, as they are when it is called.
func (b *Base) Committed() iter.Seq2[string, []int32] {
	topics := slices.Sorted(maps.Keys(b.Offsets))
	return func(yield func(string, []int32) bool) {
		for _, t := range topics {
			if !yield(t, b.Offsets[t].Partitions()) {
				return
			}
		}
	}
}

// Unstable is an offset that a transaction has committed, and that counts if and
// when the transaction does. Of one partition there may be several, in the order
// of their records.
type Unstable struct {
	Producer  int64
	Value     schema.Offset
	Overtaken bool // a later record has been committed meanwhile
}

// Topics lists the topics that a group has offsets of, committed or not.
func (b *Base) Topics() []string {
	out := slices.Sorted(maps.Keys(b.Offsets))
	if len(b.Unstable) == 0 {
		return out
	}
	for _, tp := range b.Waiting() {
		out = append(out, tp.Topic)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Waiting lists the partitions of which offsets wait for their transactions.
func (b *Base) Waiting() []subscription.TopicPartition {
	if len(b.Unstable) == 0 {
		return nil // As of nearly all groups.
	}
	return slices.SortedFunc(maps.Keys(b.Unstable), ComparePartitions)
}

func ComparePartitions(a, b subscription.TopicPartition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
}

// End makes an offset of a transaction count, or forgets it. It counts only if its
// record comes after that of the offset that counts now: that is the record which
// compaction keeps.
func (b *Base) End(id int64, tp subscription.TopicPartition, commit bool) {
	list := b.Unstable[tp]
	i := slices.IndexFunc(list, func(u Unstable) bool { return u.Producer == id })
	if u := &list[i]; commit && !u.Overtaken {
		b.ApplyOffset(&schema.OffsetRecord{Group: b.ID, Topic: tp.Topic, Partition: tp.Partition, Value: &u.Value})
		for j := range i {
			list[j].Overtaken = true
		}
	}
	b.KeepUnstable(tp, slices.Delete(list, i, i+1))
}

func (b *Base) KeepUnstable(tp subscription.TopicPartition, list []Unstable) {
	if len(list) > 0 {
		b.Unstable[tp] = list
		return
	}
	if delete(b.Unstable, tp); len(b.Unstable) == 0 {
		b.Unstable = nil
	}
}

// Reset is the last commit by an outsider.
type Reset struct {
	By journal.Who
	At time.Time
}
