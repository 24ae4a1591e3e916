package state

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Replay applies records that were read from the log. Its beginning may be gone, so an update
// may be of a snapshot that is not there.
func (s *Shard) Replay(b machine.Stored) {
	for _, r := range b.Records {
		s.end = max(s.end, r.Offset+1)
		s.apply(r.Record, r.Offset)
	}
}

// apply changes the hard state.
func (s *Shard) apply(r machine.Record, offset int64) {
	switch r := r.(type) {
	case *schema.ShareSnapshotRecord:
		k := Key{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		s.bytes -= s.weight(k)
		s.applySnapshot(k, r.Value, offset)
		s.bytes += s.weight(k)
	case *schema.ShareUpdateRecord:
		k := Key{Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		p := s.all[k]
		if p == nil || r.Value == nil || r.Value.SnapshotEpoch != p.SnapshotEpoch {
			return
		}
		s.bytes -= s.weight(k)
		p.ShareSnapshot = changed(p.ShareSnapshot, r.Value)
		p.updates++
		s.bytes += s.weight(k)
	}
}

func (s *Shard) applySnapshot(k Key, v *schema.ShareSnapshot, offset int64) {
	if v == nil {
		delete(s.all, k)
		return
	}
	p := s.all[k]
	if p == nil {
		p = &state{at: unknown}
		s.all[k] = p
	}
	p.ShareSnapshot, p.updates = *v, 0
	p.Runs = merge(ordered(v.Runs), nil, v.Start)
	p.at = max(p.at, offset)
}

// changed is a snapshot after an update. The start never goes back but with a new state epoch,
// whose first record is a snapshot.
func changed(v schema.ShareSnapshot, u *schema.ShareUpdate) schema.ShareSnapshot {
	v.LeaderEpoch = max(v.LeaderEpoch, u.LeaderEpoch)
	v.Start = max(v.Start, u.Start)
	if u.Completed >= 0 {
		v.Completed = u.Completed
	}
	v.Runs = merge(v.Runs, ordered(u.Runs), v.Start)
	return v
}

// Digest is a number that two shards share if their hard state is the same.
func (s *Shard) Digest() uint64 {
	h := fnv.New64a()
	for _, k := range s.keys() {
		p := s.all[k]
		r := schema.ShareSnapshotRecord{Group: k.Group, Topic: k.Topic, Partition: k.Partition, Value: &p.ShareSnapshot}
		key, value := r.Encode()
		for _, b := range [][]byte{key, value, binary.BigEndian.AppendUint32(nil, uint32(p.updates))} {
			_, _ = h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
			_, _ = h.Write(b)
		}
	}
	return h.Sum64()
}

// CheckInvariants says what is wrong with the state of a shard that is loaded, nil if nothing
// is.
func (s *Shard) CheckInvariants() error {
	bytes := int64(0)
	for _, k := range s.keys() {
		p := s.all[k]
		bytes += s.weight(k)
		switch {
		case p.SnapshotEpoch < 0 || p.LeaderEpoch < 0 || p.StateEpoch < 0:
			return fmt.Errorf("%v has epochs %d, %d and %d", k, p.SnapshotEpoch, p.LeaderEpoch, p.StateEpoch)
		case p.at >= s.end:
			return fmt.Errorf("%v has a snapshot at %d, where nothing was known to be before %d", k, p.at, s.end)
		case p.at >= 0 && p.at < s.pruned:
			return fmt.Errorf("%v has a snapshot at %d, and all before %d was said to be of no use", k, p.at, s.pruned)
		}
		next := max(p.Start, 0)
		for i, r := range p.Runs {
			alike := i > 0 && p.Runs[i-1].Last+1 == r.First && p.Runs[i-1].State == r.State && p.Runs[i-1].Count == r.Count
			if r.First < next || r.Last < r.First || alike {
				return fmt.Errorf("%v: run %v after %d", k, r, next)
			}
			next = r.Last + 1
		}
	}
	if bytes != s.bytes {
		return fmt.Errorf("share partitions take %d bytes, counted are %d", bytes, s.bytes)
	}
	return nil
}
