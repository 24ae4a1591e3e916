package consumer

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// ownIDVersion is the version of ConsumerGroupHeartbeat from which the client makes
// its member id itself.
const ownIDVersion = 1

// heartbeat handles ConsumerGroupHeartbeat: with it a member joins, says what
// it wants and what it has let go of, is told what it may have, and leaves.
func heartbeat(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) {
	err := checkHeartbeat(x, m)
	if err == nil {
		switch m.MemberEpoch {
		case modern.EpochLeave, modern.EpochLeaveStatic:
			x.Weigh(m.Group)
			err = leave(x, r, m)
		default:
			err = memberHeartbeat(x, r, m)
		}
	}
	if err != nil {
		replyError(x, r.ID, m.Version, err)
	}
}

func replyError(x *kind.Step, id machine.RequestID, version int16, err *modern.Refusal) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	if err.Reason != "" {
		resp.ErrorMessage = &err.Reason
	}
	x.Reply(id, resp)
}

// checkHeartbeat checks what can be told from the request alone. A text of blanks counts
// as an empty one.
func checkHeartbeat(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest) *modern.Refusal {
	invalid := func(reason string) *modern.Refusal { return modern.Refused(kerr.InvalidRequest, reason) }
	switch {
	case blank(m.Group):
		return invalid("GroupId can't be empty.")
	case blank(m.MemberID) && (m.Version >= ownIDVersion || m.MemberEpoch != modern.EpochJoin):
		return invalid("MemberId can't be empty.")
	case m.InstanceID != nil && blank(*m.InstanceID):
		return invalid("InstanceId can't be empty.")
	case m.RackID != nil && blank(*m.RackID):
		return invalid("RackId can't be empty.")
	case m.MemberEpoch < modern.EpochLeaveStatic:
		return invalid("MemberEpoch is invalid.")
	case m.MemberEpoch == modern.EpochLeaveStatic && m.InstanceID == nil:
		return invalid("InstanceId can't be null.")
	}
	if m.MemberEpoch < modern.EpochJoin {
		return nil
	}
	return checkSubscription(x, m)
}

