package group

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/streams"
	"muster/internal/harness"
	"muster/internal/machine"
)

// worker is what a client of the streams protocol knows.
type worker struct {
	epoch     int32
	endpoints int32
	tasks     [3][]kmsg.TaskIDs
}

// topology [epoch=1]: what applications do from now on. A line is a subtopology, "0: a r? > s /
// c = a+r": it reads topic a and repartition topic r, writes s, has changelog c, and a and r are
// copartitioned; r?3 has 3 partitions, c?3 is a changelog that says so, x* a regular expression.
func (s *scenario) setTopology(d *datadriven.TestData) {
	t := kmsg.NewStreamsGroupHeartbeatRequestTopology()
	t.Epoch = int32(s.args(d).Number("epoch", 1))
	for line := range strings.Lines(d.Input) {
		t.Subtopologies = append(t.Subtopologies, parseSubtopology(strings.TrimSpace(line)))
	}
	s.topology = &t
}

func parseSubtopology(line string) kmsg.StreamsGroupHeartbeatRequestTopologySubtopology {
	out := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopology()
	id, rest, _ := strings.Cut(line, ":")
	rest, groups, _ := strings.Cut(rest, "=")
	rest, changelogs, _ := strings.Cut(rest, "/")
	from, to, _ := strings.Cut(rest, ">")
	out.SubtopologyID, out.RepartitionSinkTopics = id, strings.Fields(to)
	info := func(name string) kmsg.TopicInfo {
		i := kmsg.NewTopicInfo()
		base, n, _ := strings.Cut(name, "?")
		i.Topic = base
		_, _ = fmt.Sscan(n, &i.NumPartitions)
		return i
	}
	for _, name := range strings.Fields(from) {
		switch {
		case strings.HasSuffix(name, "*"):
			out.SourceTopicRegex = append(out.SourceTopicRegex, name)
		case strings.Contains(name, "?"):
			out.RepartitionSourceTopics = append(out.RepartitionSourceTopics, info(name))
		default:
			out.SourceTopics = append(out.SourceTopics, name)
		}
	}
	for _, name := range strings.Fields(changelogs) {
		out.StateChangelogTopics = append(out.StateChangelogTopics, info(name))
	}
	for _, group := range strings.Fields(groups) {
		c := kmsg.NewStreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup()
		for name := range strings.SplitSeq(group, "+") {
			if i := slices.Index(out.SourceTopics, name); i >= 0 {
				c.SourceTopics = append(c.SourceTopics, int16(i))
			} else {
				c.RepartitionSourceTopics = append(c.RepartitionSourceTopics, int16(slices.IndexFunc(out.RepartitionSourceTopics, func(t kmsg.TopicInfo) bool { return t.Topic == name })))
			}
		}
		out.CopartitionGroups = append(out.CopartitionGroups, c)
	}
	return out
}

// work a [process=a] [epoch=2] [owned=(0.1+2,s0.3)] [ack] [instance=i] [rack=r] [timeout=60s]
// [endpoint=host] [endpoints=1] [shutdown] [tags=(k:v)] [topology=null] [half] [group=g] [member=a]
//
// StreamsGroupHeartbeat. It goes as beat does; tasks are subtopology.partitions, standbys with an
// s before. By default each client is a process of its own.
func (s *scenario) work(d *datadriven.TestData) {
	a := s.args(d)
	last := s.works[a.Who()]
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.InstanceID, req.RackID = a.Text("group", "g"), a.Text("member", a.Who()), a.pointer("instance"), a.pointer("rack")
	req.MemberEpoch, req.EndpointInformationEpoch = int32(a.Number("epoch", int(last.epoch))), int32(a.Number("endpoints", int(last.endpoints)))
	req.ProcessID, req.ShutdownApplication, req.RebalanceTimeoutMillis = a.pointer("process"), d.HasArg("shutdown"), -1
	if d.HasArg("timeout") {
		req.RebalanceTimeoutMillis = a.Millis("timeout", "")
	}
	if d.HasArg("endpoint") {
		req.UserEndpoint = &kmsg.StreamsGroupHeartbeatRequestUserEndpoint{Host: a.Text("endpoint", ""), Port: 80}
	}
	for _, t := range a.List("tags") {
		k, v, _ := strings.Cut(t, ":")
		req.ClientTags = append(req.ClientTags, kmsg.StreamsGroupHeartbeatRequestClientTag{Key: k, Value: v})
	}
	switch {
	case d.HasArg("ack"):
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = last.tasks[0], last.tasks[1], last.tasks[2]
	case a.Text("owned", "null") != "null" || req.MemberEpoch == modern.EpochJoin && !d.HasArg("owned"):
		tasks := parseTasks(a.List("owned"))
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = tasks[0], tasks[1], tasks[2]
	}
	if d.HasArg("half") {
		req.StandbyTasks = nil
	}
	if req.MemberEpoch == modern.EpochJoin {
		if !d.HasArg("timeout") {
			req.RebalanceTimeoutMillis = a.Millis("timeout", "60s")
		}
		if a.Text("topology", "") != "null" {
			req.Topology = s.topology
		}
		if !d.HasArg("process") {
			who := a.Who()
			req.ProcessID = &who
		}
	}
	s.request(a.Who(), req)
}

