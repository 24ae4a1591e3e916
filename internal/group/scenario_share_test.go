package group

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/share"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// share-beat a [epoch=2] [topics=(t,u)] [rack=r] [group=g] [member=a] [v=1]
//
// ShareGroupHeartbeat. The client's name is its member id. It says which epoch it was last
// told, and nothing else unless it is asked to. With epoch=0, or the first time, it joins, by
// default topic t.
func (s *scenario) shareBeat(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrShareGroupHeartbeatRequest()
	req.Version = int16(a.Number("v", 1))
	req.GroupID, req.MemberID, req.RackID = a.Text("group", "g"), a.Text("member", a.Who()), a.pointer("rack")
	req.MemberEpoch = int32(a.Number("epoch", int(s.told[a.Who()].epoch)))
	if req.SubscribedTopicNames = a.List("topics"); req.MemberEpoch == modern.EpochJoin && req.SubscribedTopicNames == nil && a.Text("topics", "") != "null" {
		req.SubscribedTopicNames = []string{"t"}
	}
	if len(req.SubscribedTopicNames) == 1 && req.SubscribedTopicNames[0] == "null" {
		req.SubscribedTopicNames = nil
	}
	s.request(a.Who(), req)
}

func (s *scenario) showShareBeat(who string, m *kmsg.ShareGroupHeartbeatResponse) string {
	if m.ErrorCode != 0 {
		if m.MemberID != nil || m.MemberEpoch != 0 || m.HeartbeatIntervalMillis != 0 || m.Assignment != nil {
			s.T.Errorf("a refused heartbeat says more than why: %+v", m)
		}
		return "share-beat: " + harness.ErrorName(m.ErrorCode) + quoted(m.ErrorMessage)
	}
	s.told[who] = told{epoch: max(m.MemberEpoch, 0)}
	out := fmt.Sprintf("share-beat: OK epoch=%d", m.MemberEpoch)
	if every := time.Duration(m.HeartbeatIntervalMillis) * time.Millisecond; m.MemberEpoch >= 0 && every != kind.DefaultShareConfig().Heartbeat {
		out += fmt.Sprintf(" every %s", every)
	}
	if m.Assignment != nil {
		var parts []schema.TopicPartitions
		for _, t := range m.Assignment.TopicPartitions {
			parts = append(parts, schema.TopicPartitions{Topic: t.TopicID, Partitions: t.Partitions})
		}
		out += " " + s.showParts(parts)
	}
	return out
}

func quoted(s *string) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf(" %q", *s)
}

// describe-shares a [groups=(g,h)]
func (s *scenario) shareDescribe(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrShareGroupDescribeRequest()
	req.Version = 1
	if req.GroupIDs = a.List("groups"); req.GroupIDs == nil {
		req.GroupIDs = []string{"g"}
	}
	s.request(a.Who(), req)
}

func (s *scenario) showShares(m *kmsg.ShareGroupDescribeResponse) string {
	var out []string
	for _, g := range m.Groups {
		if g.ErrorCode != 0 {
			out = append(out, groupName(g.GroupID)+" "+harness.ErrorName(g.ErrorCode)+quoted(g.ErrorMessage))
			continue
		}
		text := fmt.Sprintf("%s is %s, epoch %d, target %d, by %s", groupName(g.GroupID), g.GroupState, g.GroupEpoch, g.AssignmentEpoch, g.Assignor)
		for _, e := range g.Members {
			var parts []schema.TopicPartitions
			for _, t := range e.Assignment.TopicPartitions {
				parts = append(parts, schema.TopicPartitions{Topic: t.TopicID, Partitions: t.Partitions})
			}
			text += fmt.Sprintf("\n     %s in epoch %d, client %s at %s, wants %s, has %s", e.MemberID, e.MemberEpoch, e.ClientID, e.ClientHost, strings.Join(e.SubscribedTopicNames, "+"), s.showParts(parts))
		}
		out = append(out, text)
	}
	return "describe-shares: " + strings.Join(out, "\n   ")
}

