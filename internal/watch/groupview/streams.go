package groupview

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// NotReady is the state of a streams group whose topics are not all there, and right.
const NotReady = "NotReady"

// Subtopology is a part of the topology of a streams group. It has a task for each partition
// number of the topics that it reads.
type Subtopology struct {
	ID           string   `json:"subtopology"`
	Sources      []string `json:"source_topics"`
	Repartitions []string `json:"repartition_topics"` // That it reads.
	Changelogs   []string `json:"changelog_topics"`
	Sinks        []string `json:"repartition_sink_topics"` // Repartition topics that it writes.
}

// Tasks is what a member of a streams group works on, and what it has copies of.
type Tasks struct {
	Active  []SubtopologyTasks `json:"active"`
	Standby []SubtopologyTasks `json:"standby"`
}

// SubtopologyTasks is tasks of a subtopology.
type SubtopologyTasks struct {
	Subtopology string  `json:"subtopology"`
	Partitions  []int32 `json:"partitions"`
}

func askStreams(names []string) kmsg.Request {
	req := kmsg.NewPtrStreamsGroupDescribeRequest()
	req.Groups = names
	return req
}

func readStreams(resp kmsg.Response) (out []Answer) {
	r, ok := resp.(*kmsg.StreamsGroupDescribeResponse)
	if !ok {
		return nil
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		a := Answer{Name: g.Group, Err: kerr.ErrorForCode(g.ErrorCode)}
		if a.Err == nil {
			a.Group = FromStreams(g)
		}
		out = append(out, a)
	}
	return out
}

// FromStreams is a streams group as StreamsGroupDescribe tells of it, but for where it is and its
// offsets.
func FromStreams(g *kmsg.StreamsGroupDescribeResponseGroup) Group {
	out := Group{Type: TypeStreams, State: g.State, ProtocolType: TypeStreams, Epoch: &g.Epoch, TargetEpoch: &g.AssignmentEpoch}
	reads := map[string][]string{}
	var all []string
	if g.Topology != nil {
		for i := range g.Topology.Subtopologies {
			s := &g.Topology.Subtopologies[i]
			sub := Subtopology{
				ID: s.SubtopologyID, Sources: slices.Concat([]string{}, s.SourceTopics), Sinks: slices.Concat([]string{}, s.RepartitionSinkTopics),
				Repartitions: namesOf(s.RepartitionSourceTopics), Changelogs: namesOf(s.StateChangelogTopics),
			}
			out.Topology = append(out.Topology, sub)
			reads[sub.ID] = slices.Concat(sub.Sources, sub.Repartitions)
			all = append(all, reads[sub.ID]...)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for i := range g.Members {
		m := &g.Members[i]
		member := Member{
			ID: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Instance: m.InstanceID, Topics: all, Epoch: &m.MemberEpoch,
			Process: m.ProcessID, Tasks: tasksOf(&m.Assignment), TargetTasks: tasksOf(&m.TargetAssignment), Assigned: partitionsOfTasks(reads, m.Assignment.ActiveTasks),
		}
		out.Members = append(out.Members, member)
	}
	sort.Slice(out.Members, func(a, b int) bool {
		x, y := &out.Members[a], &out.Members[b]
		return cmp.Or(cmp.Compare(x.Process, y.Process), cmp.Compare(x.ID, y.ID)) < 0
	})
	return out
}

func namesOf(topics []kmsg.TopicInfo) []string {
	out := []string{}
	for i := range topics {
		out = append(out, topics[i].Topic)
	}
	return out
}

func tasksOf(a *kmsg.StreamsAssignment) *Tasks {
	return &Tasks{Active: tasksIn(a.ActiveTasks), Standby: tasksIn(a.StandbyTasks)}
}

func tasksIn(list []kmsg.TaskIDs) []SubtopologyTasks {
	out := []SubtopologyTasks{}
	for _, t := range list {
		out = append(out, SubtopologyTasks{t.SubtopologyID, slices.Sorted(slices.Values(t.Partitions))})
	}
	sort.Slice(out, func(a, b int) bool { return out[a].Subtopology < out[b].Subtopology })
	return out
}

// partitionsOfTasks is the partitions that tasks read. A topic may have fewer than there are
// tasks.
func partitionsOfTasks(reads map[string][]string, tasks []kmsg.TaskIDs) []Assigned {
	byTopic := map[string][]int32{}
	for _, t := range tasks {
		for _, topic := range reads[t.SubtopologyID] {
			byTopic[topic] = append(byTopic[topic], t.Partitions...)
		}
	}
	out := []Assigned{}
	for topic, partitions := range byTopic {
		slices.Sort(partitions)
		out = append(out, Assigned{Topic: topic, Partitions: slices.Compact(partitions)})
	}
	sort.Slice(out, func(a, b int) bool { return out[a].Topic < out[b].Topic })
	return out
}

// topologyTopics is all topics of the topology, internal ones included.
func (g *Group) topologyTopics() []string {
	var out []string
	for i := range g.Topology {
		s := &g.Topology[i]
		out = slices.Concat(out, s.Sources, s.Repartitions, s.Changelogs)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// addTopics notes which topics of a streams group are missing, and takes from members what
// their topics do not have.
func (l *Loader) addTopics(g *Group) {
	if g.Type != TypeStreams {
		return
	}
	for _, topic := range g.topologyTopics() {
		if l.Partitions(topic) == 0 {
			g.Missing = append(g.Missing, topic)
		}
	}
	for i := range g.Members {
		for j := range g.Members[i].Assigned {
			a := &g.Members[i].Assigned[j]
			n, _ := slices.BinarySearch(a.Partitions, int32(l.Partitions(a.Topic)))
			a.Partitions = a.Partitions[:n]
		}
	}
}
