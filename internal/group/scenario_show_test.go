package group

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/subscription"
	"muster/internal/harness"
	"muster/internal/journal"
)

func (s *scenario) showReply(who string, msg kmsg.Response) string {
	switch m := msg.(type) {
	case *kmsg.JoinGroupResponse:
		return s.showJoin(who, m)
	case *kmsg.SyncGroupResponse:
		if m.ErrorCode != 0 {
			return "sync: " + harness.ErrorName(m.ErrorCode)
		}
		if m.Version >= 5 && (m.ProtocolType == nil || m.Protocol == nil) {
			s.T.Error("no protocol, though the version has a place for it")
		}
		return "sync: OK " + showAssignment(m.MemberAssignment)
	case *kmsg.ConsumerGroupHeartbeatResponse:
		return s.showBeat(who, m)
	case *kmsg.ConsumerGroupDescribeResponse:
		return s.showConsumers(m)
	case *kmsg.StreamsGroupHeartbeatResponse:
		return s.showWork(who, m)
	case *kmsg.StreamsGroupDescribeResponse:
		return s.showStreams(m)
	case *kmsg.HeartbeatResponse:
		return "heartbeat: " + harness.ErrorName(m.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		out := "leave: " + harness.ErrorName(m.ErrorCode)
		for _, e := range m.Members {
			out += fmt.Sprintf("; %s%s %s", s.show(e.MemberID), instance(e.InstanceID), harness.ErrorName(e.ErrorCode))
		}
		return out
	case *kmsg.OffsetCommitResponse:
		out := "commit:"
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %s:%d %s", t.Topic, p.Partition, harness.ErrorName(p.ErrorCode))
			}
		}
		if why := journal.ResetReasonOf(&m.UnknownTags); why != "" {
			out += fmt.Sprintf(" (%s)", why)
		}
		return out
	case *kmsg.OffsetFetchResponse:
		return s.showFetch(m)
	case *kmsg.OffsetDeleteResponse:
		out := "offset-delete: " + harness.ErrorName(m.ErrorCode)
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf("; %s:%d %s", t.Topic, p.Partition, harness.ErrorName(p.ErrorCode))
			}
		}
		return out
	}
	if text := s.showShareReply(who, msg); text != "" {
		return text
	}
	return s.showAdmin(msg)
}

func (s *scenario) showAdmin(msg kmsg.Response) string {
	var out []string
	switch m := msg.(type) {
	case *kmsg.DescribeGroupsResponse:
		for _, g := range m.Groups {
			text := fmt.Sprintf("%s is %s, %s", groupName(g.Group), g.State, harness.ErrorName(g.ErrorCode))
			if g.ErrorMessage != nil {
				text += fmt.Sprintf(" %q", *g.ErrorMessage)
			}
			if g.AuthorizedOperations != -1<<31 && m.Version >= 3 {
				s.T.Errorf("authorized operations %d, which nobody asked for", g.AuthorizedOperations)
			}
			if g.ProtocolType != "" {
				text += fmt.Sprintf(", type %s, protocol %q", g.ProtocolType, g.Protocol)
			}
			for _, e := range g.Members {
				text += fmt.Sprintf("\n     %s%s client %s at %s (%s) %s", s.show(e.MemberID), instance(e.InstanceID),
					e.ClientID, e.ClientHost, showSubscription(e.ProtocolMetadata), showAssignment(e.MemberAssignment))
			}
			out = append(out, text)
		}
		return "describe: " + strings.Join(out, "\n   ")
	case *kmsg.ListGroupsResponse:
		for _, g := range m.Groups {
			out = append(out, fmt.Sprintf("%s (%s, %q, %s)", groupName(g.Group), g.GroupState, g.ProtocolType, g.GroupType))
		}
		if len(out) == 0 {
			return "list: nothing"
		}
		return "list: " + strings.Join(out, ", ")
	case *kmsg.DeleteGroupsResponse:
		for _, g := range m.Groups {
			out = append(out, groupName(g.Group)+" "+harness.ErrorName(g.ErrorCode))
		}
		return "delete-groups: " + strings.Join(out, ", ")
	}
	return s.showTxn(msg)
}