func parseTasks(list []string) [3][]kmsg.TaskIDs {
	out := [3][]kmsg.TaskIDs{{}, {}, {}}
	for _, v := range list {
		if v == "" {
			continue
		}
		role := 0
		if rest, standby := strings.CutPrefix(v, "s"); standby {
			role, v = 1, rest
		}
		t := kmsg.NewTaskIDs()
		id, parts, _ := strings.Cut(v, ".")
		t.SubtopologyID = id
		for p := range strings.SplitSeq(parts, "+") {
			var n int32
			_, _ = fmt.Sscan(p, &n)
			t.Partitions = append(t.Partitions, n)
		}
		out[role] = append(out[role], t)
	}
	return out
}

var roleNames = [3]string{"", "s", "w"}

func showTaskIDs(lists [3][]kmsg.TaskIDs) string {
	var out []string
	for role, list := range lists {
		for _, t := range list {
			for _, n := range t.Partitions {
				out = append(out, fmt.Sprintf("%s%s.%d", roleNames[role], t.SubtopologyID, n))
			}
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

func (s *scenario) showWork(who string, m *kmsg.StreamsGroupHeartbeatResponse) string {
	if m.ErrorCode != 0 {
		out := "work: " + harness.ErrorName(m.ErrorCode)
		if m.ErrorMessage != nil {
			out += fmt.Sprintf(" %q", *m.ErrorMessage)
		}
		return out
	}
	last := s.works[who]
	last.epoch, last.endpoints = m.MemberEpoch, m.EndpointInformationEpoch
	out := fmt.Sprintf("work: OK epoch=%d", m.MemberEpoch)
	if m.ActiveTasks != nil {
		last.tasks = [3][]kmsg.TaskIDs{m.ActiveTasks, m.StandbyTasks, m.WarmupTasks}
		out += " " + showTaskIDs(last.tasks)
	}
	for _, e := range m.PartitionsByUserEndpoint {
		out += fmt.Sprintf("\n     %s:%d has", e.UserEndpoint.Host, e.UserEndpoint.Port)
		for _, t := range e.ActivePartitions {
			out += fmt.Sprintf(" %s:%v", t.Topic, t.Partitions)
		}
		for _, t := range e.StandbyPartitions {
			out += fmt.Sprintf(" standby %s:%v", t.Topic, t.Partitions)
		}
	}
	for _, st := range m.Status {
		out += fmt.Sprintf("\n     status %d %s", st.StatusCode, st.StatusDetail)
	}
	if m.MemberEpoch < 0 {
		last = worker{}
	}
	s.works[who] = last
	return out
}

func showOwnedTasks(lists ...[]schema.OwnedTasks) string {
	var out []string
	for role, list := range lists {
		for _, t := range list {
			for i, n := range t.Partitions {
				text := fmt.Sprintf("%s%s.%d", roleNames[role], t.Subtopology, n)
				if len(t.Epochs) > 0 {
					text += fmt.Sprintf("@%d", t.Epochs[i])
				}
				out = append(out, text)
			}
		}
	}
	return "[" + strings.Join(out, " ") + "]"
}

func showTarget(v *schema.StreamsTarget) string {
	plain := func(list []schema.TaskIDs) (out []schema.OwnedTasks) {
		for _, t := range list {
			out = append(out, schema.OwnedTasks{Subtopology: t.Subtopology, Partitions: t.Partitions})
		}
		return out
	}
	return showOwnedTasks(plain(v.Active), plain(v.Standby), plain(v.Warmup))
}

// showStreamsRecord shows a record of a streams group.
func showStreamsRecord(r machine.Record) (string, bool) {
	rec, ok := r.(schema.Record)
	if !ok || rec.Kind() != schema.Streams {
		return "", false
	}
	g, tombstone := groupName(rec.GroupID()), " tombstone"
	if !rec.IsTombstone() {
		tombstone = ""
	}
	switch r := r.(type) {
	case *schema.StreamsEpochRecord:
		if r.Value == nil {
			return g + " epoch tombstone", true
		}
		ready := "not ready"
		if r.Value.Validated >= 0 {
			ready = fmt.Sprintf("topology %d ready", r.Value.Validated)
		}
		return fmt.Sprintf("%s epoch %d, %s", g, r.Value.Epoch, ready), true
	case *schema.StreamsTargetEpochRecord:
		if r.Value == nil {
			return g + " target tombstone", true
		}
		return fmt.Sprintf("%s target epoch %d", g, r.Value.Epoch), true
	case *schema.StreamsTopologyRecord:
		if r.Value == nil {
			return g + " topology tombstone", true
		}
		return fmt.Sprintf("%s topology %d", g, r.Value.Epoch), true
	case *schema.StreamsMemberRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s member %s tombstone", g, r.Member), true
		}
		return fmt.Sprintf("%s member %s%s of process %s", g, r.Member, instance(r.Value.Instance), r.Value.Process), true
	case *schema.StreamsTargetRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s target of %s tombstone", g, r.Member), true
		}
		return fmt.Sprintf("%s target of %s %s", g, r.Member, showTarget(r.Value)), true
	case *schema.StreamsCurrentRecord:
		if v := r.Value; v != nil {
			out := fmt.Sprintf("%s %s in epoch %d after %d, %s, has %s", g, r.Member, v.Epoch, v.Previous, showState(v.State-1), showOwnedTasks(v.Active, v.Standby, v.Warmup))
			if pending := showOwnedTasks(v.PendingActive, v.PendingStandby, v.PendingWarmup); pending != "[]" {
				out += ", lets go of " + pending
			}
			return out, true
		}
		return fmt.Sprintf("%s %s tombstone", g, r.Member), true
	}
	return g + tombstone, true
}

// showStreamsState shows a streams group as it is.
func (s *scenario) showStreamsState(g *streams.Group) {
	s.Printf("%s is %s in epoch %d, target %d\n", groupName(g.ID), g.StateName(), g.Epoch, g.TargetEpoch)
	for _, m := range g.Members {
		now := m.Now()
		current, _ := showStreamsRecord(g.CurrentRecord(m.ID, &now))
		target, _ := showStreamsRecord(g.TargetRecord(m.ID, &modern.TargetOf[streams.Task]{Parts: m.Target}))
		s.Printf("  %s; %s\n", current, target)
	}
}

// streams returns a group if it is a streams group, nil if not.
func (s *Shard) streams(id string) *streams.Group {
	g, _ := s.Groups[id].(*streams.Group)
	return g
}

// describe-streams a [groups=(g,h)]
func (s *scenario) streamsDescribe(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrStreamsGroupDescribeRequest()
	if req.Groups = a.List("groups"); req.Groups == nil {
		req.Groups = []string{"g"}
	}
	s.request(a.Who(), req)
}

func (s *scenario) showStreams(m *kmsg.StreamsGroupDescribeResponse) string {
	var out []string
	for _, g := range m.Groups {
		if g.ErrorCode != 0 {
			out = append(out, fmt.Sprintf("%s %s %q", groupName(g.Group), harness.ErrorName(g.ErrorCode), *g.ErrorMessage))
			continue
		}
		text := fmt.Sprintf("%s is %s, epoch %d, target %d, topology %d", groupName(g.Group), g.State, g.Epoch, g.AssignmentEpoch, g.Topology.Epoch)
		for _, t := range g.Topology.Subtopologies {
			text += fmt.Sprintf("\n     subtopology %s reads %v", t.SubtopologyID, t.SourceTopics)
			for _, i := range slices.Concat(t.RepartitionSourceTopics, t.StateChangelogTopics) {
				text += fmt.Sprintf(" %s:%d", i.Topic, i.NumPartitions)
			}
		}
		for _, e := range g.Members {
			text += fmt.Sprintf("\n     %s%s in epoch %d, client %s at %s, process %s", e.MemberID, instance(e.InstanceID), e.MemberEpoch, e.ClientID, e.ClientHost, e.ProcessID)
			text += ", has " + showTaskIDs([3][]kmsg.TaskIDs{e.Assignment.ActiveTasks, e.Assignment.StandbyTasks, e.Assignment.WarmupTasks})
			text += " of " + showTaskIDs([3][]kmsg.TaskIDs{e.TargetAssignment.ActiveTasks, e.TargetAssignment.StandbyTasks, e.TargetAssignment.WarmupTasks})
		}
		out = append(out, text)
	}
	return "describe-streams: " + strings.Join(out, "\n   ")
}

// created [code=0] [fails=(c,d)] [lost]: the broker answers that it created the topics which it
// was asked for first, all but those that fail.
func (s *scenario) created(d *datadriven.TestData) {
	a := s.args(d)
	if len(s.sends) == 0 {
		d.Fatalf(s.T, "no one was asked")
	}
	q := s.sends[0]
	s.sends = s.sends[1:]
	if d.HasArg("lost") {
		s.step(machine.Sent{ID: q.ID, Err: errLost})
		return
	}
	req := q.Msg.(*kmsg.CreateTopicsRequest)
	resp := req.ResponseKind().(*kmsg.CreateTopicsResponse)
	fails := a.List("fails")
	for _, t := range req.Topics {
		e := kmsg.NewCreateTopicsResponseTopic()
		if e.Topic = t.Topic; slices.Contains(fails, t.Topic) {
			e.ErrorCode = kerr.PolicyViolation.Code
		}
		resp.Topics = append(resp.Topics, e)
	}
	s.step(machine.Sent{ID: q.ID, Msg: resp})
}

func showCreate(req *kmsg.CreateTopicsRequest) string {
	var out []string
	for _, t := range req.Topics {
		out = append(out, fmt.Sprintf("%s:%d", t.Topic, t.NumPartitions))
	}
	return "this broker to create " + strings.Join(out, " ")
}
