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

// Request handles the requests of the consumer protocol.
func Request(x *kind.Step, r *machine.Request) bool {
	switch m := r.Msg.(type) {
	case *kmsg.ConsumerGroupHeartbeatRequest:
		heartbeat(x, r, m)
	case *kmsg.ConsumerGroupDescribeRequest:
		describe(x, r, m)
	default:
		return false
	}
	return true
}

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

func replyError(x *kind.Step, id machine.RequestID, version int16, err *protocolError) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	if err.reason != "" {
		resp.ErrorMessage = &err.reason
	}
	x.Reply(id, resp)
}

// checkHeartbeat checks what can be told from the request alone. A text of blanks counts
// as an empty one.
func checkHeartbeat(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest) *protocolError {
	invalid := func(reason string) *protocolError { return refused(kerr.InvalidRequest, reason) }
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
func checkSubscription(x *kind.Step, m *kmsg.ConsumerGroupHeartbeatRequest) *protocolError {
	if m.MemberEpoch == modern.EpochJoin {
		switch {
		case m.RebalanceTimeoutMillis == -1:
			return refused(kerr.InvalidRequest, "RebalanceTimeoutMs must be provided in first request.")
		case m.Topics == nil || len(m.Topics) > 0:
			return refused(kerr.InvalidRequest, "TopicPartitions must be empty when (re-)joining.")
		case m.SubscribedTopicNames == nil && m.SubscribedTopicRegex == nil:
			return refused(kerr.InvalidRequest, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
		}
	}
	if a := m.ServerAssignor; a != nil && !slices.Contains(x.Cfg.Consumer.Assignors, *a) {
		return refused(kerr.UnsupportedAssignor, "ServerAssignor "+*a+" is not supported. Supported assignors: "+strings.Join(x.Cfg.Consumer.Assignors, ", ")+".")
	}
	if p := m.SubscribedTopicRegex; p != nil && *p != "" {
		if err := checkPattern(*p); err != nil {
			return refused(kerr.InvalidRegularExpression, "SubscribedTopicRegex `"+*p+"` is not a valid regular expression: "+err.Error()+".")
		}
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// anchored is a pattern that matches whole names only.
func anchored(pattern string) string { return `\A(?:` + pattern + `)\z` }

// memberHeartbeat handles a heartbeat of someone who is, or becomes, a member. Whatever
// may be refused is, before anything is written.
func memberHeartbeat(x *kind.Step, r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest) *protocolError {
	if blank(m.MemberID) {
		m.MemberID = base64.RawURLEncoding.EncodeToString(x.Random[:])
	}
	h := modern.Heartbeat{Tells: m.Topics != nil, Owned: ownedPartitions(m.Topics)}
	place, err := placeOf(x, m, &h)
	if err != nil {
		noteRefused(x, r, m, err)
		return err
	}
	if place.isUnchanged(r, m) {
		g := x.Groups[m.Group].(*Group)
		b := heartbeatOf(r, m, h)
		b.unsubscribed = g.answerOvertaken(x, place.known)
		x.From = len(x.Records)
		g.proceed(x, place.known, change{}, b)
		return nil
	}
	meta := place.metadata(r, m, x.Hosts)
	if !x.Fits(&schema.ConsumerMemberRecord{Group: m.Group, Member: m.MemberID, Value: meta}) || !fitsReplacement(x, place.replaces, m.Group, m.MemberID) {
		return refused(kerr.InvalidRequest, "What the member says of itself is too large to be stored.")
	}
	if err := checkRoom(x, m.Group, m.MemberID, place.known, meta); err != nil {
		return refused(err, "There is no room for what the member says of itself.")
	}
	x.Weigh(m.Group)
	overtaken := false
	if g, ok := x.Groups[m.Group].(*Group); ok && place.known != nil {
		overtaken = g.answerOvertaken(x, place.known)
	}
	upgrades := place.upgrade != nil
	if upgrades {
		place = upgrade(x, x.Groups[m.Group].(*classic.Group), place, kind.By(r))
	}
	place.remember()
	classic.ClearForUpgrade(x, m.Group)
	x.From = len(x.Records)
	if place.replaces != nil {
		x.Groups[m.Group].(*Group).replaceStatic(x, place.replaces, m.MemberID, meta)
	}
	g, mem, ch := subscribe(x, m.Group, m.MemberID, place, meta)
	g.useProtocolTimers(x, mem)
	ch.bumps = ch.bumps || upgrades
	if place.known != nil && place.replaces != nil { // What it was to have before is no one's now.
		ch.topics, ch.bumps = true, true
	}
	g.addChangeTrigger(x, mem, place, ch)
	b := heartbeatOf(r, m, h)
	b.unsubscribed = ch.topics || overtaken
	g.proceed(x, mem, ch, b)
	return nil
}

// proceed goes on with a heartbeat once it is known what its member wants.
func (g *Group) proceed(x *kind.Step, mem *Member, ch change, b PendingHeartbeat) {
	g.bump(x, ch)
	g.refresh(x)
	if g.retarget(x) {
		g.parkHeartbeat(x, mem, b)
		return
	}
	g.answerHeartbeat(x, mem, b)
}

// PendingHeartbeat is what is left of a heartbeat once its member is subscribed.
type PendingHeartbeat struct {
	modern.Heartbeat
	id      machine.RequestID
	version int16
	Member  string
	full    bool // the client wants to be told everything
	// unsubscribed says that it subscribes to other topics since this heartbeat.
	unsubscribed bool
}

func heartbeatOf(r *machine.Request, m *kmsg.ConsumerGroupHeartbeatRequest, h modern.Heartbeat) PendingHeartbeat {
	b := PendingHeartbeat{id: r.ID, version: m.Version, Member: m.MemberID, Heartbeat: h}
	b.full = m.MemberEpoch == modern.EpochJoin ||
		m.RebalanceTimeoutMillis != -1 && (m.SubscribedTopicNames != nil || m.SubscribedTopicRegex != nil) && m.Topics != nil
	return b
}

// ownedPartitions lists what a client says that it has.
func ownedPartitions(topics []kmsg.ConsumerGroupHeartbeatRequestTopic) []modern.Partition {
	var out []modern.Partition
	for i := range topics {
		for _, n := range topics[i].Partitions {
			out = append(out, modern.Partition{Topic: topics[i].TopicID, Number: n})
		}
	}
	slices.SortFunc(out, modern.ComparePartitions)
	return slices.Compact(out)
}

// answerHeartbeat brings a member forward, and tells it where it is.
func (g *Group) answerHeartbeat(x *kind.Step, mem *Member, b PendingHeartbeat) {
	before, was, told := mem.Current, mem.Now(), mem.Since
	g.clearUnheard(mem)
	b.unsubscribed = b.unsubscribed || mayHaveUnsubscribed(x, mem)
	g.reconcile(x, mem, b)
	g.touch(x, mem)
	g.noteProgress(x, mem, &was, told)
	g.respond(x, mem, b, b.full || mem.Untold || mem.Current != before && !modern.SamePartitions(before.AssignedPartitions(), mem.Current.AssignedPartitions()))
	mem.Untold = false
}

// respond answers a heartbeat: where its member is, and perhaps what it has.
func (g *Group) respond(x *kind.Step, mem *Member, b PendingHeartbeat, parts bool) {
	resp := kmsg.NewPtrConsumerGroupHeartbeatResponse()
	resp.Version = b.version
	resp.MemberID = &mem.ID
	if mem.Current != nil {
		resp.MemberEpoch = max(mem.Current.Epoch, modern.EpochJoin) // Below that it had left.
	}
	resp.HeartbeatIntervalMillis = int32(x.Cfg.Consumer.Of(g.ID).Heartbeat.Milliseconds())
	if parts {
		resp.Assignment = assignmentOf(mem.Current.AssignedPartitions())
	}
	x.Reply(b.id, resp)
}

// assignmentOf is what a member may use now, all of it.
func assignmentOf(list []modern.Held) *kmsg.ConsumerGroupHeartbeatResponseAssignment {
	out := kmsg.NewConsumerGroupHeartbeatResponseAssignment()
	for i, p := range list {
		if i == 0 || p.Topic != list[i-1].Topic {
			t := kmsg.NewConsumerGroupHeartbeatResponseAssignmentTopic()
			t.TopicID = p.Topic
			out.Topics = append(out.Topics, t)
		}
		t := &out.Topics[len(out.Topics)-1]
		t.Partitions = append(t.Partitions, p.Number)
	}
	return &out
}
