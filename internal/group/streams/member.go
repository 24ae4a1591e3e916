package streams

import (
	"reflect"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/streams/topology"
	"muster/internal/machine"
)

// whose is whose place in the group a heartbeat takes.
type whose struct {
	modern.Place[*Member]
	in *Group // nil for one that is yet to be made
}

func claimOf(m *kmsg.StreamsGroupHeartbeatRequest) modern.Claim {
	return modern.Claim{Member: m.MemberID, Instance: m.InstanceID, Epoch: m.MemberEpoch}
}

// placeOf says whose heartbeat it is, or why no one's. A group is made of nothing, of offsets
// alone, or of a classic group that is empty.
func placeOf(x *kind.Step, m *kmsg.StreamsGroupHeartbeatRequest, h *modern.Heartbeat[Task]) (p whose, err *modern.Refusal) {
	switch g := x.Groups[m.Group].(type) {
	case *Group:
		p.in = g
		p.Place, err = g.PlaceOf(x, claimOf(m), h)
		return p, err
	case nil:
	case *classic.Group:
		if !g.IsEmpty() {
			return p, modern.Refused(kerr.GroupIDNotFound, "Group "+m.Group+" is not a streams group.")
		}
	default:
		return p, modern.Refused(kerr.GroupIDNotFound, "Group "+m.Group+" is not a streams group.")
	}
	if m.MemberEpoch != modern.EpochJoin {
		return p, modern.Refused(kerr.GroupIDNotFound, "Streams group "+m.Group+" not found.")
	}
	return p, nil
}

// before is what whoever has the place says of itself until now, nil for a new member.
func (p *whose) before() *schema.StreamsMember {
	switch {
	case p.Replaces != nil:
		return p.Replaces.Metadata
	case p.Known != nil:
		return p.Known.Metadata
	}
	return nil
}

// fits says whether what whoever is replaced had, and was to have, can be stored under another
// member id.
func (p *whose) fits(x *kind.Step, id string) bool {
	return p.Replaces == nil || p.in.FitsReplacement(x, p.Replaces, id)
}

// metadata is what the member says of itself with this heartbeat. What it does not mention
// stays as it was.
func (p *whose) metadata(r *machine.Request, m *kmsg.StreamsGroupHeartbeatRequest, known kind.Hosts) *schema.StreamsMember {
	v := &schema.StreamsMember{}
	if was := p.before(); was != nil {
		*v = *was
	}
	v.ClientID, v.Host = r.ClientID, known.Of(r.Host)
	if m.InstanceID != nil {
		v.Instance = m.InstanceID
	}
	if m.RackID != nil {
		v.Rack = m.RackID
	}
	if m.RebalanceTimeoutMillis != -1 {
		v.RebalanceTimeoutMillis = m.RebalanceTimeoutMillis
	}
	if m.Topology != nil {
		v.TopologyEpoch = m.Topology.Epoch
	}
	if m.ProcessID != nil {
		v.Process = *m.ProcessID
	}
	if m.UserEndpoint != nil {
		v.Endpoint = &schema.Endpoint{Host: m.UserEndpoint.Host, Port: m.UserEndpoint.Port}
	}
	if m.ClientTags != nil {
		v.Tags = nil
		for _, t := range m.ClientTags {
			v.Tags = append(v.Tags, schema.KeyValue{Key: t.Key, Value: t.Value})
		}
	}
	return v
}

// sameMember says whether nothing differs that is stored.
func sameMember(v, w *schema.StreamsMember) bool { return v == w || reflect.DeepEqual(v, w) }

// reassigns says whether something differs by which tasks are assigned. The rest of what a
// member says is stored, and no reason for another epoch.
func reassigns(was, now *schema.StreamsMember) bool {
	return was.TopologyEpoch != now.TopologyEpoch || was.Process != now.Process || !equal(was.Rack, now.Rack) || !slices.Equal(was.Tags, now.Tags)
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// readTopology reads the topology that a member brings who joins. The first is the group's for
// good: who has an older one is told so, and another one is refused.
func (in *joining) readTopology(x *kind.Step, m *kmsg.StreamsGroupHeartbeatRequest) *modern.Refusal {
	if m.Topology == nil {
		return nil
	}
	t := topologyOf(m.Topology)
	if reason := topology.Check(t); reason != "" {
		return modern.Refused(kerr.StreamsInvalidTopology, reason)
	}
	if in.in != nil && in.in.Topology != nil {
		if known := in.in.Topology; known.Epoch <= t.Epoch && !reflect.DeepEqual(known, t) {
			return invalid("Topology updates are not supported yet.")
		}
		return nil
	}
	if x.Image != nil {
		if r := topology.Resolve(t, counts(x.Image)); r.Invalid != "" {
			return modern.Refused(kerr.StreamsInvalidTopology, r.Invalid)
		}
	}
	in.topology = t
	return nil
}

// topologyOf is a topology as it is stored.
func topologyOf(m *kmsg.StreamsGroupHeartbeatRequestTopology) *schema.StreamsTopology {
	t := &schema.StreamsTopology{Epoch: m.Epoch, Subtopologies: room[schema.Subtopology](len(m.Subtopologies))}
	for i := range m.Subtopologies {
		s := &m.Subtopologies[i]
		out := schema.Subtopology{
			ID: s.SubtopologyID, Sources: list(s.SourceTopics), Patterns: list(s.SourceTopicRegex), Sinks: list(s.RepartitionSinkTopics),
			Changelogs: infos(s.StateChangelogTopics), Repartitions: infos(s.RepartitionSourceTopics),
		}
		out.Copartitions = room[schema.Copartition](len(s.CopartitionGroups))
		for _, c := range s.CopartitionGroups {
			out.Copartitions = append(out.Copartitions, schema.Copartition{Sources: list(c.SourceTopics), Patterns: list(c.SourceTopicRegex), Repartitions: list(c.RepartitionSourceTopics)})
		}
		t.Subtopologies = append(t.Subtopologies, out)
	}
	return t
}

// list is nil if it is empty, as it is when it is read again.
func list[T any](l []T) []T {
	if len(l) == 0 {
		return nil
	}
	return l
}

// room is an empty list with room for some, nil if there will be none.
func room[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

func infos(from []kmsg.TopicInfo) []schema.TopicInfo {
	out := room[schema.TopicInfo](len(from))
	for _, t := range from {
		info := schema.TopicInfo{Name: t.Topic, Partitions: t.NumPartitions, Replication: t.ReplicationFactor}
		for _, c := range t.Configs {
			info.Configs = append(info.Configs, schema.KeyValue{Key: c.Key, Value: c.Value})
		}
		out = append(out, info)
	}
	return out
}
