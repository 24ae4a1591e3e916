package group

import (
	"fmt"
	"slices"
	"testing"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// replayed returns a shard that has read the log.
func replayed(log []machine.Batch, cfg kind.Config) *Shard {
	s := NewShard(cfg)
	offset := int64(0)
	decode, done := Definition(nil).Reader()
	for _, b := range log {
		stored := machine.Stored{BaseOffset: offset, Producer: b.Producer, Control: b.Control}
		for _, r := range b.Records {
			again, err := decode(r.Encode())
			if err != nil {
				panic(fmt.Sprintf("%+v: %v", r, err))
			}
			stored.Records = append(stored.Records, machine.StoredRecord{Offset: offset, Record: again})
			offset++
		}
		if b.Control != nil {
			offset++
		}
		s.Replay(stored)
		done()
	}
	return s
}

// fate is what became of a batch.
type fate int8

const (
	counts fate = iota
	aborted
	open
)

// fates says what became of each batch.
func fates(log []machine.Batch) []fate {
	out := make([]fate, len(log))
	of := map[int64][]int{} // the batches of the open transaction
	for i, b := range log {
		switch {
		case b.Producer == nil:
		case b.Control == nil:
			of[b.Producer.ID] = append(of[b.Producer.ID], i)
			out[i] = open
		default:
			for _, j := range of[b.Producer.ID] {
				if out[j] = counts; !b.Control.Commit {
					out[j] = aborted
				}
			}
			delete(of, b.Producer.ID)
		}
	}
	return out
}

// compacted returns the log, compacted up to a batch, or up to the first one whose
// transaction is open: there remains the last record of every key, with or without
// tombstones. Markers whose transaction has nothing left go with the tombstones,
// but for each producer's last.
func compacted(log []machine.Batch, upTo int, tombstones bool) []machine.Batch {
	what := fates(log)
	if first := slices.Index(what, open); first >= 0 {
		upTo = min(upTo, first)
	}
	last, lastMarker, left := map[string]int{}, map[int64]int{}, map[int64]bool{}
	for i, b := range log[:upTo] {
		if b.Control != nil {
			lastMarker[b.Producer.ID] = i
		}
		for n, r := range b.Records {
			if key, _ := r.Encode(); what[i] == counts {
				last[string(key)] = i<<20 + n
			}
		}
	}
	var kept []machine.Batch
	for i, b := range log[:upTo] {
		if b.Control != nil {
			if left[b.Producer.ID] || tombstones || lastMarker[b.Producer.ID] == i {
				kept = append(kept, b)
			}
			left[b.Producer.ID] = false
			continue
		}
		var records []machine.Record
		for n, r := range b.Records {
			if key, value := r.Encode(); last[string(key)] == i<<20+n && what[i] == counts && (value != nil || tombstones) {
				records = append(records, r)
			}
		}
		if len(records) > 0 {
			b.Records = records
			kept = append(kept, b)
			if b.Producer != nil {
				left[b.Producer.ID] = true
			}
		}
	}
	return append(kept, log[upTo:]...)
}

// plain returns a log of records, each in a batch of its own.
func plain(records ...machine.Record) (log []machine.Batch) {
	for _, r := range records {
		log = append(log, machine.Batch{Records: []machine.Record{r}})
	}
	return log
}

// singly returns a log with a batch for each plain record.
func singly(log []machine.Batch) (out []machine.Batch) {
	for _, b := range log {
		if b.Producer != nil {
			out = append(out, b)
			continue
		}
		out = append(out, plain(b.Records...)...)
	}
	return out
}

// cloneBatches returns what a step wants appended, to be kept beyond the next.
func cloneBatches(in []machine.Batch) []machine.Batch {
	out := slices.Clone(in)
	for i := range out {
		out[i].Records = slices.Clone(out[i].Records)
	}
	return out
}

// TestCompactedKeepsTheLastOfEachKey is about the helper: a scenario must not
// pass because nothing was compacted.
func TestCompactedKeepsTheLastOfEachKey(t *testing.T) {
	at := func(topic string, n int64) machine.Record {
		return &schema.OffsetRecord{Group: "g", Topic: topic, Value: &schema.Offset{Offset: n, LeaderEpoch: -1, ExpireTimestamp: -1}}
	}
	gone := &schema.OffsetRecord{Group: "g", Topic: "u"}
	log := plain(at("t", 1), at("u", 2), at("t", 3), gone)
	is := func(got []machine.Batch, want ...machine.Record) bool {
		return slices.EqualFunc(got, want, func(b machine.Batch, r machine.Record) bool {
			return len(b.Records) == 1 && b.Records[0] == r || b.Control != nil && r == nil
		})
	}
	if got := compacted(log, len(log), true); !is(got, log[2].Records[0], gone) {
		t.Errorf("with tombstones: %+v", got)
	}
	if got := compacted(log, len(log), false); !is(got, log[2].Records[0]) {
		t.Errorf("without: %+v", got)
	}
	if got := compacted(log, 3, false); !is(got, log[1].Records[0], log[2].Records[0], gone) {
		t.Errorf("the first three: %+v", got)
	}
	one, two := &machine.Producer{ID: 1, Transactional: true}, &machine.Producer{ID: 2, Transactional: true}
	in := func(p *machine.Producer, r machine.Record) machine.Batch {
		return machine.Batch{Producer: p, Records: []machine.Record{r}}
	}
	a, b, c, d := at("t", 1), at("t", 2), at("t", 3), at("t", 4)
	log = append(plain(a), in(one, b), in(two, c), machine.Batch{Producer: two, Control: &machine.Control{}})
	if got := compacted(log, 4, false); !is(got, a, b, c, nil) {
		t.Errorf("before an open transaction: %+v", got)
	}
	log = append(log, machine.Batch{Producer: one, Control: &machine.Control{Commit: true}}, in(two, d))
	if got := compacted(log, 6, false); !is(got, b, nil, nil, d) {
		t.Errorf("one that was committed, and one that was aborted: %+v", got)
	}
}
