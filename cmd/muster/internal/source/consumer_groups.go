package source

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

// DescribeConsumers asks for those groups that are none of the classic protocol. It
// goes past kadm for the tagged fields, in which a muster broker says more than Kafka's
// answer has a place for.
func (s *Source) DescribeConsumers(ctx context.Context, described kadm.DescribedGroups) map[string]groupview.Description {
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	for name, d := range described {
		if errors.Is(d.Err, kerr.GroupIDNotFound) || d.Err == nil && d.State == groupview.Dead {
			req.Groups = append(req.Groups, name)
		}
	}
	if len(req.Groups) == 0 {
		return nil
	}
	out := map[string]groupview.Description{}
	for _, shard := range s.Client.RequestSharded(ctx, req) {
		resp, ok := shard.Resp.(*kmsg.ConsumerGroupDescribeResponse)
		if shard.Err != nil || !ok { // A broker that has no such groups does not know the request either.
			continue
		}
		for i := range resp.Groups {
			if g := &resp.Groups[i]; g.ErrorCode == 0 {
				out[g.Group] = consumerDescription(g, shard.Meta)
			}
		}
	}
	return out
}

func consumerDescription(g *kmsg.ConsumerGroupDescribeResponseGroup, coordinator kgo.BrokerMetadata) groupview.Description {
	out := groupview.Description{
		Type: groupview.TypeConsumer, State: g.State, ProtocolType: groupview.Consumer, Assignor: g.AssignorName,
		Epoch: &g.Epoch, TargetEpoch: &g.AssignmentEpoch, Coordinator: coordinatorOf(coordinator),
	}
	for i := range g.Members {
		m := &g.Members[i]
		member := groupview.Member{
			ID: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Instance: m.InstanceID,
			Topics: m.SubscribedTopics, Pattern: m.SubscribedTopicRegex, Epoch: &m.MemberEpoch, Classic: m.MemberType == 0,
			Assigned: assignedOf(m.Assignment), Target: assignedOf(m.TargetAssignment),
		}
		addStanding(&member, journal.StandingOf(&m.UnknownTags))
		out.Members = append(out.Members, member)
	}
	slices.SortFunc(out.Members, func(a, b groupview.Member) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// addStanding adds what stands in the tagged field, if the broker has one.
func addStanding(m *groupview.Member, s *journal.Standing) {
	if s == nil {
		return
	}
	if s.Assignor != "" {
		m.Assignor = &s.Assignor
	}
	m.Matches, m.Waits = s.Matches, s.Waits
	for _, p := range s.Revoking {
		m.Revoking = append(m.Revoking, groupview.Assigned{Topic: p.Topic, Partitions: p.Partitions})
	}
	m.Since, m.Until, m.Heard, m.Session = known(s.Since), known(s.Until), known(s.Heard), known(s.Session)
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func assignedOf(a kmsg.Assignment) []groupview.Assigned {
	out := []groupview.Assigned{}
	for _, t := range a.TopicPartitions {
		partitions := slices.Clone(t.Partitions)
		slices.Sort(partitions)
		out = append(out, groupview.Assigned{Topic: t.Topic, Partitions: partitions})
	}
	slices.SortFunc(out, func(a, b groupview.Assigned) int { return cmp.Compare(a.Topic, b.Topic) })
	return out
}
