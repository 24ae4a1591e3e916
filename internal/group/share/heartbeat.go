package share

import (
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// maxMemberID is how many characters a member id may have: the text of a UUID.
const maxMemberID = 36

// heartbeat handles ShareGroupHeartbeat: with it a member joins, says what it wants, is told
// what it reads, and leaves.
func heartbeat(x *kind.Step, r *machine.Request, m *kmsg.ShareGroupHeartbeatRequest) {
	err := checkHeartbeat(m)
	switch {
	case err != nil:
	case m.MemberEpoch == modern.EpochLeave:
		x.Weigh(m.GroupID)
		err = leave(x, r, m)
	default:
		err = memberHeartbeat(x, r, m)
	}
	if err != nil {
		replyError(x, r.ID, m.Version, err)
	}
}

func replyError(x *kind.Step, id machine.RequestID, version int16, err *modern.Refusal) {
	resp := kmsg.NewPtrShareGroupHeartbeatResponse()
	resp.Version, resp.ErrorCode = version, err.Code
	if err.Reason != "" {
		resp.ErrorMessage = &err.Reason
	}
	x.Reply(id, resp)
}

// checkHeartbeat checks what can be told from the request alone. A string of blanks counts as an
// empty one.
func checkHeartbeat(m *kmsg.ShareGroupHeartbeatRequest) *modern.Refusal {
	invalid := func(reason string) *modern.Refusal { return modern.Refused(kerr.InvalidRequest, reason) }
	switch {
	case blank(m.GroupID):
		return invalid("GroupId can't be empty.")
	case blank(m.MemberID):
		return invalid("MemberId can't be empty.")
	case length(m.MemberID) > maxMemberID:
		return invalid("MemberId can't be longer than 36 characters.")
	case m.RackID != nil && blank(*m.RackID):
		return invalid("RackId can't be empty.")
	case m.MemberEpoch < modern.EpochLeave:
		return invalid("MemberEpoch is invalid.")
	case m.MemberEpoch == modern.EpochJoin && len(m.SubscribedTopicNames) == 0:
		return invalid("SubscribedTopicNames must be set in first request.")
	}
	return nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// length is how many characters a string has to Java.
func length(s string) (n int) {
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// memberHeartbeat handles a heartbeat of someone who is, or becomes, a member. Whatever may be
// refused is, before anything is written.
func memberHeartbeat(x *kind.Step, r *machine.Request, m *kmsg.ShareGroupHeartbeatRequest) *modern.Refusal {
	g, err := groupOf(x, m)
	if err != nil {
		return err
	}
	var known *Member
	h := modern.Heartbeat[partition]{Tells: true} // That it owns nothing, so there is nothing to wait for.
	if g != nil {
		place, err := g.PlaceOf(x, claimOf(m), &h)
		if err != nil {
			g.NoteRefused(x, r, claimOf(m), kmsg.NameForKey(m.Key()), err)
			return err
		}
		if known = place.Known; known == nil && g.isCleared(x) {
			return modern.Refused(kerr.CoordinatorLoadInProgress, "The group is being deleted.")
		}
	}
	meta := metadataOf(known, r, m, x.Hosts)
	changed := known == nil || !sameMember(known.Metadata, meta)
	if changed {
		if err := checkRoom(x, m, known, meta); err != nil {
			return err
		}
		x.Weigh(m.GroupID)
	}
	overtaken := known != nil && g.AnswerOvertaken(x, known)
	was := &schema.ShareMember{}
	if known != nil {
		was = known.Metadata
	}
	x.From = len(x.Records)
	if changed {
		x.Write(&schema.ShareMemberRecord{Group: m.GroupID, Member: m.MemberID, Value: meta})
		g = x.Groups[m.GroupID].(*Group)
	}
	mem := g.Member(m.MemberID)
	names := !slices.Equal(was.Topics, meta.Topics)
	ch := modern.Change{Topics: names, Bumps: names}
	switch {
	case known == nil:
		modern.AddMemberTrigger(x, journal.TriggerJoined, mem, nil)
	case names:
		modern.AddTriggers(x, journal.Trigger{Kind: journal.TriggerChanged, Who: modern.Who(mem), Change: changeOf(was, meta)})
	}
	if g.hasUnassigned(x.Image) {
		ch.Bumps = true
		if len(x.Why) == 0 {
			modern.AddTriggers(x, journal.Trigger{Kind: journal.TriggerInitialized})
		}
	}
	b := pending{ID: r.ID, Version: m.Version, Member: m.MemberID, Heartbeat: h, Unsubscribed: names || overtaken}
	b.Full = m.MemberEpoch == modern.EpochJoin || m.SubscribedTopicNames != nil
	g.Proceed(x, mem, ch, b)
	return nil
}

// Respond answers a heartbeat: where its member is, and perhaps what it reads.
func (g *Group) Respond(x *kind.Step, mem *Member, b pending, parts bool) {
	resp := kmsg.NewPtrShareGroupHeartbeatResponse()
	resp.Version = b.Version
	resp.MemberID = &mem.ID
	resp.MemberEpoch = mem.Now().Epoch
	resp.HeartbeatIntervalMillis = int32(x.Cfg.Share.Of(g.ID).Heartbeat.Milliseconds())
	if parts {
		out := kmsg.NewShareGroupHeartbeatResponseAssignment()
		for _, t := range modern.TopicsOf(modern.PartsHeld(mem.Current.AssignedParts())) {
			e := kmsg.NewShareGroupHeartbeatResponseAssignmentTopicPartition()
			e.TopicID, e.Partitions = t.Topic, t.Partitions
			out.TopicPartitions = append(out.TopicPartitions, e)
		}
		resp.Assignment = &out
	}
	x.Reply(b.ID, resp)
}

// Fail implements modern.Kind.
func (g *Group) Fail(x *kind.Step, b pending, err *modern.Refusal) {
	replyError(x, b.ID, b.Version, err)
}
