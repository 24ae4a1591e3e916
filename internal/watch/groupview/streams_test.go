package groupview

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestAStreamsGroupIsReadWithItsTopologyAndTasks(t *testing.T) {
	resp := kmsg.NewPtrStreamsGroupDescribeResponse()
	member := func(id, process string, active, standby []kmsg.TaskIDs) kmsg.StreamsGroupDescribeResponseGroupMember {
		m := kmsg.NewStreamsGroupDescribeResponseGroupMember()
		m.MemberID, m.ProcessID, m.ClientHost, m.MemberEpoch = id, process, "/10.0.0.1", 3
		m.Assignment = kmsg.StreamsAssignment{ActiveTasks: active, StandbyTasks: standby}
		return m
	}
	topology := &kmsg.StreamsGroupDescribeResponseGroupTopology{Subtopologies: []kmsg.StreamsGroupDescribeResponseGroupTopologySubtopology{
		{SubtopologyID: "0", SourceTopics: []string{"small", "t"}, RepartitionSinkTopics: []string{"r"}},
		{SubtopologyID: "1", RepartitionSourceTopics: []kmsg.TopicInfo{{Topic: "r"}}, StateChangelogTopics: []kmsg.TopicInfo{{Topic: "log"}}},
	}}
	resp.Groups = []kmsg.StreamsGroupDescribeResponseGroup{
		{Group: "a", State: NotReady, Epoch: 4, AssignmentEpoch: 3, Topology: topology, Members: []kmsg.StreamsGroupDescribeResponseGroupMember{
			member("x", "q", []kmsg.TaskIDs{{SubtopologyID: "1", Partitions: []int32{1}}, {SubtopologyID: "0", Partitions: []int32{2, 0}}}, nil),
			member("y", "p", nil, []kmsg.TaskIDs{{SubtopologyID: "1", Partitions: []int32{1}}}),
		}},
		{Group: "b", ErrorCode: kerr.GroupIDNotFound.Code},
	}
	got := readStreams(resp)
	assert.MustTrue(t, len(got) == 2 && got[0].Err == nil && got[1].Err != nil, "read is %+v", got)
	g := got[0].Group
	equal(t, []string{g.Type, g.State, g.Members[0].ID, g.Members[0].Process, g.Members[1].Host}, []string{TypeStreams, NotReady, "y", "p", "10.0.0.1"}, "the group")
	equal(t, []int32{*g.Epoch, *g.TargetEpoch, *g.Members[0].Epoch}, []int32{4, 3, 3}, "the epochs")
	equal(t, g.Subscribed(), []string{"r", "small", "t"}, "what it reads")
	x := g.Members[1]
	equal(t, x.Tasks.Active[0].Partitions, []int32{0, 2}, "tasks of 0")
	equal(t, []string{x.Tasks.Active[0].Subtopology, x.Tasks.Active[1].Subtopology, g.Members[0].Tasks.Standby[0].Subtopology}, []string{"0", "1", "1"}, "subtopologies")

	l := NewLoader(nil)
	l.logs = map[string]Log{"t": {Partitions: 3}, "small": {Partitions: 1}, "r": {Partitions: 3}}
	l.addTopics(&g)
	equal(t, g.Missing, []string{"log"}, "missing topics")
	equal(t, g.Members[1].Assigned[0].Partitions, []int32{1}, "partitions of r")
	equal(t, g.Members[1].Assigned[1].Partitions, []int32{0}, "partitions of a topic with fewer than there are tasks")
	equal(t, g.Members[1].Assigned[2].Partitions, []int32{0, 2}, "partitions of t")
}
