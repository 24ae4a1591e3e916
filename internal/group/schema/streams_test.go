package schema

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"muster/internal/machine"
)

// The records of streams groups, written by hand from Kafka's schema.
var streamsRecords = []golden{
	{"an epoch", "0011 0001 'g'", "0000 00000005 0000000000000007 00", &StreamsEpochRecord{"g", &StreamsEpoch{Epoch: 5, Hash: 7, Validated: -1}}},
	{
		"an epoch with a topology and settings", "0011 0001 'g'", "0000 00000005 0000000000000007 02 00 04 00000003 01 06 02 02 'k' 02 'v' 00",
		&StreamsEpochRecord{"g", &StreamsEpoch{Epoch: 5, Hash: 7, Validated: 3, Configs: []KeyValue{{"k", "v"}}}},
	},
	{"an epoch's tombstone", "0011 0001 'g'", "", &StreamsEpochRecord{Group: "g"}},
	{
		"a member", "0013 0001 'g' 0001 'm'", "0000 02 'i' 00 02 'c' 02 'h' 0000000a 00000003 02 'p' 01 02 'e' fffe 00 02 02 'k' 02 'v' 00 00",
		&StreamsMemberRecord{"g", "m", &StreamsMember{
			Instance: new("i"), ClientID: "c", Host: "h", RebalanceTimeoutMillis: 10, TopologyEpoch: 3, Process: "p",
			Endpoint: &Endpoint{"e", 65534}, Tags: []KeyValue{{"k", "v"}},
		}},
	},
	{
		"a member without an endpoint", "0013 0001 'g' 0001 'm'", "0000 00 02 'r' 02 'c' 02 'h' 0000000a 00000003 02 'p' ff 01 00",
		&StreamsMemberRecord{"g", "m", &StreamsMember{Rack: new("r"), ClientID: "c", Host: "h", RebalanceTimeoutMillis: 10, TopologyEpoch: 3, Process: "p"}},
	},
	{"a target's epoch", "0014 0001 'g'", "0000 00000005 01 00 08 0000000000000009", &StreamsTargetEpochRecord{"g", &StreamsTargetEpoch{5, 9}}},
	{
		"a target", "0015 0001 'g' 0001 'm'", "0000 02 02 's' 03 00000001 00000002 00 02 02 's' 02 00000003 00 01 00",
		&StreamsTargetRecord{"g", "m", &StreamsTarget{Active: []TaskIDs{{"s", []int32{1, 2}}}, Standby: []TaskIDs{{"s", []int32{3}}}}},
	},
	{
		"where a member is", "0016 0001 'g' 0001 'm'", "0000 00000005 00000004 02 02 02 's' 02 00000001 01 00 05 02 00000003 01 01 01 02 02 's' 02 00000004 00 01 00",
		&StreamsCurrentRecord{"g", "m", &StreamsCurrent{
			Epoch: 5, Previous: 4, State: 2, Active: []OwnedTasks{{"s", []int32{1}, []int32{3}}}, PendingStandby: []OwnedTasks{{"s", []int32{4}, nil}},
		}},
	},
	{
		"a topology", "0017 0001 'g'",
		"0000 00000001 02 02 's' 02 02 't' 02 02 'x' 02 02 'c' 00000000 0000 02 02 'k' 02 'v' 00 00 02 02 'o' 02 02 'r' 00000004 0001 01 00 02 02 0000 01 02 0001 00 00 00",
		&StreamsTopologyRecord{"g", &StreamsTopology{1, []Subtopology{{
			ID: "s", Sources: []string{"t"}, Patterns: []string{"x"}, Changelogs: []TopicInfo{{"c", 0, 0, []KeyValue{{"k", "v"}}}}, Sinks: []string{"o"},
			Repartitions: []TopicInfo{{"r", 4, 1, nil}}, Copartitions: []Copartition{{Sources: []int16{0}, Repartitions: []int16{1}}},
		}}}},
	},
}

func TestStreamsRecordsAreInKafkasFormat(t *testing.T) {
	for _, c := range streamsRecords {
		key, value := c.record.Encode()
		if !bytes.Equal(key, unhex(t, c.key)) || !bytes.Equal(value, unhex(t, c.value)) {
			t.Errorf("%s is written as %x, %x", c.what, key, value)
		}
		if again, err := Decode(key, value); err != nil || !reflect.DeepEqual(again, c.record) {
			t.Errorf("%s is read as %+v, %v", c.what, again, err)
		}
		if c.record.Size() < len(key)+len(value) {
			t.Errorf("%s has %d bytes, and says that it has %d", c.what, len(key)+len(value), c.record.Size())
		}
	}
}