func (s *scenario) showJoin(who string, m *kmsg.JoinGroupResponse) string {
	s.learn(who, m.MemberID)
	if m.ErrorCode != 0 {
		s.checkJoinError(m)
		return fmt.Sprintf("join: %s member=%s", harness.ErrorName(m.ErrorCode), s.show(m.MemberID))
	}
	out := fmt.Sprintf("join: OK generation=%d member=%s leader=%s protocol=%s", m.Generation, s.show(m.MemberID), s.show(m.LeaderID), *m.Protocol)
	switch {
	case m.Version >= 7 && m.ProtocolType == nil:
		s.T.Error("no protocol type, though the version has a place for it")
	case m.Version >= 7 && *m.ProtocolType != subscription.ConsumerType:
		out += " type=" + *m.ProtocolType
	}
	if m.SkipAssignment {
		out += " skip-assignment"
	}
	if len(m.Members) > 0 {
		var members []string
		for _, e := range m.Members {
			members = append(members, s.show(e.MemberID)+instance(e.InstanceID)+"("+showSubscription(e.ProtocolMetadata)+")")
		}
		out += " members=" + strings.Join(members, ",")
	}
	return out
}

// checkJoinError checks what all failed joins have in common.
func (s *scenario) checkJoinError(m *kmsg.JoinGroupResponse) {
	if m.Generation != -1 || m.LeaderID != "" || len(m.Members) > 0 || m.SkipAssignment {
		s.T.Errorf("a failed join has generation %d, leader %q and members %v", m.Generation, m.LeaderID, m.Members)
	}
	if m.Version >= 7 && (m.Protocol != nil || m.ProtocolType != nil) || m.Version < 7 && *m.Protocol != "" {
		s.T.Errorf("a failed join has a protocol")
	}
}

// showSubscription shows the topics, as they are written in a scenario.
func showSubscription(b []byte) string {
	topics, err := subscription.SubscribedTopics(b)
	switch {
	case len(b) == 0:
		return ""
	case err != nil:
		return "raw:" + string(b)
	}
	return strings.Join(topics, "+")
}

func instance(id *string) string {
	if id == nil {
		return ""
	}
	return "/" + *id
}

func (s *scenario) showFetch(m *kmsg.OffsetFetchResponse) string {
	out := "fetch:"
	for _, g := range m.Groups {
		if len(m.Groups) > 1 {
			out += " " + groupName(g.Group)
		}
		out += " " + harness.ErrorName(g.ErrorCode)
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %s:%d=%d", t.Topic, p.Partition, p.Offset)
				if p.ErrorCode != 0 {
					out += " " + harness.ErrorName(p.ErrorCode)
				}
				if p.LeaderEpoch >= 0 {
					out += fmt.Sprintf(" epoch %d", p.LeaderEpoch)
				}
				if n := utf8.RuneCountInString(*p.Metadata); n > 40 {
					out += fmt.Sprintf(" %d characters", n)
				} else if n > 0 {
					out += fmt.Sprintf(" %q", *p.Metadata)
				}
			}
		}
	}
	return out
}