// checkSubscription checks what a member that does not leave says of itself.
func checkSubscription(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest) *modern.Refusal {
	if m.MemberEpoch == modern.EpochJoin {
		switch {
		case m.RebalanceTimeoutMillis == -1:
			return modern.Refused(kerr.InvalidRequest, "RebalanceTimeoutMs must be provided in first request.")
		case m.Topics == nil || len(m.Topics) > 0:
			return modern.Refused(kerr.InvalidRequest, "TopicPartitions must be empty when (re-)joining.")
		case m.SubscribedTopicNames == nil && m.SubscribedTopicRegex == nil:
			return modern.Refused(kerr.InvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
		}
	}
	if a := m.ServerAssignor; a != nil && !slices.Contains(x.Cfg.Consumer.Assignors, *a) {
		return modern.Refused(kerr.UnsupportedAssignor, "ServerAssignor "+*a+" is not supported. Supported assignors: "+strings.Join(x.Cfg.Consumer.Assignors, ", ")+".")
	}
	if p := m.SubscribedTopicRegex; p != nil && *p != "" {
		if err := checkPattern(*p); err != nil {
			return modern.Refused(kerr.InvalidRegularExpression, "SubscribedTopicRegex `"+*p+"` is not a valid regular expression: "+err.Error()+".")
		}
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// anchored is a pattern that matches whole names only.
func anchored(pattern string) string { return `\A(?:` + pattern + `)\z` }

// memberHeartbeat handles a heartbeat of someone who is, or becomes, a member. Whatever
// may be refused is, before anything is written.
func memberHeartbeat(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) *modern.Refusal {
	if blank(m.MemberID) {
		m.MemberID = base64.RawURLEncoding.EncodeToString(x.Random[:])
	}
	h := modern.Heartbeat[Partition]{Tells: m.Topics != nil, Owned: ownedPartitions(m.Topics)}
	place, err := placeOf(x, m, &h)
	if err != nil {
		if g, ok := x.Groups[m.Group].(*Group); ok {
			g.NoteRefused(x, r, claimOf(m), kmsg.NameForKey(m.Key()), err)
		}
		return err
	}
	if place.isUnchanged(r, m) {
		g := x.Groups[m.Group].(*Group)
		b := pendingOf(r, m, h)
		b.Unsubscribed = g.AnswerOvertaken(x, place.Known)
		x.From = len(x.Records)
		g.Proceed(x, place.Known, modern.Change{}, b)
		return nil
	}
	meta := place.metadata(r, m, x.Hosts)
	if !x.Fits(&schema.ConsumerMemberRecord{Group: m.Group, Member: m.MemberID, Value: meta}) || !place.fits(x, m.MemberID) {
		return modern.Refused(kerr.InvalidRequest, "What the member says of itself is too large to be stored.")
	}
	if err := checkRoom(x, m.Group, m.MemberID, place.Known, meta); err != nil {
		return modern.Refused(err, "There is no room for what the member says of itself.")
	}
	x.Weigh(m.Group)
	overtaken := false
	if g, ok := x.Groups[m.Group].(*Group); ok && place.Known != nil {
		overtaken = g.AnswerOvertaken(x, place.Known)
	}
	upgrades := place.upgrade != nil
	if upgrades {
		place = upgrade(x, x.Groups[m.Group].(*classic.Group), place, kind.By(r))
	}
	place.remember()
	classic.ClearForUpgrade(x, m.Group)
	x.From = len(x.Records)
	if place.Replaces != nil {
		x.Groups[m.Group].(*Group).ReplaceStatic(x, place.Replaces, m.MemberID, &schema.ConsumerMemberRecord{Group: m.Group, Member: m.MemberID, Value: meta})
	}
	g, mem, ch := subscribe(x, m.Group, m.MemberID, place, meta)
	g.useProtocolTimers(x, mem)
	ch.Bumps = ch.Bumps || upgrades
	if place.Known != nil && place.Replaces != nil { // What it was to have before is no one's now.
		ch.Topics, ch.Bumps = true, true
	}
	g.addChangeTrigger(x, mem, place, ch)
	b := pendingOf(r, m, h)
	b.Unsubscribed = ch.Topics || overtaken
	g.Proceed(x, mem, ch, b)
	return nil
}

// pendingOf is what is left of a heartbeat once its member is subscribed.
func pendingOf(r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest, h modern.Heartbeat[Partition]) pending {
	b := pending{ID: r.ID, Version: m.Version, Member: m.MemberID, Heartbeat: h}
	b.Full = m.MemberEpoch == modern.EpochJoin ||
		m.RebalanceTimeoutMillis != -1 && (m.SubscribedTopicNames != nil || m.SubscribedTopicRegex != nil) && m.Topics != nil
	return b
}

// ownedPartitions lists what a client says that it has.
func ownedPartitions(topics []kmsg.ConsumerGroupHeartbeatRequestTopic) []Partition {
	var out []Partition
	for i := range topics {
		for _, n := range topics[i].Partitions {
			out = append(out, Partition{Topic: topics[i].TopicID, Number: n})
		}
	}
	return modern.Sorted(out)
}

// Respond answers a heartbeat: where its member is, and perhaps what it has.
func (g *Group) Respond(x *kind.Step, mem *Member, b pending, parts bool) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.Version = b.Version
	resp.MemberID = &mem.ID
	if mem.Current != nil {
		resp.MemberEpoch = max(mem.Current.Epoch, modern.EpochJoin) // Below that it had left.
	}
	resp.HeartbeatIntervalMillis = int32(x.Cfg.Consumer.Of(g.ID).Heartbeat.Milliseconds())
	if parts {
		resp.Assignment = assignmentOf(mem.Current.AssignedParts())
	}
	x.Reply(b.ID, resp)
}

// Fail implements modern.Kind.
func (g *Group) Fail(x *kind.Step, b pending, err *modern.Refusal) {
	replyError(x, b.ID, b.Version, err)
}

// assignmentOf is what a member may use now, all of it.
func assignmentOf(list []Held) *kmsg.ConsumerGroupHeartbeatResponseAssignment {
	out := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	for i, p := range list {
		if i == 0 || p.Part.Topic != list[i-1].Part.Topic {
			t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			t.TopicID = p.Part.Topic
			out.Topics = append(out.Topics, t)
		}
		t := &out.Topics[len(out.Topics)-1]
		t.Partitions = append(t.Partitions, p.Part.Number)
	}
	return &out
}