// share-offsets a [groups=(g)] [topics=(t:0+1)] [v=1]: by default of all topics.
func (s *scenario) shareOffsets(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	req.Version = int16(a.Number("v", 1))
	groups := a.List("groups")
	if groups == nil {
		groups = []string{"g"}
	}
	for _, id := range groups {
		g := kmsg.NewDescribeShareGroupOffsetsRequestGroup()
		g.GroupID = id
		for _, v := range a.List("topics") {
			topic, parts, _ := strings.Cut(v, ":")
			t := kmsg.NewDescribeShareGroupOffsetsRequestGroupTopic()
			t.Topic = topic
			for p := range strings.SplitSeq(parts, "+") {
				t.Partitions = append(t.Partitions, int32(harness.ParseInt(s.T, p)))
			}
			g.Topics = append(g.Topics, t)
		}
		req.Groups = append(req.Groups, g)
	}
	s.request(a.Who(), req)
}

// alter-share-offsets a offsets=(t:0=5) [group=g]
func (s *scenario) alterShareOffsets(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrAlterShareGroupOffsetsRequest()
	req.GroupID = a.Text("group", "g")
	for _, v := range a.List("offsets") {
		at, to, _ := strings.Cut(v, "=")
		topic, n, _ := strings.Cut(at, ":")
		t := kmsg.NewAlterShareGroupOffsetsRequestTopic()
		p := kmsg.NewAlterShareGroupOffsetsRequestTopicPartition()
		t.Topic, p.Partition, p.StartOffset = topic, int32(harness.ParseInt(s.T, n)), int64(harness.ParseInt(s.T, to))
		t.Partitions = append(t.Partitions, p)
		req.Topics = append(req.Topics, t)
	}
	s.request(a.Who(), req)
}

// delete-share-offsets a [topics=(t)] [group=g]
func (s *scenario) deleteShareOffsets(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrDeleteShareGroupOffsetsRequest()
	req.GroupID = a.Text("group", "g")
	for _, topic := range a.List("topics") {
		t := kmsg.NewDeleteShareGroupOffsetsRequestTopic()
		t.Topic = topic
		req.Topics = append(req.Topics, t)
	}
	s.request(a.Who(), req)
}

// showShareReply shows an answer about a share group, "" if it is none.
func (s *scenario) showShareReply(who string, msg kmsg.Response) string {
	switch m := msg.(type) {
	case *kmsg.ShareGroupHeartbeatResponse:
		return s.showShareBeat(who, m)
	case *kmsg.ShareGroupDescribeResponse:
		return s.showShares(m)
	case *kmsg.DescribeShareGroupOffsetsResponse:
		var out []string
		for _, g := range m.Groups {
			text := groupName(g.GroupID) + " " + harness.ErrorName(g.ErrorCode)
			for _, t := range g.Topics {
				for _, p := range t.Partitions {
					if text += fmt.Sprintf(" %s:%d at %d", t.Topic, p.Partition, p.StartOffset); m.Version >= 1 {
						text += fmt.Sprintf(" lag %d", p.Lag)
					}
					if p.ErrorCode != 0 {
						text += " " + harness.ErrorName(p.ErrorCode)
					}
				}
			}
			out = append(out, text)
		}
		return "share-offsets: " + strings.Join(out, "; ")
	case *kmsg.AlterShareGroupOffsetsResponse:
		out := "alter-share-offsets: " + harness.ErrorName(m.ErrorCode)
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf("; %s:%d %s", t.Topic, p.Partition, harness.ErrorName(p.ErrorCode))
			}
		}
		return out
	case *kmsg.DeleteShareGroupOffsetsResponse:
		out := "delete-share-offsets: " + harness.ErrorName(m.ErrorCode)
		for _, t := range m.Topics {
			out += fmt.Sprintf("; %s %s", t.Topic, harness.ErrorName(t.ErrorCode))
		}
		return out
	}
	return ""
}

