package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// told is what a client of the consumer protocol was last told.
type told struct {
	epoch    int32
	assigned []kmsg.ConsumerGroupHeartbeatResponseAssignmentTopic
}

// beat a [epoch=2] [topics=(t,u)] [regex=t.*] [owned=(t:0+1)] [ack] [instance=i]
// [rack=r] [assignor=range] [timeout=60s] [group=g] [member=a] [v=1]
//
// ConsumerGroupHeartbeat. The client's name is its member id. It says which epoch it was
// last told, and nothing else unless it is asked to; ack is that it has what it was told.
// With epoch=0, or the first time, it joins, by default topic t.
func (s *scenario) beat(d *datadriven.TestData) {
	a := s.args(d)
	last := s.told[a.Who()]
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version = int16(a.Number("v", 1))
	req.Group, req.MemberID, req.InstanceID, req.RackID = a.Text("group", "g"), a.Text("member", a.Who()), a.pointer("instance"), a.pointer("rack")
	req.MemberEpoch = int32(a.Number("epoch", int(last.epoch)))
	req.SubscribedTopicNames, req.SubscribedTopicRegex, req.ServerAssignor = a.List("topics"), a.pointer("regex"), a.pointer("assignor")
	req.RebalanceTimeoutMillis = -1
	if a.D.HasArg("timeout") {
		req.RebalanceTimeoutMillis = a.Millis("timeout", "")
	}
	switch {
	case a.D.HasArg("ack"):
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		for _, t := range last.assigned {
			req.Topics = append(req.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: t.TopicID, Partitions: t.Partitions})
		}
	case a.Text("owned", "null") != "null":
		req.Topics = s.parseOwned(a.List("owned"))
	}
	if req.MemberEpoch == modern.EpochJoin {
		if !a.D.HasArg("timeout") {
			req.RebalanceTimeoutMillis = a.Millis("timeout", "60s")
		}
		if req.SubscribedTopicNames == nil && req.SubscribedTopicRegex == nil && a.Text("topics", "") != "null" {
			req.SubscribedTopicNames = []string{"t"}
		}
		if req.Topics == nil && a.Text("owned", "") != "null" {
			req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		}
	}
	if slices.Equal(req.SubscribedTopicNames, []string{"null"}) {
		req.SubscribedTopicNames = nil
	}
	s.request(a.Who(), req)
}

// parseOwned reads t:0+1,u:0 as what a client says that it has.
func (s *scenario) parseOwned(list []string) []kmsg.ConsumerGroupHeartbeatRequestTopic {
	out := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for _, v := range list {
		topic, parts, ok := strings.Cut(v, ":")
		if !ok {
			continue
		}
		t := kmsg.NewConsumerGroupHeartbeatRequestTopic()
		t.TopicID = s.topicID(topic)
		for p := range strings.SplitSeq(parts, "+") {
			t.Partitions = append(t.Partitions, int32(harness.ParseInt(s.T, p)))
		}
		out = append(out, t)
	}
	return out
}

func (s *scenario) topicID(name string) metadata.TopicID {
	if s.image != nil {
		if t := s.image.Topic(name); t != nil {
			return t.ID
		}
	}
	return metadata.TopicID{15: 0xff}
}

// topicName shows a topic by its name, or by its id if it is gone.
func (s *scenario) topicName(id metadata.TopicID) string {
	if s.image != nil {
		if t := s.image.TopicByID(id); t != nil {
			return t.Name
		}
	}
	return fmt.Sprintf("id%d", id[15])
}

func (s *scenario) showBeat(who string, m *kmsg.ConsumerGroupHeartbeatResponse) string {
	if m.ErrorCode != 0 {
		out := "beat: " + harness.ErrorName(m.ErrorCode)
		if m.ErrorMessage != nil {
			out += fmt.Sprintf(" %q", *m.ErrorMessage)
		}
		if m.MemberID != nil || m.MemberEpoch != 0 || m.HeartbeatIntervalMillis != 0 || m.Assignment != nil {
			s.T.Errorf("a refused heartbeat says more than why: %+v", m)
		}
		return out
	}
	s.learn(who, *m.MemberID)
	last := s.told[who]
	last.epoch = max(m.MemberEpoch, 0)
	out := fmt.Sprintf("beat: OK epoch=%d", m.MemberEpoch)
	if every := time.Duration(m.HeartbeatIntervalMillis) * time.Millisecond; m.MemberEpoch >= 0 && every != kind.DefaultConsumerConfig().Heartbeat {
		out += fmt.Sprintf(" every %s", every)
	}
	if *m.MemberID != who {
		out += " member=" + *m.MemberID
	}
	if m.Assignment != nil {
		last.assigned = m.Assignment.Topics
		var parts []schema.OwnedPartitions
		for _, t := range m.Assignment.Topics {
			parts = append(parts, schema.OwnedPartitions{Topic: t.TopicID, Partitions: t.Partitions})
		}
		out += " " + s.showOwned(parts)
	}
	if m.MemberEpoch < 0 {
		last = told{}
	}
	s.told[who] = last
	return out
}

