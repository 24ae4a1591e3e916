package sim

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// stored is a record as the log holds it.
type stored struct {
	key, value []byte // a nil value is a tombstone
}

// offsetsLog is the partition of __consumer_offsets, with what it says in other
// forms: the core's own replay of all that was ever appended, and the groups'
// last records, read without the core.
type offsetsLog struct {
	w       *world
	epoch   int // appends of an older one are refused
	records []stored
	replica *group.Shard
	groups  map[string]*kmsg.GroupMetadataValue
	offsets *offsets       // what was committed, by the requests
	ended   map[string]int // how often a group of this id has come to its end
}

func newOffsetsLog(w *world) *offsetsLog {
	return &offsetsLog{
		w: w, replica: group.NewShard(w.plan.config),
		groups: map[string]*kmsg.GroupMetadataValue{}, offsets: newOffsets(), ended: map[string]int{},
	}
}

func encode(r group.Record) stored {
	k, v := r.Encode()
	return stored{key: k, value: v}
}

// decode reads a record back, from bytes that nobody else holds.
func (w *world) decode(r stored) group.Record {
	rec, err := group.DecodeRecord(bytes.Clone(r.key), bytes.Clone(r.value))
	if err != nil {
		w.violated("a record cannot be read: %v", err)
	}
	return rec
}

// append makes an entry durable.
func (l *offsetsLog) append(e *entry) {
	for i, r := range e.records {
		if again := encode(e.originals[i]); !bytes.Equal(again.key, r.key) || !bytes.Equal(again.value, r.value) {
			l.w.violated("a record changed after its step: %v", e.originals[i])
		}
		l.records = append(l.records, r)
		rec := l.w.decode(r)
		l.replica.Replay(rec)
		if rec.Topic == "" {
			if l.groups[rec.Group] = rec.Meta; rec.Meta == nil {
				delete(l.groups, rec.Group)
			}
		}
	}
	l.offsets.apply(e.writes)
	for _, id := range e.ended {
		l.ended[id]++
	}
}

// compact keeps of a prefix the last record of each key, and some of the
// tombstones among them, sometimes in another order: with one record of each key
// it must not matter.
func (l *offsetsLog) compact() {
	w := l.w
	n := w.rand.IntN(len(l.records) + 1)
	keepTombstones := w.rand.Float64()
	last := make(map[string]int, n)
	for i := range n {
		last[string(l.records[i].key)] = i
	}
	kept := make([]stored, 0, len(l.records))
	for i := range n {
		if last[string(l.records[i].key)] == i && (l.records[i].value != nil || w.chance(keepTombstones)) {
			kept = append(kept, l.records[i])
		}
	}
	w.tracef("log: compacted the first %d of %d records to %d", n, len(l.records), len(kept))
	if len(kept) < n {
		w.count("compaction")
	}
	if w.rand.IntN(2) == 0 {
		w.rand.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
	}
	l.records = append(kept, l.records[n:]...)
}

// replay makes a shard of the log, and checks that it is what was appended.
func (l *offsetsLog) replay(cfg group.Config) *group.Shard {
	s := group.NewShard(cfg)
	for _, r := range l.records {
		s.Replay(l.w.decode(r))
	}
	if s.Digest() != l.replica.Digest() {
		l.w.violated("replay of the log gives another state than what was appended to it")
	}
	return s
}
