package schema

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster/internal/machine"
)

// What is read need not be what we would write: Kafka's records have grown, and
// will.
func TestConsumerRecordsOfOtherVersionsAreRead(t *testing.T) {
	current := &ConsumerCurrentRecord{"g", "m", &ConsumerCurrent{Epoch: 9, Previous: 8, State: 2, Assigned: []OwnedPartitions{{topicA, []int32{1, 2}, nil}}}}
	head := "0000 00000009 00000008 02 02 ab9b3b29b641458ea20eec4d06570616 03 00000001 00000002 "
	for _, c := range []golden{
		{"an epoch with a later tag", "0003 0001 'g'", "0000 00000005 02 00 08 0000000000000007 01 08 0102030405060708", &ConsumerEpochRecord{"g", &ConsumerEpoch{5, 7}}},
		{"an epoch with a later tag only", "0003 0001 'g'", "0000 00000005 01 01 08 0102030405060708", &ConsumerEpochRecord{"g", &ConsumerEpoch{5, 0}}},
		{"a target's epoch with a later tag", "0006 0001 'g'", "0000 00000005 01 7f 00", &ConsumerTargetEpochRecord{"g", &ConsumerTargetEpoch{5, 0}}},
		{"the old topics", "0004 0001 'g'", "0000 02 ab9b3b29b641458ea20eec4d06570616 02 'a' 00000003 01 00 00", &ConsumerTopicsRecord{"g", true}},
		{"the old topics of a later version", "0004 0001 'g'", "0009", &ConsumerTopicsRecord{"g", true}},
		{"an assignment with null for epochs", "0008 0001 'g' 0001 'm'", head + "01 00 01 00 01 00", current},
		{"an assignment with too few epochs", "0008 0001 'g' 0001 'm'", head + "01 00 05 02 00000007 01 00", current},
		{"an assignment with too many epochs", "0008 0001 'g' 0001 'm'", head + "01 00 0d 04 00000007 00000007 00000007 01 00", current},
		{"a target with later tags", "0007 0001 'g' 0001 'm'", "0000 02 ab9b3b29b641458ea20eec4d06570616 01 01 00 02 ffff 01 05 01 ff",
			&ConsumerTargetRecord{"g", "m", &ConsumerTarget{[]TopicPartitions{{topicA, nil}}}}},
		{"a classic member with later tags", "0005 0001 'g' 0001 'm'",
			"0000 00 00 01 01 01 00 00000007 00 01 00 10 01 00000001 02 02 'p' 01 01 09 00 01 08 01 ff",
			&ConsumerMemberRecord{"g", "m", &ConsumerMember{RebalanceTimeoutMillis: 7, Classic: &ClassicMember{1, []ClassicProtocol{{Name: "p"}}}}}},
		{"a regular expression with a later tag", "0010 0001 'g' 0001 'r'", "0000 01 0000000000000001 0000000000000002 01 00 01 00",
			&ConsumerRegexRecord{"g", "r", &ConsumerRegex{nil, 1, 2}}},
	} {
		got, err := Decode(unhex(t, c.key), unhex(t, c.value))
		if err != nil || !reflect.DeepEqual(got, c.record) {
			t.Errorf("%s is read as %+v, %v", c.what, got, err)
		}
	}
}

func TestConsumerRecordsOfALaterVersionAreNotKnown(t *testing.T) {
	for _, key := range []string{"0003 0001 'g'", "0005 0001 'g' 0001 'm'", "0006 0001 'g'", "0007 0001 'g' 0001 'm'", "0008 0001 'g' 0001 'm'", "0010 0001 'g' 0001 'r'"} {
		if r, err := Decode(unhex(t, key), unhex(t, "0001 00")); !errors.Is(err, machine.ErrUnknownRecord) {
			t.Errorf("%s: %+v, %v", key, r, err)
		}
	}
}