func (s *scenario) showParts(topics []schema.TopicPartitions) string {
	var parts []schema.OwnedPartitions
	for _, t := range topics {
		parts = append(parts, schema.OwnedPartitions{Topic: t.Topic, Partitions: t.Partitions})
	}
	return s.showOwned(parts)
}

// showOwned shows partitions, with the epoch in which they were given if that is
// told. Of many in a row the first and the last are shown.
func (s *scenario) showOwned(topics []schema.OwnedPartitions) string {
	const many = 8
	var parts []string
	for _, t := range topics {
		since := func(i int) string {
			if len(t.Epochs) == 0 {
				return ""
			}
			return fmt.Sprintf("@%d", t.Epochs[i])
		}
		for i := 0; i < len(t.Partitions); {
			n := 1
			for i+n < len(t.Partitions) && t.Partitions[i+n] == t.Partitions[i]+int32(n) && since(i+n) == since(i) {
				n++
			}
			if n > many {
				parts = append(parts, fmt.Sprintf("%s:%d..%d%s", s.topicName(t.Topic), t.Partitions[i], t.Partitions[i+n-1], since(i)))
				i += n
				continue
			}
			parts = append(parts, fmt.Sprintf("%s:%d%s", s.topicName(t.Topic), t.Partitions[i], since(i)))
			i++
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// showState shows the state of a member.
func showState(state int8) string {
	if !modern.MemberState(state).IsKnown() {
		return fmt.Sprintf("in the unknown state %d", state)
	}
	return []string{"stable", "unrevoked", "unreleased"}[state]
}

// showConsumerRecord shows a record of a consumer group.
func (s *scenario) showConsumerRecord(r machine.Record) string {
	switch r := r.(type) {
	case *schema.ConsumerEpochRecord:
		if r.Value == nil {
			return groupName(r.Group) + " epoch tombstone"
		}
		return fmt.Sprintf("%s epoch %d", groupName(r.Group), r.Value.Epoch)
	case *schema.ConsumerTargetEpochRecord:
		if r.Value == nil {
			return groupName(r.Group) + " target tombstone"
		}
		return fmt.Sprintf("%s target epoch %d", groupName(r.Group), r.Value.Epoch)
	case *schema.ConsumerMemberRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s member %s tombstone", groupName(r.Group), s.show(r.Member))
		}
		out := fmt.Sprintf("%s member %s%s wants %s", groupName(r.Group), s.show(r.Member), instance(r.Value.Instance), showWants(r.Value.Topics, r.Value.Regex))
		if r.Value.Assignor != nil {
			out += " by " + *r.Value.Assignor
		}
		if c := r.Value.Classic; c != nil {
			out += ", classic" + showClassic(c)
		}
		return out
	case *schema.ConsumerTargetRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s target of %s tombstone", groupName(r.Group), s.show(r.Member))
		}
		return fmt.Sprintf("%s target of %s %s", groupName(r.Group), s.show(r.Member), s.showParts(r.Value.Assigned))
	case *schema.ConsumerCurrentRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s %s tombstone", groupName(r.Group), s.show(r.Member))
		}
		out := fmt.Sprintf("%s %s in epoch %d after %d, %s, has %s", groupName(r.Group), s.show(r.Member), r.Value.Epoch, r.Value.Previous,
			showState(r.Value.State), s.showOwned(r.Value.Assigned))
		if len(r.Value.Pending) > 0 {
			out += ", lets go of " + s.showOwned(r.Value.Pending)
		}
		return out
	case *schema.ConsumerRegexRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s /%s/ tombstone", groupName(r.Group), r.Regex)
		}
		return fmt.Sprintf("%s /%s/ matches %s", groupName(r.Group), r.Regex, strings.Join(r.Value.Topics, "+"))
	case *schema.ConsumerTopicsRecord:
		return groupName(r.Group) + " topics of an older Kafka"
	}
	return fmt.Sprintf("%T", r)
}

// showClassic shows what is known of a member of the classic protocol.
func showClassic(c *schema.ClassicMember) (out string) {
	for _, p := range c.Protocols {
		out += " " + p.Name
		if w, err := subscription.Read(p.Metadata); err == nil && len(w.Owned) > 0 {
			for _, tp := range w.Owned {
				out += fmt.Sprintf("^%s:%d", tp.Topic, tp.Partition)
			}
		}
	}
	return out + fmt.Sprintf(" session %s", time.Duration(c.SessionTimeoutMillis)*time.Millisecond)
}