func (s *scenario) showEntry(e *journal.Entry) string {
	if e.Type == journal.TypeConsumer && e.TopicN == 0 {
		return s.showConsumerEntry(e)
	}
	out := fmt.Sprintf("%s in generation %d, now %s", e.Kind, e.Generation, e.State)
	for _, t := range e.Triggers {
		out += fmt.Sprintf("; %s %s", t.Kind, s.show(t.Member))
		if t.Reason != "" {
			out += fmt.Sprintf(" (%s)", t.Reason)
		}
		if t.Was != "" {
			out += " was " + s.show(t.Was)
		}
		if t.Silent > 0 {
			out += fmt.Sprintf(" silent for %s", t.Silent)
		}
		if t.New {
			out += " in its first join"
		}
		if t.Change != nil {
			out += showChange(t.Change)
		}
		if t.Request != "" {
			out += " " + t.Request
		}
		if t.Parked {
			out += " (parked)"
		}
		if t.By != nil {
			out += fmt.Sprintf(" by %s", s.showBy(t.By))
		}
		out += showAt(t.At)
	}
	if e.Cause != "" {
		out += "; " + string(e.Cause)
	}
	if e.By != nil {
		out += " by " + s.showBy(e.By)
	}
	if e.TopicN > 0 {
		out += showCounts(e)
	}
	if e.Reset != nil {
		out += showReset(e.Reset)
	}
	if e.Kind == journal.KindLoaded {
		out += fmt.Sprintf(" with %d members", e.After)
	}
	if e.WaitingN > 0 {
		out += "; waits for" + s.showAbsent(e.Waiting, e.WaitingN)
	}
	if e.Kind == journal.KindSettled {
		out += fmt.Sprintf("; join phase %s, sync phase %s, members %d to %d", e.JoinPhase, e.SyncPhase, e.Before, e.After)
		for _, l := range e.Slowest {
			out += fmt.Sprintf("; %s came after %s", s.show(l.Member), l.Waited)
		}
		if e.MissedN > 0 {
			out += "; did not come:" + s.showAbsent(e.Missed, e.MissedN)
		}
		if e.TriggerN > len(e.Triggers) {
			out += fmt.Sprintf("; %d triggers in all", e.TriggerN)
		}
		if e.MoveN > 0 {
			out += fmt.Sprintf("; partitions %d, moved %d", e.PartitionN, e.MoveN)
		}
		for _, m := range e.Moves {
			out += fmt.Sprintf("; %s:%d from %s to %s", m.Topic, m.Partition, s.show(m.From), s.show(m.To))
		}
	}
	return out
}

func showReset(r *journal.Reset) string {
	out := "; reset " + r.Plan
	if r.Method != "" {
		out += " by " + string(r.Method)
	}
	for _, m := range r.Moved {
		out += fmt.Sprintf(", %s:%d from %d to %d", m.Topic, m.Partition, m.Before, m.After)
	}
	if r.Reason != "" {
		out += ": " + r.Reason
	}
	return out
}

func (s *scenario) showAbsent(list []journal.Absent, count int) (out string) {
	for _, a := range list {
		out += " " + s.show(a.Member)
		if a.Pending {
			out += " (pending)"
		}
		if a.Kept {
			out += " (static)"
		}
	}
	if count != len(list) {
		out += fmt.Sprintf(" and %d more", count-len(list))
	}
	return out
}

// showBy shows who did something: a member, or a client at a host.
func (s *scenario) showBy(w *journal.Who) string {
	if w.Member != "" {
		return s.show(w.Member)
	}
	return w.ClientID + "@" + w.Host
}

// showChange shows what of a member is another: +u is a topic that it subscribes
// to now, -t one that it does not any more.
func showChange(c *journal.Change) string {
	var out []string
	for _, t := range c.TopicsAdded {
		out = append(out, "+"+t)
	}
	for _, t := range c.TopicsRemoved {
		out = append(out, "-"+t)
	}
	if more := c.TopicsAddedN + c.TopicsRemovedN - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	if c.Protocols != nil || c.ProtocolsBefore != nil {
		out = append(out, fmt.Sprintf("%s instead of %s", strings.Join(c.Protocols, "+"), strings.Join(c.ProtocolsBefore, "+")))
	}
	for _, x := range []struct {
		is   bool
		what string
	}{{c.Owned, "owns other partitions"}, {c.Other, "other data"}, {c.Forgotten, "other protocols were forgotten"}} {
		if x.is {
			out = append(out, x.what)
		}
	}
	return " [" + strings.Join(out, " ") + "]"
}

// showCounts shows offsets by topic: t:3 are three partitions of t.
func showCounts(e *journal.Entry) string {
	out := fmt.Sprintf("; %d partitions:", e.PartitionN)
	for _, t := range e.Topics {
		out += fmt.Sprintf(" %s:%d", t.Topic, t.Partitions)
		if t.Back+t.Forward > 0 {
			out += fmt.Sprintf("(%d back, %d forward)", t.Back, t.Forward)
		}
	}
	if more := e.TopicN - len(e.Topics); more > 0 {
		out += fmt.Sprintf(" and %d more topics", more)
	}
	return out
}

// showAt shows where a member was that is gone: t:0@5 is partition 0 with 5 committed.
func showAt(list []journal.Position) string {
	out := ""
	for _, p := range list {
		out += fmt.Sprintf(" %s:%d@%d", p.Topic, p.Partition, p.Committed)
	}
	if out != "" {
		out = " at" + out
	}
	return out
}
