package sim

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// The assignors that clients know. With the last one members keep their
// partitions while they join.
const (
	rangeAssignor       = "range"
	stickyAssignor      = "sticky"
	cooperativeAssignor = "cooperative-sticky"
)

type topicPartition struct {
	topic     string
	partition int32
}

func comparePartitions(a, b topicPartition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.partition, b.partition))
}

// subscriber is a member as the leader sees it.
type subscriber struct {
	id         string
	topics     []string
	owned      []topicPartition
	generation int32 // in which it was given what it owns
}

func subscription(version int16, topics []string, owned []topicPartition, generation int32, nonce byte) []byte {
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Generation, m.UserData = version, topics, generation, []byte{nonce}
	for _, tp := range owned {
		if n := len(m.OwnedPartitions); n == 0 || m.OwnedPartitions[n-1].Topic != tp.topic {
			m.OwnedPartitions = append(m.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: tp.topic})
		}
		last := &m.OwnedPartitions[len(m.OwnedPartitions)-1]
		last.Partitions = append(last.Partitions, tp.partition)
	}
	return m.AppendTo(nil)
}

func parseSubscription(b []byte) kmsg.ConsumerMemberMetadata {
	m := kmsg.NewConsumerMemberMetadata()
	_ = m.ReadFrom(b)
	return m
}

func assignment(parts []topicPartition) []byte {
	m := kmsg.NewConsumerMemberAssignment()
	for _, tp := range parts {
		if n := len(m.Topics); n == 0 || m.Topics[n-1].Topic != tp.topic {
			m.Topics = append(m.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: tp.topic})
		}
		last := &m.Topics[len(m.Topics)-1]
		last.Partitions = append(last.Partitions, tp.partition)
	}
	return m.AppendTo(nil)
}

func parseAssignment(b []byte) []topicPartition {
	m := kmsg.NewConsumerMemberAssignment()
	if len(b) == 0 || m.ReadFrom(b) != nil {
		return nil
	}
	var out []topicPartition
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			out = append(out, topicPartition{t.Topic, p})
		}
	}
	return out
}

// assign is the leader's work: all partitions of the topics to members that
// subscribe to them.
func assign(protocol string, members []kmsg.JoinGroupResponseMember, all []topicPartition) []kmsg.SyncGroupRequestGroupAssignment {
	var subs []subscriber
	for _, m := range members {
		s := parseSubscription(m.ProtocolMetadata)
		sub := subscriber{id: m.MemberID, topics: s.Topics, generation: s.Generation}
		for _, t := range s.OwnedPartitions {
			for _, p := range t.Partitions {
				sub.owned = append(sub.owned, topicPartition{t.Topic, p})
			}
		}
		subs = append(subs, sub)
	}
	slices.SortFunc(subs, func(a, b subscriber) int { return cmp.Compare(a.id, b.id) })
	given := assignSticky(subs, all)
	if protocol == rangeAssignor {
		given = assignRange(subs, all)
	}
	var out []kmsg.SyncGroupRequestGroupAssignment
	for i, s := range subs {
		parts := given[i]
		if protocol == cooperativeAssignor {
			// What another still holds must be given up first.
			parts = slices.DeleteFunc(parts, func(tp topicPartition) bool {
				return slices.ContainsFunc(subs, func(o subscriber) bool { return o.id != s.id && slices.Contains(o.owned, tp) })
			})
		}
		slices.SortFunc(parts, comparePartitions)
		out = append(out, kmsg.SyncGroupRequestGroupAssignment{MemberID: s.id, MemberAssignment: assignment(parts)})
	}
	return out
}

// assignRange gives contiguous blocks of each topic to its subscribers.
func assignRange(subs []subscriber, all []topicPartition) [][]topicPartition {
	out := make([][]topicPartition, len(subs))
	for len(all) > 0 {
		n := 0
		for n < len(all) && all[n].topic == all[0].topic {
			n++
		}
		var takers []int
		for i, s := range subs {
			if slices.Contains(s.topics, all[0].topic) {
				takers = append(takers, i)
			}
		}
		from := 0
		for i, taker := range takers {
			size := n / len(takers)
			if i < n%len(takers) {
				size++
			}
			out[taker] = append(out[taker], all[from:from+size]...)
			from += size
		}
		all = all[n:]
	}
	return out
}

// assignSticky lets members keep what they own up to their share, and gives the
// rest to the members that have least.
func assignSticky(subs []subscriber, all []topicPartition) [][]topicPartition {
	out := make([][]topicPartition, len(subs))
	quota := (len(all) + len(subs) - 1) / len(subs)
	var rest []topicPartition
	for _, tp := range all {
		keeper := -1
		for i, s := range subs {
			if slices.Contains(s.topics, tp.topic) && slices.Contains(s.owned, tp) && (keeper < 0 || s.generation > subs[keeper].generation) {
				keeper = i
			}
		}
		if keeper >= 0 && len(out[keeper]) < quota {
			out[keeper] = append(out[keeper], tp)
		} else {
			rest = append(rest, tp)
		}
	}
	for _, tp := range rest {
		taker := -1
		for i, s := range subs {
			if slices.Contains(s.topics, tp.topic) && (taker < 0 || len(out[i]) < len(out[taker])) {
				taker = i
			}
		}
		if taker >= 0 {
			out[taker] = append(out[taker], tp)
		}
	}
	return out
}