// showWants shows what a member subscribes to.
func showWants(topics []string, regex *string) string {
	var out []string
	if len(topics) > 0 {
		out = append(out, strings.Join(topics, "+"))
	}
	if regex != nil {
		out = append(out, "/"+*regex+"/")
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, " ")
}

// describeConsumers a [groups=(g,h)] [v=1]
func (s *scenario) consumerDescribe(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Version = int16(a.Number("v", 1))
	if req.Groups = a.List("groups"); req.Groups == nil {
		req.Groups = []string{"g"}
	}
	s.request(a.Who(), req)
}

func (s *scenario) showConsumers(m *kmsg.ConsumerGroupDescribeResponse) string {
	var out []string
	for _, g := range m.Groups {
		if g.ErrorCode != 0 {
			out = append(out, fmt.Sprintf("%s %s %q", groupName(g.Group), harness.ErrorName(g.ErrorCode), *g.ErrorMessage))
			continue
		}
		text := fmt.Sprintf("%s is %s, epoch %d, target %d, by %s", groupName(g.Group), g.State, g.Epoch, g.AssignmentEpoch, g.AssignorName)
		for _, e := range g.Members {
			text += fmt.Sprintf("\n     %s%s in epoch %d, client %s at %s, type %d, wants %s", s.show(e.MemberID), instance(e.InstanceID), e.MemberEpoch, e.ClientID, e.ClientHost,
				e.MemberType, showWants(e.SubscribedTopics, e.SubscribedTopicRegex))
			text += ", has " + showDescribed(e.Assignment) + " of " + showDescribed(e.TargetAssignment)
		}
		out = append(out, text)
	}
	return "describe-consumers: " + strings.Join(out, "\n   ")
}

func showDescribed(a kmsg.Assignment) string {
	var parts []string
	for _, t := range a.TopicPartitions {
		for _, p := range t.Partitions {
			parts = append(parts, fmt.Sprintf("%s:%d", t.Topic, p))
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// tasks: those that are under way are done, in order.
func (s *scenario) runTasks(*datadriven.TestData) {
	if len(s.tasks) == 0 {
		s.T.Error("there are none")
	}
	for len(s.tasks) > 0 {
		t := s.tasks[0]
		s.tasks = s.tasks[1:]
		s.step(machine.TaskDone{ID: t.ID, Result: t.Run()})
	}
}

// showConsumerState shows a consumer group as it is.
func (s *scenario) showConsumerState(c *consumer.Group) {
	s.Printf("%s is %s in epoch %d, target %d\n", groupName(c.ID), c.StateName(), c.Epoch, c.TargetEpoch)
	for _, m := range c.Members {
		now := m.Now()
		rec := consumer.CurrentRecord(c.ID, m.ID, &now).Value
		s.Printf("  %s%s in epoch %d, %s, has %s", s.show(m.ID), instance(m.Metadata.Instance), now.Epoch, showState(rec.State), s.showOwned(rec.Assigned))
		if len(rec.Pending) > 0 {
			s.Printf(", lets go of %s", s.showOwned(rec.Pending))
		}
		s.Printf(", target %s\n", s.showParts(consumer.TargetRecord(c.ID, m.ID, m.Target).Value.Assigned))
	}
	for _, p := range slices.Sorted(maps.Keys(c.Regexes)) {
		s.Printf("  /%s/ matches %s\n", p, strings.Join(c.Regexes[p].Topics, "+"))
	}
}

// settings g [session=60s] [heartbeat=10s] [interval=0s]
//
// The group has settings of its own; what is left out is as for all groups. Without any
// it has none.
func (s *scenario) settings(d *datadriven.TestData) {
	own, id := s.cfg.Consumer.Settings, d.CmdArgs[0].Key
	groups := maps.Clone(s.cfg.Consumer.Groups)
	if groups == nil {
		groups = map[string]kind.Settings{}
	}
	for _, a := range d.CmdArgs[1:] {
		switch v := harness.ParseDuration(s.T, a.Vals[0]); a.Key {
		case "session":
			own.Session = v
		case "heartbeat":
			own.Heartbeat = v
		case "interval":
			own.Interval = v
		default:
			d.Fatalf(s.T, "unknown setting %q", a.Key)
		}
	}
	if groups[id] = own; len(d.CmdArgs) == 1 {
		delete(groups, id)
	}
	s.cfg.Consumer.Groups = groups
	s.step(Configured{Config: s.cfg})
}
