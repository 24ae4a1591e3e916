package txn

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
)

// Digest is a number that two shards share if their hard state is the same.
func (s *Shard) Digest() uint64 {
	h := fnv.New64a()
	for _, id := range s.sortedIDs() {
		r := Record{TransactionalID: id, Value: s.txns[id].hard}
		key, value := r.Encode()
		for _, b := range [][]byte{key, value} {
			_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
			_, _ = h.Write(b)
		}
	}
	return h.Sum64()
}

// CheckInvariants says what is wrong with the state of a shard that is loaded, nil
// if nothing is.
func (s *Shard) CheckInvariants() error {
	sends := 0
	for _, id := range s.sortedIDs() {
		t := s.txns[id]
		n, err := s.check(t)
		if err != nil {
			return fmt.Errorf("transactional id %q (%s, producer %d/%d): %w", id, t.hard.State, t.hard.Producer.id, t.hard.Producer.epoch, err)
		}
		sends += n
	}
	for _, id := range slices.Sorted(maps.Keys(s.ongoing)) {
		if t := s.txns[id]; t == nil || t.hard.State != Ongoing {
			return fmt.Errorf("transactional id %q is counted as Ongoing, and is not", id)
		}
	}
	known := 0
	for _, id := range slices.Sorted(maps.Keys(s.sends)) {
		known += len(s.sends[id].markers)
	}
	if known != sends {
		return fmt.Errorf("%d markers are in sends, %d are under way", known, sends)
	}
	if (len(s.ids.waiting) > 0) != (s.ids.timer != 0) {
		return fmt.Errorf("%d requests wait for producer ids, under timer %d", len(s.ids.waiting), s.ids.timer)
	}
	if len(s.ids.waiting) > 0 && s.ids.next < s.ids.end {
		return fmt.Errorf("requests wait for producer ids that are there")
	}
	return nil
}

// check checks one transactional id, and returns how many of its markers are under
// way.
func (s *Shard) check(t *txn) (sends int, err error) {
	v := t.hard
	_, ongoing := s.ongoing[t.id]
	switch {
	case v.Producer.id < 0 || v.Producer.epoch < 0:
		return 0, fmt.Errorf("has no producer")
	case ongoing != (v.State == Ongoing):
		return 0, fmt.Errorf("is counted as Ongoing: %v", ongoing)
	case (t.ending != nil) != v.State.isPrepare():
		return 0, fmt.Errorf("markers are on their way: %v", t.ending != nil)
	case (v.State == Empty || v.State.isComplete()) && len(v.Topics) > 0:
		return 0, fmt.Errorf("has partitions")
	case v.Next != noPair && !v.State.isPrepare():
		return 0, fmt.Errorf("has a next producer")
	case v.Previous != none && v.Previous == v.Producer.id:
		return 0, fmt.Errorf("has the same producer id as before")
	}
	if t.ending == nil {
		return 0, nil
	}
	return s.checkEnding(t.ending)
}

func (s *Shard) checkEnding(e *ending) (sends int, err error) {
	switch {
	case len(e.left) == 0:
		return 0, fmt.Errorf("all markers are written, and nothing follows")
	case e.timer == 0:
		return 0, fmt.Errorf("no timer sends markers again")
	case (len(e.waiting) > 0) != (e.waitTimer != 0):
		return 0, fmt.Errorf("%d requests wait, under timer %d", len(e.waiting), e.waitTimer)
	}
	for i, m := range e.left {
		if i > 0 && compareKeys(partitionKey{e.left[i-1].topic, e.left[i-1].partition}, partitionKey{m.topic, m.partition}) >= 0 {
			return 0, fmt.Errorf("%s:%d is out of order", m.topic, m.partition)
		}
		if m.send == 0 {
			continue
		}
		sends++
		if send := s.sends[m.send]; send == nil || !slices.Contains(send.markers, m) {
			return 0, fmt.Errorf("%s:%d is in a send that is not known", m.topic, m.partition)
		}
	}
	return sends, nil
}

func compareKeys(a, b partitionKey) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}
