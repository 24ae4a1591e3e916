package schema

import "testing"

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
