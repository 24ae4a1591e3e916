package txn

import "muster/internal/machine"

// Replay applies records that were read from the log. Compaction may have removed
// any others, so a tombstone of what is not known does nothing.
func (s *Shard) Replay(b machine.Stored) {
	for _, r := range b.Records {
		s.apply(r.Record, r.Offset)
	}
}

// apply changes the hard state: the last record of an id is all there is to it. Its offset
// is above all others if it is not known yet.
func (s *Shard) apply(r machine.Record, offset int64) {
	rec, ok := r.(*Record)
	if !ok {
		return
	}
	id := rec.TransactionalID
	delete(s.ongoing, id)
	if rec.Value == nil {
		delete(s.txns, id)
		return
	}
	t := s.txns[id]
	if t == nil {
		t = &txn{id: id}
		s.txns[id] = t
	}
	t.hard, t.at = rec.Value, offset
	if t.hard.State == Ongoing {
		s.ongoing[id] = struct{}{}
	}
}
