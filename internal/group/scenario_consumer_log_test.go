package group

import (
	"slices"
	"strings"

	"muster/internal/machine"
)

// parseConsumerRecord reads a line of the replay command that is about a consumer
// group. With gone it is a tombstone.
func (s *scenario) parseConsumerRecord(a args) machine.Record {
	id, gone := a.who(), a.d.HasArg("gone")
	second := func() string { return a.d.CmdArgs[1].Key }
	switch a.d.Cmd {
	case "consumer-epoch":
		if gone {
			return &ConsumerEpochRecord{Group: id}
		}
		return &ConsumerEpochRecord{id, &ConsumerEpoch{Epoch: int32(parseInt(s.t, second()))}}
	case "consumer-target-epoch":
		if gone {
			return &ConsumerTargetEpochRecord{Group: id}
		}
		made := s.now.Add(-parseDuration(s.t, a.text("age", "0s"))).UnixMilli()
		return &ConsumerTargetEpochRecord{id, &ConsumerTargetEpoch{Epoch: int32(parseInt(s.t, second())), Timestamp: made}}
	case "consumer-topics":
		return &ConsumerTopicsRecord{id, !gone}
	case "consumer-member":
		if gone {
			return &ConsumerMemberRecord{Group: id, Member: second()}
		}
		v := &ConsumerMember{Instance: a.pointer("instance"), ClientID: "loaded", Host: "/10.0.0.2", Topics: a.list("topics"), Regex: a.pointer("regex")}
		v.RebalanceTimeoutMillis = a.millis("timeout", "60s")
		if protocols := a.list("classic"); protocols != nil {
			v.Classic = &ClassicMember{SessionTimeoutMillis: a.millis("session", "10s")}
			for _, p := range protocols {
				name, topics, _ := strings.Cut(p, ":")
				v.Classic.Protocols = append(v.Classic.Protocols, ClassicProtocol{name, subscription(topics)})
			}
		}
		return &ConsumerMemberRecord{id, second(), v}
	case "consumer-target":
		if gone {
			return &ConsumerTargetRecord{Group: id, Member: second()}
		}
		v := &ConsumerTarget{}
		for _, t := range s.parseHeld(a.list("parts")) {
			v.Assigned = append(v.Assigned, TopicPartitions{Topic: t.Topic, Partitions: t.Partitions})
		}
		return &ConsumerTargetRecord{id, second(), v}
	case "consumer-current":
		if gone {
			return &ConsumerCurrentRecord{Group: id, Member: second()}
		}
		epoch := int32(a.number("epoch", 5))
		return &ConsumerCurrentRecord{id, second(), &ConsumerCurrent{
			Epoch: epoch, Previous: int32(a.number("previous", int(epoch)-1)), State: int8(a.number("state", 0)),
			Assigned: s.parseHeld(a.list("parts")), Pending: s.parseHeld(a.list("pending")),
		}}
	case "consumer-regex":
		if gone {
			return &ConsumerRegexRecord{Group: id, Regex: second()}
		}
		return &ConsumerRegexRecord{id, second(), &ConsumerRegex{Topics: a.list("topics"), Timestamp: s.now.UnixMilli()}}
	}
	s.t.Fatalf("unknown record %q", a.d.Cmd)
	return nil
}

// parseHeld reads t:0+1@3 as partitions that a member has had since epoch 3.
func (s *scenario) parseHeld(list []string) (out []OwnedPartitions) {
	for _, v := range list {
		v, since, told := strings.Cut(v, "@")
		for _, t := range s.parseOwned([]string{v}) {
			e := OwnedPartitions{Topic: t.TopicID, Partitions: t.Partitions}
			if told {
				e.Epochs = slices.Repeat([]int32{int32(parseInt(s.t, since))}, len(t.Partitions))
			}
			out = append(out, e)
		}
	}
	return out
}