func TestConsumerRecordsThatCannotBeAreRefused(t *testing.T) {
	const (
		epoch, member, target, current, regex = "0003 0001 'g'", "0005 0001 'g' 0001 'm'", "0007 0001 'g' 0001 'm'", "0008 0001 'g' 0001 'm'", "0010 0001 'g' 0001 'r'"
		topic                                 = " ab9b3b29b641458ea20eec4d06570616 "
		fields                                = "0000 00 00 01 01 01 00 00000007 00 " // of a member, up to the tagged ones
	)
	for _, c := range []struct{ what, key, value string }{
		{"a key without a group", "0003", "0000 00000001 00"},
		{"a key that ends early", "0003 0002 'g'", "0000 00000001 00"},
		{"a key with more than it has", "0003 0001 'g' 00", "0000 00000001 00"},
		{"a key with a member that it has not", "0006 0001 'g' 0001 'm'", ""},
		{"a key without its member", "0005 0001 'g'", ""},
		{"a key without its regular expression", "0010 0001 'g' 00", ""},
		{"a value of one byte", epoch, "00"},
		{"a value that is only a version", epoch, "0000"},
		{"an epoch without tagged fields", epoch, "0000 00000001"},
		{"an epoch with more after them", epoch, "0000 00000001 00 00"},
		{"a hash that is too short", epoch, "0000 00000001 01 00 07 00000000000007"},
		{"a hash that is too long", epoch, "0000 00000001 01 00 09 000000000000000007"},
		{"a billion tagged fields", epoch, "0000 00000001 ffffffff03 05 00"},
		{"a tagged field of a billion bytes", epoch, "0000 00000001 01 05 ffffffff03 00"},
		{"a number of more than 32 bits", epoch, "0000 00000001 8080808010"},
		{"a client id that is null", member, "0000 00 00 00 01 01 00 00000007 00 01 00 01 00"},
		{"a topic that is null", member, "0000 00 00 01 01 02 00 00 00000007 00 01 00 01 00"},
		{"topics that are null", member, "0000 00 00 01 01 00 00 00000007 00 01 00 01 00"},
		{"a client id of a billion bytes", member, "0000 00 00 ffffffff03 01 01 00 00000007 00 01 00 01 00"},
		{"a billion topics", member, "0000 00 00 01 01 ffffffff03 00 00000007 00 01 00 01 00"},
		{"a classic member that is only there", member, fields + "01 00 01 01"},
		{"null with more after it", member, fields + "01 00 02 00 00"},
		{"a classic member without the last byte", member, fields + "01 00 06 01 00000001 01"},
		{"a billion protocols", member, fields + "01 00 0b 01 00000001 ffffffff03 00"},
		{"a protocol with null for metadata", member, fields + "01 00 0a 01 00000001 02 01 00 00 00"},
		{"a billion assigned topics", target, "0000 ffffffff03" + topic + "01 00 00"},
		{"assigned topics that are null", target, "0000 00 00"},
		{"a billion partitions", target, "0000 02" + topic + "ffffffff03 00 00"},
		{"partitions that are null", target, "0000 02" + topic + "00 00 00"},
		{"a topic that ends early", target, "0000 02 ab9b3b29b6"},
		{"an assignment without the pending ones", current, "0000 00000009 00000008 02 01"},
		{"an assignment without a state", current, "0000 00000009 00000008"},
		{"owned partitions that are null", current, "0000 00000009 00000008 02 02" + topic + "00 00 01 00"},
		{"a billion epochs", current, "0000 00000009 00000008 02 02" + topic + "02 00000001 01 00 05 ffffffff03 01 00"},
		{"epochs with more after them", current, "0000 00000009 00000008 02 02" + topic + "02 00000001 01 00 06 02 00000007 00 01 00"},
		{"a regular expression without a time", regex, "0000 01 0000000000000001"},
	} {
		if r, err := Decode(unhex(t, c.key), unhex(t, c.value)); err == nil || errors.Is(err, machine.ErrUnknownRecord) {
			t.Errorf("%s: %+v, %v", c.what, r, err)
		}
	}
}

// Kafka reads no longer strings, and the length of one in a key could not be
// written.
func TestAStringThatIsTooLongIsNeitherReadNorWritten(t *testing.T) {
	longest, tooLong := strings.Repeat("x", 32_767), strings.Repeat("x", 32_768)
	for _, make := range []func(s string) machine.Record{
		func(s string) machine.Record { return &ConsumerEpochRecord{s, &ConsumerEpoch{}} },
		func(s string) machine.Record { return &ConsumerTopicsRecord{s, false} },
		func(s string) machine.Record { return &ConsumerTargetEpochRecord{s, nil} },
		func(s string) machine.Record { return &ConsumerTargetRecord{s, "m", &ConsumerTarget{}} },
		func(s string) machine.Record { return &ConsumerCurrentRecord{"g", s, nil} },
		func(s string) machine.Record { return &ConsumerRegexRecord{"g", s, nil} },
		func(s string) machine.Record {
			return &ConsumerRegexRecord{"g", "r", &ConsumerRegex{Topics: []string{s}}}
		},
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", s, nil} },
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Instance: &s}} },
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Rack: &s}} },
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", "m", &ConsumerMember{ClientID: s}} },
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Host: s}} },
		func(s string) machine.Record {
			return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Topics: []string{s}}}
		},
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Regex: &s}} },
		func(s string) machine.Record { return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Assignor: &s}} },
		func(s string) machine.Record {
			return &ConsumerMemberRecord{"g", "m", &ConsumerMember{Classic: &ClassicMember{Protocols: []ClassicProtocol{{Name: s}}}}}
		},
	} {
		r := make(longest)
		if again, err := Decode(r.Encode()); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("%T with the longest string: %v", r, err)
		}
		if r.Size() > 100<<20 {
			t.Errorf("%T with the longest string does not fit", r)
		}
		r = make(tooLong)
		if r.Size() <= 100<<20 {
			t.Errorf("%T with a string that is too long fits", r)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		key, value := r.Encode()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
			t.Errorf("%T with a string that is too long takes %d bytes of memory", r, n)
		}
		if _, err := Decode(key, value); err == nil {
			t.Errorf("%T with a string that is too long can be read", r)
		}
	}
}

