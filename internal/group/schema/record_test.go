package schema

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/machine"
)

// unhex reads bytes that are written in hexadecimal, with spaces, and text in
// quotes.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	var out []byte
	for f := range strings.FieldsSeq(s) {
		if text, ok := strings.CutPrefix(f, "'"); ok {
			out = append(out, strings.TrimSuffix(text, "'")...)
			continue
		}
		b, err := hex.DecodeString(f)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b...)
	}
	return out
}

// Tools that know Kafka's format read our records, and Kafka's own must be
// readable here. The bytes are written by hand from Kafka's schema.
func TestRecordsAreInKafkasFormat(t *testing.T) {
	name, instance, leader := "range", "i", "m"
	group := Group{ProtocolType: "consumer", Generation: 5, Protocol: &name, Leader: &leader}
	group.CurrentStateTimestamp = 7
	group.Members = []GroupMember{{
		MemberID: "m", InstanceID: &instance, ClientID: "c", ClientHost: "h",
		RebalanceTimeoutMillis: 9, SessionTimeoutMillis: 8, Subscription: []byte("s"), Assignment: []byte("a"),
	}}
	for _, c := range []struct {
		what, key, value string
		record           machine.Record
	}{
		{
			"an offset", "0001 0001 'g' 0001 't' 00000002",
			"0003 0000000000000005 00000003 0004 'note' 0000000000000007",
			&OffsetRecord{Group: "g", Topic: "t", Partition: 2, Value: &Offset{Offset: 5, LeaderEpoch: 3, Metadata: "note", CommitTimestamp: 7, ExpireTimestamp: -1}},
		},
		{
			"an offset with its own expiry", "0001 0001 'g' 0001 't' 00000002",
			"0001 0000000000000005 0004 'note' 0000000000000007 0000000000000009",
			&OffsetRecord{Group: "g", Topic: "t", Partition: 2, Value: &Offset{Offset: 5, LeaderEpoch: -1, Metadata: "note", CommitTimestamp: 7, ExpireTimestamp: 9}},
		},
		{
			"an offset of a topic with an id", "0001 0001 'g' 0001 't' 00000002",
			"0004 0000000000000005 00000003 05 'note' 0000000000000007 01 00 10 00000000000000000000000000000009",
			&OffsetRecord{Group: "g", Topic: "t", Partition: 2, Value: &Offset{Offset: 5, LeaderEpoch: 3, Metadata: "note", CommitTimestamp: 7, ExpireTimestamp: -1, TopicID: [16]byte{15: 9}}},
		},
		{"an offset's tombstone", "0001 0001 'g' 0001 't' 00000002", "", &OffsetRecord{Group: "g", Topic: "t", Partition: 2}},
		{
			"a group", "0002 0001 'g'",
			"0003 0008 'consumer' 00000005 0005 'range' 0001 'm' 0000000000000007 00000001 " +
				"0001 'm' 0001 'i' 0001 'c' 0001 'h' 00000009 00000008 00000001 's' 00000001 'a'",
			&GroupRecord{"g", &group},
		},
		{"an empty group", "0002 0001 'g'", "0003 0000 00000000 ffff ffff ffffffffffffffff 00000000", &GroupRecord{"g", &Group{CurrentStateTimestamp: -1}}},
		{"a group's tombstone", "0002 0001 'g'", "", &GroupRecord{Group: "g"}},
		{"a rebalance", "03e8 0001 'g'", "0000 00000005 0002 0003", &RebalanceRecord{"g", &Rebalance{Generation: 5, Loads: 2, Lives: 3}}},
		{"a rebalance's tombstone", "03e8 0001 'g'", "", &RebalanceRecord{Group: "g"}},
		{"a departure", "03e9 0001 'g' 0001 'm'", "0000 00000005", &DepartureRecord{"g", "m", &Departure{Generation: 5}}},
		{"a silence", "03ea 0001 'g' 0001 'm'", "0000 00000000000015f9", &SilenceRecord{"g", "m", &Silence{Lasted: 5625 * time.Millisecond}}},
		{"a silence's tombstone", "03ea 0001 'g' 0001 'm'", "", &SilenceRecord{Group: "g", Member: "m"}},
		{"a departure's tombstone", "03e9 0001 'g' 0001 'm'", "", &DepartureRecord{Group: "g", Member: "m"}},
	} {
		key, value := c.record.Encode()
		if !bytes.Equal(key, unhex(t, c.key)) || !bytes.Equal(value, unhex(t, c.value)) {
			t.Errorf("%s is written as %x, %x", c.what, key, value)
		}
		if (value == nil) != (c.value == "") {
			t.Errorf("%s: only a tombstone has no value", c.what)
		}
		again, err := Decode(key, value)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if c.record.Size() < len(key)+len(value) {
			t.Errorf("%s has %d bytes, and says that it has %d", c.what, len(key)+len(value), c.record.Size())
		}
		if k, v := again.Encode(); !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			t.Errorf("%s is read as %+v", c.what, again)
		}
	}
}

