package groupview

import (
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

// FromConsumer is a consumer group as ConsumerGroupDescribe tells of it, but for where it is
// and its offsets.
func FromConsumer(g *kmsg.ConsumerGroupDescribeResponseGroup) Group {
	out := Group{
		Type: TypeConsumer, State: g.State, ProtocolType: Consumer, Assignor: g.AssignorName, Epoch: &g.Epoch, TargetEpoch: &g.AssignmentEpoch,
	}
	for i := range g.Members {
		m := &g.Members[i]
		member := Member{
			ID: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Instance: m.InstanceID,
			Topics: m.SubscribedTopics, Pattern: m.SubscribedTopicRegex, Epoch: &m.MemberEpoch, Classic: m.MemberType == 0,
			Assigned: assignedOf(m.Assignment), Target: assignedOf(m.TargetAssignment),
		}
		member.add(journal.MemberStatusOf(&m.UnknownTags))
		out.Members = append(out.Members, member)
	}
	sortMembers(out.Members)
	return out
}

// add adds what is in the tagged field, if the broker has one.
func (m *Member) add(s *journal.MemberStatus) {
	if s == nil {
		return
	}
	if s.Assignor != "" {
		m.Assignor = &s.Assignor
	}
	m.Matches, m.Waits = s.Matches, s.Waits
	for _, p := range s.Revoking {
		m.Revoking = append(m.Revoking, Assigned{Topic: p.Topic, Partitions: p.Partitions})
	}
	m.Since, m.Until, m.Heard, m.Session = known(s.Since), known(s.Until), known(s.Heard), known(s.Session)
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func assignedOf(a kmsg.Assignment) []Assigned {
	out := []Assigned{}
	for _, t := range a.TopicPartitions {
		out = append(out, Assigned{Topic: t.Topic, Partitions: slices.Sorted(slices.Values(t.Partitions))})
	}
	sortAssigned(out)
	return out
}

func sortAssigned(list []Assigned) {
	sort.Slice(list, func(i, j int) bool { return list[i].Topic < list[j].Topic })
}

func sortMembers(list []Member) {
	sort.Slice(list, func(i, j int) bool { return list[i].ID < list[j].ID })
}