func TestNothingIsReadAfterAnError(t *testing.T) {
	f := decoder{b: []byte("\x01\x02\x03")}
	f.int32()
	if n, s := f.int8(), f.strings(); n != 0 || s != nil || !errors.Is(f.end(), errTruncated) {
		t.Errorf("read %d and %q, %v", n, s, f.end())
	}
}

// The bytes are those of a batch, which is large, and its buffer is used again.
func TestARecordKeepsNothingOfTheBytesThatItWasReadFrom(t *testing.T) {
	for _, c := range kafkaRecords {
		key, value := unhex(t, c.key), unhex(t, c.value)
		r, err := Decode(key, value)
		clear(key)
		clear(value)
		if err != nil || !reflect.DeepEqual(r, c.record) {
			t.Errorf("%s has become %+v, %v", c.what, r, err)
		}
	}
}

// random records, of which any field may have any value.
func randomConsumerRecord(rng *rand.Rand) machine.Record {
	text := func() string { return strings.Repeat("é", rng.IntN(4)*rng.IntN(60)) }
	nullable := func() *string {
		if rng.IntN(3) == 0 {
			return nil
		}
		s := text()
		return &s
	}
	texts := func() (out []string) {
		for range rng.IntN(4) {
			out = append(out, text())
		}
		return out
	}
	number := func() int32 { return int32(rng.Uint32()) >> rng.IntN(32) }
	numbers := func() (out []int32) {
		for range rng.IntN(3) * rng.IntN(90) {
			out = append(out, number())
		}
		return out
	}
	owned := func() (out []OwnedPartitions) {
		for range rng.IntN(3) {
			o := OwnedPartitions{Partitions: numbers()}
			o.Topic[rng.IntN(16)] = byte(rng.Uint32())
			if rng.IntN(3) > 0 {
				for range o.Partitions {
					o.Epochs = append(o.Epochs, number())
				}
			}
			out = append(out, o)
		}
		return out
	}
	group, second, live := text(), text(), rng.IntN(6) > 0
	switch rng.IntN(7) {
	case 0:
		return &ConsumerEpochRecord{group, when(live, ConsumerEpoch{number(), int64(number()) * int64(number())})}
	case 1:
		return &ConsumerTopicsRecord{group, live}
	case 2:
		m := ConsumerMember{nullable(), nullable(), text(), text(), texts(), nullable(), number(), nullable(), nil}
		if rng.IntN(2) == 0 {
			m.Classic = &ClassicMember{SessionTimeoutMillis: number()}
			for range rng.IntN(4) {
				m.Classic.Protocols = append(m.Classic.Protocols, ClassicProtocol{text(), []byte(text() + "x")})
			}
		}
		return &ConsumerMemberRecord{group, second, when(live, m)}
	case 3:
		return &ConsumerTargetEpochRecord{group, when(live, ConsumerTargetEpoch{number(), int64(number()) << 30})}
	case 4:
		var v ConsumerTarget
		for _, o := range owned() {
			v.Assigned = append(v.Assigned, TopicPartitions{o.Topic, o.Partitions})
		}
		return &ConsumerTargetRecord{group, second, when(live, v)}
	case 5:
		return &ConsumerCurrentRecord{group, second, when(live, ConsumerCurrent{number(), number(), int8(number()), owned(), owned()})}
	default:
		return &ConsumerRegexRecord{group, second, when(live, ConsumerRegex{texts(), int64(number()), int64(number()) << 20})}
	}
}