// Old Kafkas wrote fewer fields.
func TestRecordsOfOldVersionsAreRead(t *testing.T) {
	key := "0000 0001 'g' 0001 't' 00000002" // Version 0 of the key.
	for _, c := range []struct {
		value string
		want  Offset
	}{
		{"0000 0000000000000005 0001 'n' 0000000000000007", Offset{Offset: 5, LeaderEpoch: -1, Metadata: "n", CommitTimestamp: 7, ExpireTimestamp: -1}},
		{"0001 0000000000000005 0001 'n' 0000000000000007 ffffffffffffffff", Offset{Offset: 5, LeaderEpoch: -1, Metadata: "n", CommitTimestamp: 7, ExpireTimestamp: -1}},
		{"0002 0000000000000005 0001 'n' 0000000000000007", Offset{Offset: 5, LeaderEpoch: -1, Metadata: "n", CommitTimestamp: 7, ExpireTimestamp: -1}},
	} {
		r, err := Decode(unhex(t, key), unhex(t, c.value))
		if err != nil || *r.(*OffsetRecord).Value != c.want {
			t.Errorf("%s is read as %+v, %v", c.value, r, err)
		}
	}
	r, err := Decode(unhex(t, "0002 0001 'g'"), unhex(t,
		"0000 0008 'consumer' 00000005 0005 'range' 0001 'm' 00000001 0001 'm' 0001 'c' 0001 'h' 00000008 00000001 's' 00000001 'a'"))
	if v := r.(*GroupRecord).Value; err != nil || len(v.Members) != 1 || v.CurrentStateTimestamp != -1 {
		t.Errorf("version 0 of a group is read as %+v, %v", v, err)
	}
}

