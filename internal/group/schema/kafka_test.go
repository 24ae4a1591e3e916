package schema

import (
	"bytes"
	"reflect"
	"testing"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// Topics, members and the host of the golden records.
var (
	topicA, topicB = parseTopicID("q5s7KbZBRY6iDuxNBlcGFg"), parseTopicID("sJmK4veYTCWkRcPMrUmKpQ")
	host           = "/127.0.0.1"
)

const (
	memberOne    = "cq_wAJ3GTdO12GutnT0-6w"
	memberTwo    = "S72tZ7r-TmO3YvvI80Sz4w"
	memberStatic = "P2cOPboSTqOn7xg1PyOvFw"
)

func parseTopicID(s string) metadata.TopicID {
	id, err := metadata.ParseTopicID(s)
	if err != nil {
		panic(err)
	}
	return id
}

// golden is a record as Kafka wrote it.
type golden struct {
	what, key, value string
	record           machine.Record
}

// kafkaRecords are records of groups of a broker of Apache Kafka 4.3.1, with
// members of its Java client: what `kafka-dump-log` calls their fields is what
// stands here. There are plain members, a static one, one with a regular
// expression, and classic ones in a group that was converted.
var kafkaRecords = []golden{
	{
		"an epoch", "0003 0005 'plain'", "0000 00000002 01 00 08 e559f9a2eb9c6deb",
		&ConsumerEpochRecord{"plain", &ConsumerEpoch{Epoch: 2, Hash: -1920229287963890197}},
	},
	{"an epoch without topics", "0003 0005 'plain'", "0000 00000008 00", &ConsumerEpochRecord{"plain", &ConsumerEpoch{Epoch: 8}}},
	{"an epoch's tombstone", "0003 0005 'plain'", "", &ConsumerEpochRecord{Group: "plain"}},
	{"the old topics' tombstone", "0004 0005 'plain'", "", &ConsumerTopicsRecord{Group: "plain"}},
	{
		"a member", "0005 0005 'plain' 0016 'cq_wAJ3GTdO12GutnT0-6w'",
		"0000 00 00 03 'c1' 0b '/127.0.0.1' 02 02 'a' 01 000493e0 00 01 00 01 00",
		&ConsumerMemberRecord{"plain", memberOne, &ConsumerMember{
			ClientID: "c1", Host: host, Topics: []string{"a"}, Regex: new(""), RebalanceTimeoutMillis: 300_000,
		}},
	},
	{
		"a member with two topics", "0005 0005 'plain' 0016 'S72tZ7r-TmO3YvvI80Sz4w'",
		"0000 00 00 03 'c2' 0b '/127.0.0.1' 03 02 'a' 02 'b' 01 000493e0 00 01 00 01 00",
		&ConsumerMemberRecord{"plain", memberTwo, &ConsumerMember{
			ClientID: "c2", Host: host, Topics: []string{"a", "b"}, Regex: new(""), RebalanceTimeoutMillis: 300_000,
		}},
	},
	{
		"a static member with rack and assignor", "0005 0006 'static' 0016 'P2cOPboSTqOn7xg1PyOvFw'",
		"0000 03 'i1' 03 'r1' 02 's' 0b '/127.0.0.1' 02 02 'a' 01 0000ea60 06 'range' 01 00 01 00",
		&ConsumerMemberRecord{"static", memberStatic, &ConsumerMember{
			Instance: new("i1"), Rack: new("r1"), ClientID: "s", Host: host, Topics: []string{"a"}, Regex: new(""),
			RebalanceTimeoutMillis: 60_000, Assignor: new("range"),
		}},
	},
	{
		"a member with a regular expression", "0005 0005 'regex' 0016 'j9ikczz_TBq9qSUGk2ye2A'",
		"0000 00 00 02 'r' 0b '/127.0.0.1' 01 04 'a.*' 000493e0 00 01 00 01 00",
		&ConsumerMemberRecord{"regex", "j9ikczz_TBq9qSUGk2ye2A", &ConsumerMember{
			ClientID: "r", Host: host, Regex: new("a.*"), RebalanceTimeoutMillis: 300_000,
		}},
	},
	{
		"a classic member", "0005 0005 'mixed' 0027 'k1-6b81670b-6e46-440e-b580-60ef7723fcd9'",
		"0000 00 00 03 'k1' 0b '/127.0.0.1' 02 02 'a' 01 000493e0 00 01 00 37 01 00004e20 02 13 'cooperative-sticky' 1c " +
			"00030000000100016100000004ffffffff00000000ffffffffffff 00 00",
		&ConsumerMemberRecord{"mixed", "k1-6b81670b-6e46-440e-b580-60ef7723fcd9", &ConsumerMember{
			ClientID: "k1", Host: host, Topics: []string{"a"}, Regex: new(""), RebalanceTimeoutMillis: 300_000,
			Classic: &ClassicMember{SessionTimeoutMillis: 20_000, Protocols: []ClassicProtocol{{
				"cooperative-sticky", []byte("\x00\x03\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x04\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff"),
			}}},
		}},
	},
	{
		"a classic static member with two protocols", "0005 0005 'mixed' 0016 'mI0EuVwMQ6ig-LsVo6mJHw'",
		"0000 03 'ki' 00 03 'k3' 0b '/127.0.0.1' 02 02 'a' 01 000493e0 00 01 00 56 01 00004e20 03 06 'range' 18 " +
			"000300000001000161ffffffff0000000000000003ffff 00 13 'cooperative-sticky' 1c " +
			"00030000000100016100000004ffffffff0000000000000003ffff 00 00",
		&ConsumerMemberRecord{"mixed", "mI0EuVwMQ6ig-LsVo6mJHw", &ConsumerMember{
			Instance: new("ki"), ClientID: "k3", Host: host, Topics: []string{"a"}, Regex: new(""), RebalanceTimeoutMillis: 300_000,
			Classic: &ClassicMember{SessionTimeoutMillis: 20_000, Protocols: []ClassicProtocol{
				{"range", []byte("\x00\x03\x00\x00\x00\x01\x00\x01a\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff")},
				{"cooperative-sticky", []byte("\x00\x03\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x04\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x03\xff\xff")},
			}},
		}},
	},
	{"a member's tombstone", "0005 0005 'plain' 0016 'S72tZ7r-TmO3YvvI80Sz4w'", "", &ConsumerMemberRecord{Group: "plain", Member: memberTwo}},
	{
		"a target's epoch", "0006 0005 'plain'", "0000 00000002 01 00 08 000001a1e331a408",
		&ConsumerTargetEpochRecord{"plain", &ConsumerTargetEpoch{Epoch: 2, Timestamp: 1794813043720}},
	},
	{"a target's epoch after a conversion", "0006 0005 'mixed'", "0000 00000001 00", &ConsumerTargetEpochRecord{"mixed", &ConsumerTargetEpoch{Epoch: 1}}},
	{"a target epoch's tombstone", "0006 0005 'plain'", "", &ConsumerTargetEpochRecord{Group: "plain"}},
	{
		"a target", "0007 0005 'plain' 0016 'cq_wAJ3GTdO12GutnT0-6w'",
		"0000 02 ab9b3b29b641458ea20eec4d06570616 04 00000000 00000001 00000002 00 00",
		&ConsumerTargetRecord{"plain", memberOne, &ConsumerTarget{[]TopicPartitions{{topicA, []int32{0, 1, 2}}}}},
	},
	{
		"a target with two topics", "0007 0005 'plain' 0016 'S72tZ7r-TmO3YvvI80Sz4w'",
		"0000 03 b0998ae2f7984c25a445c3ccad498aa5 03 00000000 00000001 00 ab9b3b29b641458ea20eec4d06570616 02 00000002 00 00",
		&ConsumerTargetRecord{"plain", memberTwo, &ConsumerTarget{[]TopicPartitions{{topicB, []int32{0, 1}}, {topicA, []int32{2}}}}},
	},
	{"a target's tombstone", "0007 0005 'plain' 0016 'S72tZ7r-TmO3YvvI80Sz4w'", "", &ConsumerTargetRecord{Group: "plain", Member: memberTwo}},
	{
		"a first assignment", "0008 0005 'plain' 0016 'cq_wAJ3GTdO12GutnT0-6w'",
		"0000 00000002 00000000 00 02 ab9b3b29b641458ea20eec4d06570616 04 00000000 00000001 00000002 " +
			"01 00 0d 04 00000002 00000002 00000002 01 00",
		&ConsumerCurrentRecord{"plain", memberOne, &ConsumerCurrent{
			Epoch: 2, Assigned: []OwnedPartitions{{topicA, []int32{0, 1, 2}, []int32{2, 2, 2}}},
		}},
	},
	{
		"an assignment that waits for others", "0008 0005 'plain' 0016 'S72tZ7r-TmO3YvvI80Sz4w'", "0000 00000003 00000000 02 01 01 00",
		&ConsumerCurrentRecord{"plain", memberTwo, &ConsumerCurrent{Epoch: 3, State: 2}},
	},
	{
		"an assignment with something to revoke", "0008 0005 'plain' 0016 'cq_wAJ3GTdO12GutnT0-6w'",
		"0000 00000002 00000002 01 02 ab9b3b29b641458ea20eec4d06570616 03 00000000 00000001 01 00 09 03 00000002 00000002 " +
			"02 ab9b3b29b641458ea20eec4d06570616 02 00000002 01 00 05 02 00000002 00",
		&ConsumerCurrentRecord{"plain", memberOne, &ConsumerCurrent{
			Epoch: 2, Previous: 2, State: 1,
			Assigned: []OwnedPartitions{{topicA, []int32{0, 1}, []int32{2, 2}}}, Pending: []OwnedPartitions{{topicA, []int32{2}, []int32{2}}},
		}},
	},
	{
		"a static member that left", "0008 0006 'static' 0016 'P2cOPboSTqOn7xg1PyOvFw'",
		"0000 fffffffe 00000000 00 02 ab9b3b29b641458ea20eec4d06570616 05 00000000 00000001 00000002 00000003 " +
			"01 00 11 05 00000000 00000000 00000000 00000000 01 00",
		&ConsumerCurrentRecord{"static", memberStatic, &ConsumerCurrent{
			Epoch: -2, Assigned: []OwnedPartitions{{topicA, []int32{0, 1, 2, 3}, []int32{0, 0, 0, 0}}},
		}},
	},
	{
		"an assignment of two topics", "0008 0006 'regex2' 0016 'ABAp-JjVTR6oZZ-HharTxQ'",
		"0000 00000008 00000007 00 03 b0998ae2f7984c25a445c3ccad498aa5 03 00000000 00000001 01 00 09 03 00000006 00000006 " +
			"ab9b3b29b641458ea20eec4d06570616 02 00000000 01 00 05 02 00000004 01 00",
		&ConsumerCurrentRecord{"regex2", "ABAp-JjVTR6oZZ-HharTxQ", &ConsumerCurrent{
			Epoch: 8, Previous: 7,
			Assigned: []OwnedPartitions{{topicB, []int32{0, 1}, []int32{6, 6}}, {topicA, []int32{0}, []int32{4}}},
		}},
	},
	{"an assignment's tombstone", "0008 0005 'plain' 0016 'S72tZ7r-TmO3YvvI80Sz4w'", "", &ConsumerCurrentRecord{Group: "plain", Member: memberTwo}},
	{
		"a regular expression", "0010 0005 'regex' 0003 'a.*'", "0000 03 02 'a' 03 'ab' 000000000000017b 000001a1e3327ac9 00",
		&ConsumerRegexRecord{"regex", "a.*", &ConsumerRegex{[]string{"a", "ab"}, 379, 1794813098697}},
	},
	{
		"a regular expression that matches nothing", "0010 0005 'regex' 0009 'nothing.*'", "0000 01 000000000000018f 000001a1e332a340 00",
		&ConsumerRegexRecord{"regex", "nothing.*", &ConsumerRegex{nil, 399, 1794813109056}},
	},
	{"a regular expression's tombstone", "0010 0005 'regex' 0003 'a.*'", "", &ConsumerRegexRecord{Group: "regex", Regex: "a.*"}},

	// No broker was seen to write these; Kafka's classes do, of these fields.
	{
		"a classic member without protocols", "0005 0001 'g' 0001 'm'", "0000 00 01 01 01 01 01 ffffffff 01 00",
		&ConsumerMemberRecord{"g", "m", &ConsumerMember{Rack: new(""), Regex: new(""), RebalanceTimeoutMillis: -1, Assignor: new(""), Classic: &ClassicMember{}}},
	},
	{
		"a classic member with a session only", "0005 0001 'g' 0001 'm'", "0000 00 01 01 01 01 01 ffffffff 01 01 00 07 01 00000001 01 00",
		&ConsumerMemberRecord{"g", "m", &ConsumerMember{
			Rack: new(""), Regex: new(""), RebalanceTimeoutMillis: -1, Assignor: new(""), Classic: &ClassicMember{SessionTimeoutMillis: 1},
		}},
	},
	{"the old topics, none", "0004 0001 'g'", "0000 01 00", &ConsumerTopicsRecord{"g", true}},
	{"an empty target", "0007 0001 'g' 0001 'm'", "0000 01 00", &ConsumerTargetRecord{"g", "m", &ConsumerTarget{}}},
	{
		"an assignment without epochs", "0008 0001 'g' 0001 'm'",
		"0000 00000009 00000008 02 02 ab9b3b29b641458ea20eec4d06570616 03 00000001 00000002 00 01 00",
		&ConsumerCurrentRecord{"g", "m", &ConsumerCurrent{Epoch: 9, Previous: 8, State: 2, Assigned: []OwnedPartitions{{topicA, []int32{1, 2}, nil}}}},
	},
}

func TestConsumerRecordsAreKafkas(t *testing.T) {
	for _, c := range kafkaRecords {
		key, value := unhex(t, c.key), unhex(t, c.value)
		got, err := Decode(key, value)
		if err != nil || !reflect.DeepEqual(got, c.record) {
			t.Errorf("%s is read as %+v, %v", c.what, got, err)
		}
		k, v := c.record.Encode()
		if !bytes.Equal(k, key) || !bytes.Equal(v, value) {
			t.Errorf("%s is written as %x, %x", c.what, k, v)
		}
		if (v == nil) != (c.value == "") {
			t.Errorf("%s: only a tombstone has no value", c.what)
		}
		if n := c.record.Size(); n < len(k)+len(v) || n > 3*(len(k)+len(v)) {
			t.Errorf("%s has %d bytes, and says that it has %d", c.what, len(k)+len(v), n)
		}
	}
}
