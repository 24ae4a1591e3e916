package streams

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/streams/topology"
	"muster/internal/metadata"
)

// Respond answers a heartbeat: where its member is, what is the matter with the group, and
// perhaps what the member has and where others have theirs.
func (g *Group) Respond(x *kind.Step, m *Member, b pending, parts bool) {
	resp := kmsg.NewPtrStreamsGroupHeartbeatResponse()
	resp.Version, resp.MemberID = b.Version, m.ID
	now := m.Now()
	resp.MemberEpoch = max(now.Epoch, modern.EpochJoin) // Below that it had left.
	resp.HeartbeatIntervalMillis = int32(g.Config(x).Of(g.ID).Heartbeat.Milliseconds())
	resp.Status = g.statuses(x, m)
	if parts {
		told := toldOf(modern.PartsHeld(now.Assigned))
		resp.ActiveTasks, resp.StandbyTasks, resp.WarmupTasks = told[Active], told[Standby], told[Warmup]
	}
	if resp.EndpointInformationEpoch = g.answers.epoch; m.endpoint != g.answers.epoch {
		resp.PartitionsByUserEndpoint = g.endpointMap(x.Image)
	}
	x.Reply(b.ID, resp)
}

// Fail implements modern.Kind.
func (g *Group) Fail(x *kind.Step, b pending, err *modern.Refusal) {
	replyError(x, b.ID, b.Version, err)
}

// statuses is what is the matter with the group, or with the member.
func (g *Group) statuses(x *kind.Step, m *Member) (out []kmsg.StreamsGroupHeartbeatResponseStatus) {
	add := func(code topology.Status, detail string) {
		s := kmsg.NewStreamsGroupHeartbeatResponseStatus()
		s.StatusCode, s.StatusDetail = int8(code), detail
		out = append(out, s)
	}
	if g.Topology != nil && m.Metadata.TopologyEpoch < g.Topology.Epoch {
		add(topology.StaleTopology, "The member's topology epoch is lower than the one of the group.")
	}
	if r := g.look(x.Image); r != nil {
		switch {
		case r.Invalid != "":
			add(topology.WrongPartitions, r.Invalid)
		case r.Problem != nil && r.Problem.Status == topology.MissingInternal:
			add(r.Problem.Status, r.Problem.Detail+g.topics.explain())
		case r.Problem != nil:
			add(r.Problem.Status, r.Problem.Detail)
		}
	}
	if g.shutdown != "" {
		add(topology.Shutdown, "Streams group member "+g.shutdown+" encountered a fatal error and requested a shutdown for the entire application.")
	}
	if g.crowded {
		add(topology.AssignmentWaits, "Assignment delayed: there is no room for the tasks of the group, see muster.groups.max.bytes.")
	}
	if g.delay != 0 {
		add(topology.AssignmentWaits, "Assignment delayed due to the configured initial rebalance delay.")
	}
	return out
}

// endpoints is where members answer queries. Its epoch rises when one that does has other tasks.
type endpoints struct {
	epoch int32
	had   []Held // what the member had whose record is being replaced
}

// note notes that a member begins, or ends, to hold what it has.
func (e *endpoints) note(m *Member, holds bool) {
	switch {
	case !holds:
		e.had = m.Current.Assigned
		return
	case m.Metadata != nil && m.Metadata.Endpoint != nil && !modern.SameParts(e.had, m.Current.Assigned):
		e.epoch++
	}
	e.had = nil
}

// Loaded implements kind.Group. Epochs of endpoints begin anew.
func (g *Group) Loaded(x *kind.Step) {
	g.answers = endpoints{}
	g.Group.Loaded(x)
}

// endpointMap is the partitions of source topics that each endpoint has. It is never nil, which
// would say that it is as before.
func (g *Group) endpointMap(image *metadata.Image) []kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint {
	out := []kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpoint{}
	r := g.look(image)
	if r == nil {
		return out
	}
	for _, m := range g.Members {
		if m.Metadata == nil || m.Metadata.Endpoint == nil {
			continue
		}
		e := kmsg.NewStreamsGroupHeartbeatResponsePartitionsByUserEndpoint()
		e.UserEndpoint.Host, e.UserEndpoint.Port = m.Metadata.Endpoint.Host, m.Metadata.Endpoint.Port
		byTopic := [3]map[string][]int32{{}, {}, {}}
		for _, h := range m.Current.AssignedParts() {
			eachPartition(r, image, h.Part.TaskID, func(t *metadata.Topic, n int32) {
				byTopic[h.Part.Role][t.Name] = append(byTopic[h.Part.Role][t.Name], n)
			})
		}
		for _, name := range slices.Sorted(maps.Keys(byTopic[Active])) {
			e.ActivePartitions = append(e.ActivePartitions, kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointActivePartition{Topic: name, Partitions: byTopic[Active][name]})
		}
		for _, name := range slices.Sorted(maps.Keys(byTopic[Standby])) {
			e.StandbyPartitions = append(e.StandbyPartitions, kmsg.StreamsGroupHeartbeatResponsePartitionsByUserEndpointStandbyPartition{Topic: name, Partitions: byTopic[Standby][name]})
		}
		out = append(out, e)
	}
	return out
}

// eachPartition calls back with the partitions of a task, of those that exist.
func eachPartition(r *topology.Resolved, image *metadata.Image, id TaskID, do func(*metadata.Topic, int32)) {
	s := r.Find(id.Subtopology)
	if s == nil {
		return
	}
	for _, name := range s.Sources {
		if t := image.Topic(name); t != nil && int(id.Partition) < len(t.Partitions) {
			do(t, id.Partition)
		}
	}
}