func when[T any](live bool, v T) *T {
	if !live {
		return nil
	}
	return &v
}

func TestConsumerRecordsAreReadAsTheyWereWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 16))
	for range 5000 {
		r := randomConsumerRecord(rng)
		key, value := r.Encode()
		again, err := Decode(key, value)
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%#v is read as %#v, %v", r, again, err)
		}
		if r.Size() < len(key)+len(value) {
			t.Fatalf("%#v has %d bytes, and says that it has %d", r, len(key)+len(value), r.Size())
		}
	}
}

// otherRecords are some that are not of consumer groups.
var otherRecords = []machine.Record{
	&OffsetRecord{Group: "g", Topic: "t", Partition: 0, Value: &Offset{Offset: 1, LeaderEpoch: 2, Metadata: "x", ExpireTimestamp: -1, TopicID: topicA, Start: 7}},
	&OffsetRecord{Group: "", Topic: "t", Partition: 0, Value: &Offset{Offset: -1, LeaderEpoch: -1, ExpireTimestamp: 5}},
	&OffsetRecord{Group: "g", Topic: "t", Value: &Offset{Metadata: strings.Repeat("x", 40_000), ExpireTimestamp: -1}},
	&GroupRecord{"g", &Group{ProtocolType: "consumer", Protocol: new("range"), Members: []GroupMember{{MemberID: "m", InstanceID: new("i"), Subscription: []byte("s"), Assignment: []byte{}}}}},
	&RebalanceRecord{"g", &Rebalance{Generation: 1, Loads: 2, Lives: 3}}, &DepartureRecord{"g", "m", &Departure{Generation: 1}},
	&SilenceRecord{"g", "m", &Silence{Lasted: time.Second}}, &SilenceRecord{Group: "g", Member: "m"},
}

func TestOtherRecordsAreReadAsTheyWereWritten(t *testing.T) {
	for _, r := range otherRecords {
		key, value := r.Encode()
		if again, err := Decode(key, value); err != nil || !reflect.DeepEqual(again, r) || r.Size() < len(key)+len(value) {
			t.Errorf("%#v is read as %#v, %v", r, again, err)
		}
	}
}

// Whatever the log holds: no panic, little memory, and what can be read is read
// again when it is written again.
func FuzzDecode(f *testing.F) {
	for _, r := range kafkaRecords {
		key, value := r.record.Encode()
		f.Add(key, value, value == nil)
	}
	for _, r := range otherRecords {
		key, value := r.Encode()
		f.Add(key, value, value == nil)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		key, value := randomConsumerRecord(rng).Encode()
		f.Add(key, value, value == nil)
	}
	for range 50 {
		key, value := randomStreamsRecord(rng).Encode()
		f.Add(key, value, value == nil)
	}
	// Very many small things.
	f.Add([]byte("\x00\x05\x00\x00\x00\x00"), append([]byte("\x00\x00\x00\x00\x01\x01\xc1\xb8\x02"), strings.Repeat("\x01", 50_000)...), false)
	f.Add([]byte("\x00\x07\x00\x00\x00\x00"), append([]byte("\x00\x00\x91\x4e"), strings.Repeat("1234567890123456\x01\x00", 10_000)...), false)
	// Claims of more than there are, though each of them might be a byte.
	f.Add([]byte("\x00\x07\x00\x00\x00\x00"), append([]byte("\x00\x00\xd1\x86\x03"), strings.Repeat("\x01", 50_000)...), false)
	f.Add([]byte("\x00\x08\x00\x00\x00\x00"), append([]byte("\x00\x00........\x00\xd1\x86\x03"), strings.Repeat("\x01", 50_000)...), false)
	f.Add([]byte("\x00\x05\x00\x00\x00\x00"), append([]byte("\x00\x00\x00\x00\x01\x01\x01\x01....\x01\x01\x00\xdc\x86\x03\x01....\xd1\x86\x03"), strings.Repeat("\x01", 50_004)...), false)
	f.Fuzz(func(t *testing.T, key, value []byte, tombstone bool) {
		if tombstone {
			value = nil
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Decode(key, value)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(24*(len(key)+len(value)))+64<<10 {
			t.Errorf("%d bytes of memory for a record of %d", n, len(key)+len(value))
		}
		if err != nil {
			return
		}
		k, v := r.Encode()
		if r.Size() < len(k)+len(v) {
			t.Errorf("it has %d bytes, and says that it has %d", len(k)+len(v), r.Size())
		}
		if again, err := Decode(k, v); err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("written and read again, %+v is %+v, %v", r, again, err)
		}
	})
}
