package group

import (
	"slices"
	"strings"

	"muster/internal/group/schema"
	"muster/internal/harness"
	"muster/internal/machine"
)

// parseConsumerRecord reads a line of the replay command that is about a consumer
// group. With gone it is a tombstone.
func (s *scenario) parseConsumerRecord(a args) machine.Record {
	id, gone := a.Who(), a.D.HasArg("gone")
	second := func() string { return a.D.CmdArgs[1].Key }
	switch a.D.Cmd {
	case "consumer-epoch":
		if gone {
			return &schema.ConsumerEpochRecord{Group: id}
		}
		return &schema.ConsumerEpochRecord{Group: id, Value: &schema.ConsumerEpoch{Epoch: int32(harness.ParseInt(s.T, second()))}}
	case "consumer-target-epoch":
		if gone {
			return &schema.ConsumerTargetEpochRecord{Group: id}
		}
		made := s.Now.Add(-harness.ParseDuration(s.T, a.Text("age", "0s"))).UnixMilli()
		return &schema.ConsumerTargetEpochRecord{Group: id, Value: &schema.ConsumerTargetEpoch{Epoch: int32(harness.ParseInt(s.T, second())), Timestamp: made}}
	case "consumer-topics":
		return &schema.ConsumerTopicsRecord{Group: id, Live: !gone}
	case "consumer-member":
		if gone {
			return &schema.ConsumerMemberRecord{Group: id, Member: second()}
		}
		v := &schema.ConsumerMember{Instance: a.pointer("instance"), ClientID: "loaded", Host: "/10.0.0.2", Topics: a.List("topics"), Regex: a.pointer("regex")}
		v.RebalanceTimeoutMillis = a.Millis("timeout", "60s")
		if protocols := a.List("classic"); protocols != nil {
			v.Classic = &schema.ClassicMember{SessionTimeoutMillis: a.Millis("session", "10s")}
			for _, p := range protocols {
				name, topics, _ := strings.Cut(p, ":")
				v.Classic.Protocols = append(v.Classic.Protocols, schema.ClassicProtocol{Name: name, Metadata: subscriptionOf(topics)})
			}
		}
		return &schema.ConsumerMemberRecord{Group: id, Member: second(), Value: v}
	case "consumer-target":
		if gone {
			return &schema.ConsumerTargetRecord{Group: id, Member: second()}
		}
		v := &schema.ConsumerTarget{}
		for _, t := range s.parseHeld(a.List("parts")) {
			v.Assigned = append(v.Assigned, schema.TopicPartitions{Topic: t.Topic, Partitions: t.Partitions})
		}
		return &schema.ConsumerTargetRecord{Group: id, Member: second(), Value: v}
	case "consumer-current":
		if gone {
			return &schema.ConsumerCurrentRecord{Group: id, Member: second()}
		}
		epoch := int32(a.Number("epoch", 5))
		return &schema.ConsumerCurrentRecord{Group: id, Member: second(), Value: &schema.ConsumerCurrent{
			Epoch: epoch, Previous: int32(a.Number("previous", int(epoch)-1)), State: int8(a.Number("state", 0)),
			Assigned: s.parseHeld(a.List("parts")), Pending: s.parseHeld(a.List("pending")),
		}}
	case "consumer-regex":
		if gone {
			return &schema.ConsumerRegexRecord{Group: id, Regex: second()}
		}
		return &schema.ConsumerRegexRecord{Group: id, Regex: second(), Value: &schema.ConsumerRegex{Topics: a.List("topics"), Timestamp: s.Now.UnixMilli()}}
	}
	s.T.Fatalf("unknown record %q", a.D.Cmd)
	return nil
}

// parseHeld reads t:0+1@3 as partitions that a member has had since epoch 3.
func (s *scenario) parseHeld(list []string) (out []schema.OwnedPartitions) {
	for _, v := range list {
		v, since, told := strings.Cut(v, "@")
		for _, t := range s.parseOwned([]string{v}) {
			e := schema.OwnedPartitions{Topic: t.TopicID, Partitions: t.Partitions}
			if told {
				e.Epochs = slices.Repeat([]int32{int32(harness.ParseInt(s.T, since))}, len(t.Partitions))
			}
			out = append(out, e)
		}
	}
	return out
}