// The records of __share_group_state, written by hand from Kafka's schema.
func TestShareRecordsAreInKafkasFormat(t *testing.T) {
	topic := [16]byte{15: 9}
	const key = "0001 'g' 00000000000000000000000000000009 00000002"
	runs := []ShareRun{{First: 5, Last: 7, State: 2, Count: 1}, {First: 9, Last: 9, State: 4, Count: 3}}
	const bytesOfRuns = "03 0000000000000005 0000000000000007 02 0001 00 0000000000000009 0000000000000009 04 0003 00"
	for _, c := range []struct {
		key, value string
		record     machine.Record
	}{
		{
			"0000 " + key, "0000 00000001 00000002 00000003 0000000000000004 0000000000000005 0000000000000006 " + bytesOfRuns + " 01 00 04 00000007",
			&ShareSnapshotRecord{"g", topic, 2, &ShareSnapshot{
				SnapshotEpoch: 1, StateEpoch: 2, LeaderEpoch: 3, Start: 4, CreateTimestamp: 5, WriteTimestamp: 6, Runs: runs, Completed: 7,
			}},
		},
		{
			"0000 " + key, "0000 00000000 00000000 00000000 ffffffffffffffff 0000000000000005 0000000000000006 01 00",
			&ShareSnapshotRecord{"g", topic, 2, &ShareSnapshot{Start: -1, CreateTimestamp: 5, WriteTimestamp: 6, Completed: -1}},
		},
		{"0000 " + key, "", &ShareSnapshotRecord{Group: "g", Topic: topic, Partition: 2}},
		{
			"0001 " + key, "0000 00000001 ffffffff 0000000000000004 " + bytesOfRuns + " 01 00 04 00000000",
			&ShareUpdateRecord{"g", topic, 2, &ShareUpdate{SnapshotEpoch: 1, LeaderEpoch: -1, Start: 4, Runs: runs}},
		},
		{"0001 " + key, "0000 00000001 00000003 ffffffffffffffff 01 00", &ShareUpdateRecord{"g", topic, 2, &ShareUpdate{SnapshotEpoch: 1, LeaderEpoch: 3, Start: -1, Completed: -1}}},
	} {
		key, value := c.record.Encode()
		if !bytes.Equal(key, unhex(t, c.key)) || !bytes.Equal(value, unhex(t, c.value)) {
			t.Errorf("%+v is % x: % x", c.record, key, value)
		}
		if n := len(key) + len(value); c.record.Size() < n || c.record.Size() > n+20 {
			t.Errorf("%+v has size %d, and %d bytes", c.record, c.record.Size(), n)
		}
		if again, err := DecodeShare(key, value); err != nil || !reflect.DeepEqual(again, c.record) {
			t.Errorf("%+v is read as %+v (%v)", c.record, again, err)
		}
		for n := range len(key) {
			if _, err := DecodeShare(key[:n], value); err == nil {
				t.Errorf("%d bytes of the key % x are read", n, key)
			}
		}
		for n := range len(value) {
			if _, err := DecodeShare(key, value[:n]); err == nil {
				t.Errorf("%d bytes of the value % x are read", n, value)
			}
		}
	}
	for _, unknown := range []string{"0002 0001 'g'", "03e8"} {
		if _, err := DecodeShare(unhex(t, unknown), nil); !errors.Is(err, machine.ErrUnknownRecord) {
			t.Errorf("%s: %v", unknown, err)
		}
	}
	if _, err := DecodeShare(unhex(t, "0000 "+key), unhex(t, "0001 00")); !errors.Is(err, machine.ErrUnknownRecord) {
		t.Errorf("a later version: %v", err)
	}
}

// Whatever is read of the records of shares is written so that it is read again.
func FuzzDecodeShare(f *testing.F) {
	for _, r := range []machine.Record{
		&ShareSnapshotRecord{"g", [16]byte{1}, 2, &ShareSnapshot{Runs: []ShareRun{{1, 2, 0, 1}}, Completed: 3}},
		&ShareUpdateRecord{"g", [16]byte{1}, 2, &ShareUpdate{Runs: []ShareRun{{1, 2, 0, 1}}, Completed: -1}},
		&ShareSnapshotRecord{Group: "g"},
	} {
		key, value := r.Encode()
		f.Add(key, value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, err := DecodeShare(key, value)
		if err != nil {
			return
		}
		key, value = r.Encode()
		if again, err := DecodeShare(key, value); err != nil || !reflect.DeepEqual(again, r) || len(key)+len(value) > r.Size() {
			t.Errorf("%+v is read as %+v (%v), size %d of %d", r, again, err, len(key)+len(value), r.Size())
		}
	})
}

// Kinds of records that we do not know are skipped: those of other group types,
// and of later versions.
func TestDecodeRecordKnowsWhatItDoesNotKnow(t *testing.T) {
	known := []int16{3, 4, 5, 6, 7, 8, 16, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 22, 23} // of consumer, share and streams groups
	for version := int16(3); version < 30; version++ {
		if slices.Contains(known, version) {
			continue
		}
		key := binary.BigEndian.AppendUint16(nil, uint16(version))
		if _, err := Decode(append(key, "whatever"...), []byte("whatever")); !errors.Is(err, machine.ErrUnknownRecord) {
			t.Errorf("key version %d: %v", version, err)
		}
	}
	if _, err := Decode(unhex(t, "ffff 0001 'g'"), nil); !errors.Is(err, machine.ErrUnknownRecord) {
		t.Errorf("key version -1: %v", err)
	}
}