// showShareSend shows what the share coordinator, or a leader, is asked; "" if it is something else.
func (s *scenario) showShareSend(m machine.Send) string {
	var parts []string
	add := func(id metadata.TopicID, n int32) { parts = append(parts, fmt.Sprintf("%s:%d", s.topicName(id), n)) }
	var what, epoch string
	to := fmt.Sprintf("broker %d", m.To)
	if m.To == machine.ShareCoordinator {
		to = "the share coordinator"
	}
	switch q := m.Msg.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		what = "to initialize"
		for _, t := range q.Topics {
			for _, p := range t.Partitions {
				epoch = fmt.Sprintf(" under state epoch %d", p.StateEpoch)
				if add(t.TopicID, p.Partition); p.StartOffset >= 0 {
					parts[len(parts)-1] += fmt.Sprintf("=%d", p.StartOffset)
				}
			}
		}
	case *kmsg.DeleteShareGroupStateRequest:
		what = "to delete"
		for _, t := range q.Topics {
			for _, p := range t.Partitions {
				add(t.TopicID, p.Partition)
			}
		}
	case *kmsg.ReadShareGroupStateSummaryRequest:
		what = "about"
		for _, t := range q.Topics {
			for _, p := range t.Partitions {
				add(t.TopicID, p.Partition)
			}
		}
	case *kmsg.ListOffsetsRequest:
		what = "for the end of"
		for _, t := range q.Topics {
			for _, p := range t.Partitions {
				parts = append(parts, fmt.Sprintf("%s:%d", t.Topic, p.Partition))
			}
		}
	default:
		return ""
	}
	return fmt.Sprintf("%s %s %s%s", to, what, strings.Join(parts, " "), epoch)
}

// answerShare answers a question of a share group: false says that it is none.
//
//	answer [question] [code=14] [codes=(t:0=42)] [at=(t:0=5/2)] [lost]
//
// code is of all partitions, codes of some; at is where one begins, or ends, and how many
// records behind that need no delivery.
func (s *scenario) answerShare(d *datadriven.TestData, q machine.Send) bool {
	if s.showShareSend(q) == "" {
		return false
	}
	if d.HasArg("lost") {
		s.step(machine.Sent{ID: q.ID, Err: errors.New("lost")})
		return true
	}
	a := s.args(d)
	codes, at := map[string]int16{}, map[string]string{}
	for _, v := range a.List("codes") {
		p, code, _ := strings.Cut(v, "=")
		codes[p] = int16(harness.ParseInt(s.T, code))
	}
	for _, v := range a.List("at") {
		p, text, _ := strings.Cut(v, "=")
		at[p] = text
	}
	code := func(name string) int16 {
		if c, ok := codes[name]; ok {
			return c
		}
		return int16(a.Number("code", 0))
	}
	s.step(machine.Sent{ID: q.ID, Msg: s.answerShareWith(q.Msg, code, at)})
	return true
}