// Kafka writes null for settings that it does not know, and later versions more.
func TestStreamsRecordsOfOtherVersionsAreRead(t *testing.T) {
	for _, c := range []golden{
		{"an epoch with null for settings", "0011 0001 'g'", "0000 00000005 0000000000000007 01 01 01 00", &StreamsEpochRecord{"g", &StreamsEpoch{Epoch: 5, Hash: 7, Validated: -1}}},
		{"an epoch with later tags", "0011 0001 'g'", "0000 00000005 0000000000000007 02 02 04 00000001 03 01 ff", &StreamsEpochRecord{"g", &StreamsEpoch{Epoch: 5, Hash: 7, Validated: -1}}},
		{
			"too few epochs", "0016 0001 'g' 0001 'm'", "0000 00000005 00000004 01 02 02 's' 03 00000001 00000002 01 00 05 02 00000003 01 01 01 01 01 00",
			&StreamsCurrentRecord{"g", "m", &StreamsCurrent{Epoch: 5, Previous: 4, State: 1, Active: []OwnedTasks{{"s", []int32{1, 2}, nil}}}},
		},
	} {
		if got, err := Decode(unhex(t, c.key), unhex(t, c.value)); err != nil || !reflect.DeepEqual(got, c.record) {
			t.Errorf("%s is read as %+v, %v", c.what, got, err)
		}
	}
}

func TestStreamsRecordsThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct{ what, key, value string }{
		{"an endpoint that ends early", "0013 0001 'g' 0001 'm'", "0000 00 00 02 'c' 02 'h' 0000000a 00000003 02 'p' 01 02 'e' ff"},
		{"a billion tags", "0013 0001 'g' 0001 'm'", "0000 00 00 02 'c' 02 'h' 0000000a 00000003 02 'p' ff ffffffff03 00"},
		{"a billion settings", "0011 0001 'g'", "0000 00000005 0000000000000007 01 01 05 ffffffff03"},
		{"a billion indexes", "0017 0001 'g'", "0000 00000001 02 02 's' 01 01 01 01 01 02 ffffffff03 01 01 00 00 00"},
		{"subtopologies that are null", "0017 0001 'g'", "0000 00000001 00 00"},
	} {
		if r, err := Decode(unhex(t, c.key), unhex(t, c.value)); err == nil || errors.Is(err, machine.ErrUnknownRecord) {
			t.Errorf("%s: %+v, %v", c.what, r, err)
		}
	}
}

// randomStreamsRecord has any value in any field.
func randomStreamsRecord(rng *rand.Rand) machine.Record {
	text := func() string { return strings.Repeat("é", rng.IntN(4)*rng.IntN(60)) }
	number := func() int32 { return int32(rng.Uint32()) >> rng.IntN(32) }
	values := func() (out []KeyValue) {
		for range rng.IntN(3) {
			out = append(out, KeyValue{text(), text()})
		}
		return out
	}
	owned := func() (out []OwnedTasks) {
		for range rng.IntN(3) {
			o := OwnedTasks{Subtopology: text()}
			epochs := rng.IntN(2) == 0
			for range rng.IntN(3) * rng.IntN(90) {
				if o.Partitions = append(o.Partitions, number()); epochs {
					o.Epochs = append(o.Epochs, number())
				}
			}
			out = append(out, o)
		}
		return out
	}
	tasks := func() (out []TaskIDs) {
		for _, o := range owned() {
			out = append(out, TaskIDs{o.Subtopology, o.Partitions})
		}
		return out
	}
	infos := func() (out []TopicInfo) {
		for range rng.IntN(3) {
			out = append(out, TopicInfo{text(), number(), int16(number()), values()})
		}
		return out
	}
	group, second, live := text(), text(), rng.IntN(6) > 0
	switch rng.IntN(6) {
	case 0:
		return &StreamsEpochRecord{group, when(live, StreamsEpoch{number(), int64(number()) << 20, number(), values()})}
	case 1:
		return &StreamsMemberRecord{group, second, when(live, StreamsMember{
			when(rng.IntN(2) == 0, text()), when(rng.IntN(2) == 0, text()), text(), text(), number(), number(), text(), when(rng.IntN(2) == 0, Endpoint{text(), uint16(number())}), values(),
		})}
	case 2:
		return &StreamsTargetEpochRecord{group, when(live, StreamsTargetEpoch{number(), int64(number()) << 30})}
	case 3:
		return &StreamsTargetRecord{group, second, when(live, StreamsTarget{tasks(), tasks(), tasks()})}
	case 4:
		return &StreamsCurrentRecord{group, second, when(live, StreamsCurrent{number(), number(), int8(number()), owned(), owned(), owned(), owned(), owned(), owned()})}
	default:
		v := StreamsTopology{Epoch: number()}
		for range rng.IntN(3) {
			s := Subtopology{ID: text(), Changelogs: infos(), Repartitions: infos()}
			for range rng.IntN(3) {
				s.Sources, s.Patterns, s.Sinks = append(s.Sources, text()), append(s.Patterns, text()), append(s.Sinks, text())
				s.Copartitions = append(s.Copartitions, Copartition{[]int16{int16(number())}, nil, []int16{1, int16(number())}})
			}
			v.Subtopologies = append(v.Subtopologies, s)
		}
		return &StreamsTopologyRecord{group, when(live, v)}
	}
}

func TestStreamsRecordsAreReadAsTheyWereWritten(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 17))
	for range 5000 {
		r := randomStreamsRecord(rng)
		key, value := r.Encode()
		if again, err := Decode(key, value); err != nil || !reflect.DeepEqual(again, r) {
			t.Fatalf("%#v is read as %#v, %v", r, again, err)
		}
		if r.Size() < len(key)+len(value) {
			t.Fatalf("%#v has %d bytes, and says that it has %d", r, len(key)+len(value), r.Size())
		}
	}
}
