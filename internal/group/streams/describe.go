package streams

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// describe handles StreamsGroupDescribe.
func describe(x *kind.Step, r *machine.Request, m *kmsg.StreamsGroupDescribeRequest) {
	resp := kmsg.NewPtrStreamsGroupDescribeResponse()
	resp.Version = m.Version
	for _, id := range m.Groups {
		resp.Groups = append(resp.Groups, describeGroup(x, id))
	}
	x.Reply(r.ID, resp)
}

func describeGroup(x *kind.Step, id string) kmsg.StreamsGroupDescribeResponseGroup {
	out := kmsg.NewStreamsGroupDescribeResponseGroup()
	out.Group = id
	fail := func(err *kerr.Error, reason string) kmsg.StreamsGroupDescribeResponseGroup {
		out.ErrorCode, out.ErrorMessage = err.Code, &reason
		return out
	}
	g, ok := x.Groups[id].(*Group)
	switch {
	case id == "":
		return fail(kerr.InvalidGroupID, "The group id is empty.")
	case x.Groups[id] == nil:
		return fail(kerr.GroupIDNotFound, "Group "+id+" not found.")
	case !ok:
		return fail(kerr.GroupIDNotFound, "Group "+id+" is not a streams group.")
	}
	out.State, out.Epoch, out.AssignmentEpoch = g.StateName(), g.Epoch, g.TargetEpoch
	out.Topology = g.describeTopology(x)
	for _, m := range g.Members {
		if m.Metadata != nil {
			out.Members = append(out.Members, describeMember(m))
		}
	}
	return out
}

// describeTopology is the topology with the partitions that its topics have, if it is ready; as
// members said it, if not.
func (g *Group) describeTopology(x *kind.Step) *kmsg.StreamsGroupDescribeResponseGroupTopology {
	if g.Topology == nil {
		return nil
	}
	out := kmsg.NewStreamsGroupDescribeResponseGroupTopology()
	out.Epoch = g.Topology.Epoch
	partitions := map[string]int32{}
	if r := g.look(x.Image); r != nil && r.IsReady() {
		for i := range r.Internal {
			partitions[r.Internal[i].Name] = r.Internal[i].Partitions
		}
	}
	for i := range g.Topology.Subtopologies {
		s := &g.Topology.Subtopologies[i]
		e := kmsg.NewStreamsGroupDescribeResponseGroupTopologySubtopology()
		e.SubtopologyID, e.SourceTopics, e.RepartitionSinkTopics = s.ID, s.Sources, s.Sinks
		e.StateChangelogTopics, e.RepartitionSourceTopics = describeTopics(s.Changelogs, partitions), describeTopics(s.Repartitions, partitions)
		out.Subtopologies = append(out.Subtopologies, e)
	}
	return &out
}

func describeTopics(list []schema.TopicInfo, partitions map[string]int32) (out []kmsg.TopicInfo) {
	for i := range list {
		e := kmsg.NewTopicInfo()
		e.Topic, e.NumPartitions, e.ReplicationFactor = list[i].Name, list[i].Partitions, list[i].Replication
		if n := partitions[e.Topic]; n > 0 {
			e.NumPartitions = n
		}
		for _, c := range list[i].Configs {
			kv := kmsg.NewTopicInfoConfig()
			kv.Key, kv.Value = c.Key, c.Value
			e.Configs = append(e.Configs, kv)
		}
		out = append(out, e)
	}
	return out
}

func describeMember(m *Member) kmsg.StreamsGroupDescribeResponseGroupMember {
	out := kmsg.NewStreamsGroupDescribeResponseGroupMember()
	meta, now := m.Metadata, m.Now()
	out.MemberID, out.MemberEpoch, out.InstanceID, out.RackID = m.ID, now.Epoch, meta.Instance, meta.Rack
	out.ClientID, out.ClientHost, out.TopologyEpoch, out.ProcessID = meta.ClientID, meta.Host, meta.TopologyEpoch, meta.Process
	if e := meta.Endpoint; e != nil {
		u := kmsg.NewStreamsGroupDescribeResponseGroupMemberUserEndpoint()
		u.Host, u.Port = e.Host, e.Port
		out.UserEndpoint = &u
	}
	for _, t := range meta.Tags {
		tag := kmsg.NewStreamsGroupDescribeResponseGroupMemberClientTag()
		tag.Key, tag.Value = t.Key, t.Value
		out.ClientTags = append(out.ClientTags, tag)
	}
	has, target := toldOf(modern.PartsHeld(now.Assigned)), toldOf(m.Target)
	out.Assignment = kmsg.StreamsAssignment{ActiveTasks: has[Active], StandbyTasks: has[Standby], WarmupTasks: has[Warmup]}
	out.TargetAssignment = kmsg.StreamsAssignment{ActiveTasks: target[Active], StandbyTasks: target[Standby], WarmupTasks: target[Warmup]}
	return out
}
