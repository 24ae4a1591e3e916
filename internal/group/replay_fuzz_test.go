package group

import (
	"testing"
	"time"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Whatever the log holds: no panic, and what can be decoded can be written again
// and loaded.
func FuzzReplay(f *testing.F) {
	name, instance := "range", "i"
	group := schema.Group{ProtocolType: "consumer", Protocol: &name, Leader: &name}
	for _, id := range []string{"m1", "m2"} {
		m := schema.GroupMember{}
		m.MemberID, m.Subscription, m.Assignment = id, subscriptionOf("t"), assignmentOf("t:0+1")
		if id == "m2" {
			m.InstanceID = &instance
		}
		group.Members = append(group.Members, m)
	}
	for _, r := range []machine.Record{
		&schema.GroupRecord{Group: "g", Value: &group}, classic.EmptyGroup("g"), &schema.GroupRecord{Group: "g"}, &schema.OffsetRecord{Group: "g", Topic: "t", Partition: 1},
		&schema.OffsetRecord{Group: "g", Topic: "t", Partition: 0, Value: &schema.Offset{Offset: 1, LeaderEpoch: 2, Metadata: "x", ExpireTimestamp: -1}},
		&schema.OffsetRecord{Group: "g", Topic: "t", Partition: 0, Value: &schema.Offset{Offset: 1, LeaderEpoch: 2, Metadata: "x", ExpireTimestamp: -1, TopicID: [16]byte{1}}},
		&schema.OffsetRecord{Group: "g", Topic: "t", Partition: 0, Value: &schema.Offset{Offset: 1, LeaderEpoch: 2, ExpireTimestamp: -1, Start: 7}},
		&schema.OffsetRecord{Group: "", Topic: "t", Partition: 0, Value: &schema.Offset{Offset: -1, LeaderEpoch: -1, ExpireTimestamp: 5}},
		&schema.RebalanceRecord{Group: "g", Value: &schema.Rebalance{Generation: 1}}, &schema.DepartureRecord{Group: "g", Member: "m", Value: &schema.Departure{Generation: 1}},
		&schema.SilenceRecord{Group: "g", Member: "m", Value: &schema.Silence{Lasted: time.Second}}, &schema.SilenceRecord{Group: "g", Member: "m"},
	} {
		key, value := r.Encode()
		f.Add(key, value, value == nil)
	}
	f.Fuzz(func(t *testing.T, key, value []byte, tombstone bool) {
		if tombstone {
			value = nil
		}
		r, err := schema.Decode(key, value)
		if err != nil {
			return
		}
		s := NewShard(kind.DefaultConfig())
		s.Replay(machine.Stored{Records: []machine.StoredRecord{{Record: r}}})
		if got := replayed(plain(r), s.Cfg).Digest(); got != s.Digest() {
			t.Error("written and read again, it is another record")
		}
		s.Step(machine.Input{Now: time.Unix(1_700_000_000, 0), Event: machine.Loaded{}})
		if err := s.CheckInvariants(); err != nil {
			t.Error(err)
		}
	})
}
