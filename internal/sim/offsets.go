package sim

import (
	"cmp"
	"maps"
	"slices"
)

// offsetKey names a committed offset.
type offsetKey struct {
	group, topic string
	partition    int32
}

// committed is what a commit left, or a deletion.
type committed struct {
	at       int64
	epoch    int32
	metadata string
	when     int64 // of the commit, in milliseconds
	expire   int64 // -1 if by the broker's retention
	topic    byte  // the topic's id, 0 if it is not known
	gone     bool
	seq      uint64 // of the step that did it

	// Who committed, for the check that offsets do not go back: a member, and
	// how it came by its position.
	generation int32
	who        string
	loose      bool // may go back, for a reason outside of the coordinator

	pos    uint64 // its record comes after one whose number is lower
	start  int64  // of the transaction that it was committed in, 0 for none
	waited bool   // gone, and was never there: it only waited for a transaction
}

// offsets is a model of committed offsets, changed by what requests ask for and
// answers confirm, never by looking at records.
type offsets struct {
	byKey     map[offsetKey]committed
	producers map[int64]producer
}

// offsetWrite is one change of it.
type offsetWrite struct {
	key offsetKey
	val committed
	txn *txnWrite // nil if it is not about a transaction
}

func newOffsets() *offsets {
	return &offsets{byKey: map[offsetKey]committed{}, producers: map[int64]producer{}}
}

func (o *offsets) clone() *offsets {
	producers := maps.Clone(o.producers)
	for id, p := range producers {
		p.pending = maps.Clone(p.pending)
		producers[id] = p
	}
	return &offsets{byKey: maps.Clone(o.byKey), producers: producers}
}

func (o *offsets) apply(writes []offsetWrite) {
	for _, c := range writes {
		if c.txn != nil {
			o.applyTxn(c)
			continue
		}
		o.byKey[c.key] = c.val
		if c.val.gone {
			for _, p := range o.producers {
				delete(p.pending, c.key)
			}
		}
	}
}

// get returns what is committed.
func (o *offsets) get(k offsetKey) (committed, bool) {
	c, ok := o.byKey[k]
	return c, ok && !c.gone
}

// of lists the offsets of a group, in order.
func (o *offsets) of(group string) []offsetKey {
	var keys []offsetKey
	for k, c := range o.byKey {
		if k.group == group && !c.gone {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// count is how many offsets a group has.
func (o *offsets) count(group string) (n int) {
	for k, c := range o.byKey {
		if k.group == group && !c.gone {
			n++
		}
	}
	return n
}

// has says whether a group has offsets.
func (o *offsets) has(group string) bool {
	for k, c := range o.byKey {
		if k.group == group && !c.gone {
			return true
		}
	}
	return false
}

// groups lists the groups that have offsets, committed or not.
func (o *offsets) groups() []string {
	set := map[string]bool{}
	for _, p := range o.producers {
		for k := range p.pending {
			set[k.group] = true
		}
	}
	for k, c := range o.byKey {
		if !c.gone {
			set[k.group] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func compareKeys(a, b offsetKey) int {
	return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}