func (s *scenario) answerShareWith(msg kmsg.Request, code func(string) int16, at map[string]string) kmsg.Response {
	name := func(id metadata.TopicID, n int32) string { return fmt.Sprintf("%s:%d", s.topicName(id), n) }
	switch q := msg.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		resp := kmsg.NewPtrInitializeShareGroupStateResponse()
		for _, t := range q.Topics {
			out := kmsg.InitializeShareGroupStateResponseTopic{TopicID: t.TopicID}
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.InitializeShareGroupStateResponseTopicPartition{Partition: p.Partition, ErrorCode: code(name(t.TopicID, p.Partition))})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	case *kmsg.DeleteShareGroupStateRequest:
		resp := kmsg.NewPtrDeleteShareGroupStateResponse()
		for _, t := range q.Topics {
			out := kmsg.DeleteShareGroupStateResponseTopic{TopicID: t.TopicID}
			for _, p := range t.Partitions {
				out.Partitions = append(out.Partitions, kmsg.DeleteShareGroupStateResponseTopicPartition{Partition: p.Partition, ErrorCode: code(name(t.TopicID, p.Partition))})
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	case *kmsg.ReadShareGroupStateSummaryRequest:
		resp := kmsg.NewPtrReadShareGroupStateSummaryResponse()
		for _, t := range q.Topics {
			out := kmsg.ReadShareGroupStateSummaryResponseTopic{TopicID: t.TopicID}
			for _, p := range t.Partitions {
				e := kmsg.NewReadShareGroupStateSummaryResponseTopicPartition()
				e.Partition, e.ErrorCode, e.StartOffset, e.DeliveryCompleteCount = p.Partition, code(name(t.TopicID, p.Partition)), -1, -1
				if start, done, ok := strings.Cut(at[name(t.TopicID, p.Partition)], "/"); ok {
					e.StartOffset, e.DeliveryCompleteCount = number(start), int32(number(done))
				}
				out.Partitions = append(out.Partitions, e)
			}
			resp.Topics = append(resp.Topics, out)
		}
		return resp
	}
	q := msg.(*kmsg.ListOffsetsRequest)
	resp := kmsg.NewPtrListOffsetsResponse()
	for _, t := range q.Topics {
		out := kmsg.NewListOffsetsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			e := kmsg.NewListOffsetsResponseTopicPartition()
			e.Partition, e.Offset = p.Partition, number(at[fmt.Sprintf("%s:%d", t.Topic, p.Partition)])
			if e.Offset < 0 {
				e.ErrorCode = kerr.NotLeaderForPartition.Code
			}
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp
}

// number reads a number, -1 if there is none.
func number(v string) int64 {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// showShareRecord shows a record of a share group.
func (s *scenario) showShareRecord(r schema.Record) string {
	name := groupName(r.GroupID())
	switch r := r.(type) {
	case *schema.ShareEpochRecord:
		if r.Value == nil {
			return name + " epoch tombstone"
		}
		return fmt.Sprintf("%s epoch %d", name, r.Value.Epoch)
	case *schema.ShareTargetEpochRecord:
		if r.Value == nil {
			return name + " target tombstone"
		}
		return fmt.Sprintf("%s target epoch %d", name, r.Value.Epoch)
	case *schema.ShareMemberRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s member %s tombstone", name, r.Member)
		}
		out := fmt.Sprintf("%s member %s wants %s", name, r.Member, strings.Join(r.Value.Topics, "+"))
		if r.Value.Rack != nil {
			out += " in rack " + *r.Value.Rack
		}
		return out
	case *schema.ShareTargetRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s target of %s tombstone", name, r.Member)
		}
		return fmt.Sprintf("%s target of %s %s", name, r.Member, s.showParts(r.Value.Assigned))
	case *schema.ShareCurrentRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s %s tombstone", name, r.Member)
		}
		return fmt.Sprintf("%s %s in epoch %d after %d, %s, has %s", name, r.Member, r.Value.Epoch, r.Value.Previous, showState(r.Value.State), s.showParts(r.Value.Assigned))
	case *schema.ShareTopicsRecord:
		if r.Value == nil {
			return name + " topics tombstone"
		}
		return name + " topics " + s.showShareTopics(r.Value)
	}
	return fmt.Sprintf("%T", r)
}

func (s *scenario) showShareTopics(v *schema.ShareTopics) string {
	parts := func(list []schema.ShareTopic) string {
		var out []schema.TopicPartitions
		for _, t := range list {
			out = append(out, schema.TopicPartitions{Topic: t.Topic, Partitions: t.Partitions})
		}
		return s.showParts(out)
	}
	out := "initialized " + parts(v.Initialized)
	if len(v.Initializing) > 0 {
		out += ", initializing " + parts(v.Initializing)
	}
	for i, t := range v.Deleting {
		if i == 0 {
			out += ", deleting"
		}
		out += " " + t.Name
	}
	return out
}

// showShareState shows a share group as it is.
func (s *scenario) showShareState(g *share.Group) {
	s.Printf("%s is %s in epoch %d, target %d\n", groupName(g.ID), g.StateName(), g.Epoch, g.TargetEpoch)
	for _, r := range g.OtherRecords(true) {
		s.Printf("  %s\n", s.showShareTopics(r.(*schema.ShareTopicsRecord).Value))
	}
	for _, m := range g.Members {
		now := m.Now()
		s.Printf("  %s in epoch %d, has %s, target %s\n", m.ID, now.Epoch, s.showParts(modern.TopicsOf(modern.PartsHeld(now.Assigned))), s.showParts(modern.TopicsOf(m.Target)))
	}
}
