package group

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// show shortens member ids: the first that client a is given is a#1.
func (s *scenario) show(id string) string {
	if id == "" {
		return "none"
	}
	if short, ok := s.alias[id]; ok {
		return short
	}
	return id
}

// learn notes the member id that a client was given.
func (s *scenario) learn(who, id string) {
	if id == "" {
		return
	}
	s.names[who] = id
	if s.alias[id] == "" && len(id) > 36 {
		base := strings.TrimRight(who, "'")
		n := 1
		for _, short := range s.alias {
			if strings.HasPrefix(short, base+"#") {
				n++
			}
		}
		s.alias[id] = fmt.Sprintf("%s#%d", base, n)
	}
}

func (s *scenario) showReply(who string, msg kmsg.Response) string {
	switch m := msg.(type) {
	case *kmsg.JoinGroupResponse:
		return s.showJoin(who, m)
	case *kmsg.SyncGroupResponse:
		if m.ErrorCode != 0 {
			return "sync: " + errorName(m.ErrorCode)
		}
		return "sync: OK " + showAssignment(m.MemberAssignment)
	case *kmsg.HeartbeatResponse:
		return "heartbeat: " + errorName(m.ErrorCode)
	case *kmsg.LeaveGroupResponse:
		out := "leave: " + errorName(m.ErrorCode)
		for _, e := range m.Members {
			out += fmt.Sprintf("; %s%s %s", s.show(e.MemberID), instance(e.InstanceID), errorName(e.ErrorCode))
		}
		return out
	case *kmsg.OffsetCommitResponse:
		out := "commit:"
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %s:%d %s", t.Topic, p.Partition, errorName(p.ErrorCode))
			}
		}
		return out
	case *kmsg.OffsetFetchResponse:
		return s.showFetch(m)
	case *kmsg.OffsetDeleteResponse:
		out := "offset-delete: " + errorName(m.ErrorCode)
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf("; %s:%d %s", t.Topic, p.Partition, errorName(p.ErrorCode))
			}
		}
		return out
	}
	return s.showAdmin(msg)
}

func (s *scenario) showAdmin(msg kmsg.Response) string {
	var out []string
	switch m := msg.(type) {
	case *kmsg.DescribeGroupsResponse:
		for _, g := range m.Groups {
			text := fmt.Sprintf("%s is %s, %s", g.Group, g.State, errorName(g.ErrorCode))
			if g.ProtocolType != "" {
				text += fmt.Sprintf(", type %s, protocol %q", g.ProtocolType, g.Protocol)
			}
			for _, e := range g.Members {
				text += fmt.Sprintf("\n     %s%s client %s at %s %s", s.show(e.MemberID), instance(e.InstanceID), e.ClientID, e.ClientHost, showAssignment(e.MemberAssignment))
			}
			out = append(out, text)
		}
		return "describe: " + strings.Join(out, "\n   ")
	case *kmsg.ListGroupsResponse:
		for _, g := range m.Groups {
			out = append(out, fmt.Sprintf("%s (%s, %q, %s)", g.Group, g.GroupState, g.ProtocolType, g.GroupType))
		}
		return "list: " + strings.Join(out, ", ")
	case *kmsg.DeleteGroupsResponse:
		for _, g := range m.Groups {
			out = append(out, g.Group+" "+errorName(g.ErrorCode))
		}
		return "delete-groups: " + strings.Join(out, ", ")
	}
	return fmt.Sprintf("%T", msg)
}

func (s *scenario) showJoin(who string, m *kmsg.JoinGroupResponse) string {
	s.learn(who, m.MemberID)
	if m.ErrorCode != 0 {
		return fmt.Sprintf("join: %s member=%s", errorName(m.ErrorCode), s.show(m.MemberID))
	}
	out := fmt.Sprintf("join: OK generation=%d member=%s leader=%s protocol=%s", m.Generation, s.show(m.MemberID), s.show(m.LeaderID), *m.Protocol)
	if m.SkipAssignment {
		out += " skip-assignment"
	}
	if m.Members != nil {
		var members []string
		for _, e := range m.Members {
			members = append(members, s.show(e.MemberID)+instance(e.InstanceID))
		}
		out += " members=" + strings.Join(members, ",")
	}
	return out
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
		out += " " + errorName(g.ErrorCode)
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %s:%d=%d", t.Topic, p.Partition, p.Offset)
				if p.LeaderEpoch >= 0 {
					out += fmt.Sprintf(" epoch %d", p.LeaderEpoch)
				}
				if *p.Metadata != "" {
					out += fmt.Sprintf(" %q", *p.Metadata)
				}
			}
		}
	}
	return out
}