func TestDecodeRecordRefusesWhatCannotBe(t *testing.T) {
	group := "0002 0001 'g'"
	for _, c := range []struct{ what, key, value string }{
		{"no key", "", "0003"},
		{"a key of one byte", "00", "0003"},
		{"a key without a group", "0002", "0003"},
		{"an offset without a topic", "0001 0001 'g' 0000 00000000", "0003 0000000000000005 00000003 0000 0000000000000007"},
		{"an offset that ends early", "0001 0001 'g' 0001 't' 00000000", "0003 00000000"},
		{"an offset with a billion tagged fields", "0001 0001 'g' 0001 't' 00000000", "0004 0000000000000005 00000003 01 0000000000000007 ffffffff0f"},
		{"an offset with metadata of a billion bytes", "0001 0001 'g' 0001 't' 00000000", "0004 0000000000000005 00000003 ffffffff0f 0000000000000007 00"},
		{"an offset of version 5", "0001 0001 'g' 0001 't' 00000000", "0005 0000000000000005 00000003 01 0000000000000007 00"},
		{"a departure of nobody", "03e9 0001 'g'", "0000 00000005"},
		{"a rebalance that ends early", "03e8 0001 'g'", "0000 0000"},
		{"an offset of version -1", "0001 0001 'g' 0001 't' 00000000", "ffff 0000000000000005 0000 0000000000000007"},
		{"a group of version 4", group, "0004 01 00000000 00 00 ffffffffffffffff ffffffff0f"},
		{"a group of a billion members", group, "0003 0000 00000000 ffff ffff ffffffffffffffff 3fffffff"},
		{"a group that ends early", group, "0003 0008 'cons'"},
		{"a member without id", group, "0000 0000 00000000 ffff ffff 00000001 0000 0000 0000 00000008 00000000 00000000"},
		{"two members of one id", group, "0000 0000 00000000 ffff ffff 00000002" +
			strings.Repeat(" 0001 'm' 0000 0000 00000008 00000000 00000000", 2)},
	} {
		if r, err := Decode(unhex(t, c.key), unhex(t, c.value)); err == nil || errors.Is(err, machine.ErrUnknownRecord) {
			t.Errorf("%s: %+v, %v", c.what, r, err)
		}
	}
}

// A value that no session timeout comes near must not become a negative duration, with
// which a member would be waited for longer than it asked for.
func TestSilenceOfAnyLengthCanBeRead(t *testing.T) {
	key, _ := (&SilenceRecord{Group: "g", Member: "m"}).Encode()
	for _, millis := range []string{"7fffffffffffffff", "8000000000000000", "ffffffffffffffff"} {
		r, err := Decode(key, unhex(t, "0000 "+millis))
		if err != nil || r.(*SilenceRecord).Value.Lasted < 30*time.Minute {
			t.Errorf("%s is read as %+v, %v", millis, r, err)
		}
	}
	if _, err := Decode(key, unhex(t, "0000 00000000")); err == nil {
		t.Error("a value that is cut short can be read")
	}
}

// A broker may have millions of offsets, and hundreds of thousands of groups, to load.
func BenchmarkDecode(b *testing.B) {
	member := GroupMember{MemberID: "consumer-1-0b6e", ClientID: "consumer-1", ClientHost: "/10.0.0.1", Subscription: make([]byte, 40), Assignment: make([]byte, 60)}
	name := "range"
	for what, r := range map[string]interface{ Encode() (key, value []byte) }{
		"offset":  offsetOf("a group", "a topic", 3),
		"group":   &GroupRecord{"a group", &Group{ProtocolType: "consumer", Protocol: &name, Leader: &name, Members: []GroupMember{member}}},
		"member":  &ConsumerMemberRecord{"a group", "consumer-1-0b6e", &ConsumerMember{ClientID: "consumer-1", Host: "/10.0.0.1", Topics: []string{"a topic"}}},
		"current": &ConsumerCurrentRecord{"a group", "consumer-1-0b6e", &ConsumerCurrent{Epoch: 5, Previous: 4, Assigned: []OwnedPartitions{{topicA, []int32{1, 2, 3}, []int32{5, 5, 5}}}}},
	} {
		b.Run(what, func(b *testing.B) {
			key, value := r.Encode()
			reader := NewReader()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reader.Decode(key, value); err != nil {
					b.Fatal(err)
				}
				reader.Done()
			}
		})
	}
}
