package group

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Digest is a number that two shards share if their hard state is the same. It is
// asked for after every step of a simulation, so what there is most of is not encoded
// for it.
func (s *Shard) Digest() uint64 {
	var d digest
	for _, id := range s.GroupIDs() {
		g := s.Groups[id]
		g.EachRecord(d.put)
		b := g.Common()
		for _, m := range slices.Sorted(maps.Keys(b.Silences)) {
			d.put(&schema.SilenceRecord{Group: id, Member: m, Value: &schema.Silence{Lasted: b.Silences[m]}})
		}
		d.putOffsets(b)
		d.putUnstable(b)
	}
	for _, id := range slices.Sorted(maps.Keys(s.txns.producers)) {
		if p := s.txns.producers[id]; p.open != nil { // Those without may be forgotten any time.
			d.add(stir(stir(stir(kindTxn, uint64(id)), uint64(p.epoch)), uint64(p.open.start)))
		}
	}
	return d.sum
}

// digest adds up a number for each thing that is known.
type digest struct {
	sum uint64
}

// The numbers of different kinds of things begin with these.
const (
	kindRecord = iota + 1
	kindOffset
	kindUnstable
	kindTxn
)

// add stirs a number twice more, so that what its last words have made of it is not
// made good by another's.
func (d *digest) add(h uint64) { d.sum += stir(stir(h, 0), 0) }

func (d *digest) put(r machine.Record) {
	key, value := r.Encode()
	d.add(stirText(stirText(kindRecord, key), value))
}

// putOffsets adds what a group has committed.
func (d *digest) putOffsets(b *kind.Base) {
	if len(b.Offsets) == 0 {
		return
	}
	ofGroup := stirText(kindOffset, b.ID)
	for topic, parts := range b.Committed() {
		ofTopic := stirText(ofGroup, topic)
		for _, p := range parts {
			o, _ := b.Offsets[topic].Get(p)
			d.add(stirOffset(stir(ofTopic, uint64(p)), &o))
		}
	}
}

// putUnstable adds what waits for transactions, in the order of its records.
func (d *digest) putUnstable(b *kind.Base) {
	for _, tp := range b.Waiting() {
		list := b.Unstable[tp]
		h := stir(stirText(stirText(stir(kindUnstable, uint64(len(list))), b.ID), tp.Topic), uint64(tp.Partition))
		for i := range list {
			u, overtaken := &list[i], uint64(0)
			if u.Overtaken {
				overtaken = 1
			}
			h = stirOffset(stir(stir(h, uint64(u.Producer)), overtaken), &u.Value)
		}
		d.add(h)
	}
}

// stirOffset makes part of a number what a record would say of the offset, and one that
// says when it expires says neither epoch nor topic nor transaction.
func stirOffset(h uint64, o *schema.Offset) uint64 {
	h = stir(stir(stir(h, uint64(o.Offset)), uint64(o.CommitTimestamp)), uint64(o.ExpireTimestamp))
	if o.ExpireTimestamp == -1 {
		h = stirText(stir(stir(h, uint64(o.LeaderEpoch)), uint64(o.Start)), o.TopicID[:])
	}
	return stirText(h, o.Metadata)
}

// stirText makes a text part of a number, so that none can be taken for two others.
func stirText[T string | []byte](h uint64, text T) uint64 {
	h = stir(h, uint64(len(text)))
	for len(text) >= 8 {
		h = stir(h, uint64(text[0])|uint64(text[1])<<8|uint64(text[2])<<16|uint64(text[3])<<24|
			uint64(text[4])<<32|uint64(text[5])<<40|uint64(text[6])<<48|uint64(text[7])<<56)
		text = text[8:]
	}
	for i := range len(text) {
		h = stir(h, uint64(text[i]))
	}
	return h
}

// stir makes a word part of a number. No two words give the same.
func stir(h, word uint64) uint64 {
	h = (h ^ word) * 0x9e3779b97f4a7c15
	return h ^ h>>32
}