func showAssignment(b []byte) string {
	var parts []string
	eachAssigned(b, func(tp topicPartition) { parts = append(parts, fmt.Sprintf("%s:%d", tp.topic, tp.partition)) })
	return "[" + strings.Join(parts, " ") + "]"
}

func (s *scenario) showRecord(r Record) string {
	switch {
	case r.Topic != "" && r.Offset == nil:
		return fmt.Sprintf("%s %s:%d tombstone", r.Group, r.Topic, r.Partition)
	case r.Topic != "":
		out := fmt.Sprintf("%s %s:%d at %d", r.Group, r.Topic, r.Partition, r.Offset.at)
		if r.Offset.expire != -1 {
			out += fmt.Sprintf(" expires after %s", time.UnixMilli(r.Offset.expire).Sub(s.start))
		}
		return out
	case r.Meta == nil:
		return r.Group + " tombstone"
	case len(r.Meta.Members) == 0:
		return fmt.Sprintf("%s generation %d, empty", r.Group, r.Meta.Generation)
	}
	out := fmt.Sprintf("%s generation %d, %s, leader %s", r.Group, r.Meta.Generation, *r.Meta.Protocol, s.show(*r.Meta.Leader))
	for _, m := range r.Meta.Members {
		out += fmt.Sprintf(", %s%s %s", s.show(m.MemberID), instance(m.InstanceID), showAssignment(m.Assignment))
	}
	return out
}

func (s *scenario) showEntry(e Entry) string {
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
	}
	if e.Kind == KindSettled {
		out += fmt.Sprintf("; join phase %s, sync phase %s, members %d to %d", e.JoinPhase, e.SyncPhase, e.Before, e.After)
		for _, l := range e.Slowest {
			out += fmt.Sprintf("; %s came after %s", s.show(l.Member), l.Waited)
		}
		for _, m := range e.Missed {
			out += fmt.Sprintf("; %s did not come", s.show(m.Member))
		}
		for _, m := range e.Moves {
			out += fmt.Sprintf("; %s:%d from %s to %s", m.Topic, m.Partition, s.show(m.From), s.show(m.To))
		}
	}
	return out
}

// parseRecord reads a line of the replay command.
func parseRecord(t *testing.T, f []string) Record {
	t.Helper()
	r := Record{Group: f[1]}
	for _, w := range f[2:] {
		if topic, part, ok := strings.Cut(w, ":"); ok && !strings.Contains(w, "=") {
			n, _ := strconv.Atoi(part)
			r.Topic, r.Partition = topic, int32(n)
		}
	}
	switch f[0] {
	case "tombstone":
	case "offset":
		at, _ := strconv.Atoi(f[3])
		r.Offset = &offset{at: int64(at), epoch: -1, expire: -1, commit: 1_700_000_000_000}
	case "group":
		v := kmsg.NewGroupMetadataValue()
		v.Version, v.ProtocolType, v.CurrentStateTimestamp = groupValueVersion, "consumer", 1_700_000_000_000
		for _, w := range f[2:] {
			name, val, _ := strings.Cut(w, "=")
			switch name {
			case "generation":
				n, _ := strconv.Atoi(val)
				v.Generation = int32(n)
			case "protocol":
				v.Protocol = &val
			case "leader":
				v.Leader = &val
			case "members":
				for m := range strings.SplitSeq(strings.Trim(val, "()"), ",") {
					e := kmsg.NewGroupMetadataValueMember()
					e.MemberID, e.SessionTimeoutMillis, e.RebalanceTimeoutMillis = m, 10_000, 60_000
					e.Subscription = subscription("t")
					v.Members = append(v.Members, e)
				}
			}
		}
		r.Meta = &v
	default:
		t.Fatalf("unknown record %q", f[0])
	}
	return r
}
