package group

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"

	"muster/internal/group/schema"
	"muster/internal/journal"
)

func (b *base) applyOffset(r *schema.OffsetRecord) {
	t := b.offsets[r.Topic]
	switch {
	case r.Value != nil:
		if t == nil {
			if b.offsets == nil {
				b.offsets = map[string]*topicOffsets{}
			}
			t = &topicOffsets{parts: map[int32]kept{}}
			b.offsets[r.Topic] = t
		}
		t.put(r.Partition, r.Value)
	case t != nil:
		if delete(t.parts, r.Partition); t.len() == 0 {
			delete(b.offsets, r.Topic)
		}
	}
}

// committed yields the topics with their partitions that have offsets, in
// order, as they are when it is called.
func (b *base) committed() iter.Seq2[string, []int32] {
	topics := slices.Sorted(maps.Keys(b.offsets))
	return func(yield func(string, []int32) bool) {
		for _, t := range topics {
			if !yield(t, b.offsets[t].partitions()) {
				return
			}
		}
	}
}

// unstable is an offset that a transaction has committed, and that counts if and
// when the transaction does. Of one partition there may be several, in the order
// of their records.
type unstable struct {
	producer  int64
	value     schema.Offset
	overtaken bool // a later record has been committed meanwhile
}

// topics lists the topics that a group has offsets of, committed or not.
func (b *base) topics() []string {
	out := slices.Sorted(maps.Keys(b.offsets))
	if len(b.unstable) == 0 {
		return out
	}
	for _, tp := range b.waiting() {
		out = append(out, tp.topic)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// waiting lists the partitions of which offsets wait for their transactions.
func (b *base) waiting() []topicPartition {
	if len(b.unstable) == 0 {
		return nil // As of nearly all groups.
	}
	return slices.SortedFunc(maps.Keys(b.unstable), comparePartitions)
}

func comparePartitions(a, b topicPartition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// end makes an offset of a transaction count, or forgets it. It counts only if its
// record comes after that of the offset that counts now: that is the record which
// compaction keeps.
func (b *base) end(id int64, tp topicPartition, commit bool) {
	list := b.unstable[tp]
	i := slices.IndexFunc(list, func(u unstable) bool { return u.producer == id })
	if u := &list[i]; commit && !u.overtaken {
		b.applyOffset(&schema.OffsetRecord{Group: b.id, Topic: tp.topic, Partition: tp.partition, Value: &u.value})
		for j := range i {
			list[j].overtaken = true
		}
	}
	b.keepUnstable(tp, slices.Delete(list, i, i+1))
}

func (b *base) keepUnstable(tp topicPartition, list []unstable) {
	if len(list) > 0 {
		b.unstable[tp] = list
		return
	}
	if delete(b.unstable, tp); len(b.unstable) == 0 {
		b.unstable = nil
	}
}

// reset is the last commit by an outsider.
type reset struct {
	by journal.Who
	at time.Time
}
