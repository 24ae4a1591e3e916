package group

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/harness"
	"muster/internal/journal"
	"muster/internal/machine"
)

// args are the arguments of a command. The first word without value is who asks.
type args struct {
	harness.Args
	s *scenario
}

func (s *scenario) args(d *datadriven.TestData) args {
	return args{harness.Args{T: s.T, D: d, Resolve: s.resolve}, s}
}

// List is nil if it is not given, and not nil if it is () or name=.
func (a args) List(name string) []string {
	if list := a.Args.List(name); len(list) != 1 || list[0] != "" {
		return list
	}
	return []string{}
}

// pointer is nil if it is not given, or null.
func (a args) pointer(name string) *string { return nullable(a.Text(name, "null")) }

func nullable(v string) *string {
	if v == "null" {
		return nil
	}
	return &v
}

// member returns the member id to use: as given, or what the client was told.
func (a args) member() string {
	return a.Text("member", a.s.names[a.Who()])
}

// subscription encodes topics as a consumer would: t+u. Behind ^ may stand the
// partitions of t that it owns, behind ~ data for its assignor. "raw:x" is taken
// as it is.
func subscriptionOf(topics string) []byte {
	if raw, ok := strings.CutPrefix(topics, "raw:"); ok {
		return []byte(raw)
	}
	m := kmsg.NewConsumerMemberMetadata()
	topics, data, _ := strings.Cut(topics, "~")
	if data != "" {
		m.UserData = []byte(data)
	}
	topics, owned, ok := strings.Cut(topics, "^")
	if topics != "" {
		m.Topics = strings.Split(topics, "+")
	}
	if ok {
		m.Version = 1
		t := kmsg.NewConsumerMemberMetadataOwnedPartition()
		t.Topic = m.Topics[0]
		for p := range strings.SplitSeq(owned, "+") {
			n, _ := strconv.Atoi(p)
			t.Partitions = append(t.Partitions, int32(n))
		}
		m.OwnedPartitions = append(m.OwnedPartitions, t)
	}
	return m.AppendTo(nil)
}

// assignment encodes t:0+1 as a consumer's assignment. Behind ~ may stand data of the
// assignor. "raw:x" is taken as it is.
func assignmentOf(v string) []byte {
	if raw, ok := strings.CutPrefix(v, "raw:"); ok {
		return []byte(raw)
	}
	m := kmsg.NewConsumerMemberAssignment()
	v, data, _ := strings.Cut(v, "~")
	if data != "" {
		m.UserData = []byte(data)
	}
	if topic, parts, ok := strings.Cut(v, ":"); ok {
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic = topic
		for p := range strings.SplitSeq(parts, "+") {
			n, _ := strconv.Atoi(p)
			t.Partitions = append(t.Partitions, int32(n))
		}
		m.Topics = append(m.Topics, t)
	}
	return m.AppendTo(nil)
}

// join a [group=g] [member=$a] [instance=i] [protocols=(range:t+u,sticky:t)]
// [type=consumer] [session=10s] [rebalance=60s] [reason=…] [v=9]
func (s *scenario) join(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = int16(a.Number("v", 9))
	req.Group, req.MemberID, req.InstanceID = a.Text("group", "g"), a.member(), a.pointer("instance")
	req.ProtocolType = a.Text("type", "consumer")
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = a.Millis("session", "10s"), a.Millis("rebalance", "60s")
	req.Reason = a.pointer("reason")
	protocols := a.List("protocols")
	if protocols == nil {
		protocols = []string{"range:t"}
	}
	for _, p := range protocols {
		if name, topics, ok := strings.Cut(p, ":"); ok {
			req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscriptionOf(topics)})
		}
	}
	s.request(a.Who(), req)
}

// sync a [generation=1] [assign=($a=t:0+1,$b=t:2)] [protocol=range] [type=consumer] [v=5]
// A client of version 5 says which protocol it goes by; null leaves that out.
func (s *scenario) sync(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = int16(a.Number("v", 5))
	req.Group, req.MemberID, req.InstanceID = a.Text("group", "g"), a.member(), a.pointer("instance")
	req.Generation = int32(a.Number("generation", 1))
	req.ProtocolType, req.Protocol = nullable(a.Text("type", "consumer")), nullable(a.Text("protocol", "range"))
	for _, v := range a.List("assign") {
		id, parts, _ := strings.Cut(v, "=")
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: s.resolve(id), MemberAssignment: assignmentOf(parts)})
	}
	s.request(a.Who(), req)
}

// heartbeat a [generation=1] [v=4]
func (s *scenario) heartbeat(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = int16(a.Number("v", 4))
	req.Group, req.MemberID, req.InstanceID = a.Text("group", "g"), a.member(), a.pointer("instance")
	req.Generation = int32(a.Number("generation", 1))
	s.request(a.Who(), req)
}

// leave a [members=($a,$b,/i)] [reason=…] [v=5]; /i is an instance id, $a/i both.
func (s *scenario) leave(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = int16(a.Number("v", 5))
	req.Group, req.MemberID = a.Text("group", "g"), a.member()
	members := a.List("members")
	if members == nil && req.Version >= 3 {
		members = []string{a.member()}
	}
	for _, m := range members {
		e := kmsg.NewLeaveGroupRequestMember()
		id, instance, ok := strings.Cut(m, "/")
		e.MemberID, e.Reason = s.resolve(id), a.pointer("reason")
		if ok {
			e.InstanceID = &instance
		}
		req.Members = append(req.Members, e)
	}
	s.request(a.Who(), req)
}

// commit a [generation=1] [offsets=(t:0=5,t:1=7/note,t:2=9/x*4097)] [retention=1h] [epoch=3] [replaces=4] [reset=r1] [now] [force] [v=9]
// Generation -1 is that of a consumer outside of the group protocol, or of an
// administrator. After an offset may stand its metadata, repeated some times.
func (s *scenario) commit(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = int16(a.Number("v", 9))
	req.Group, req.MemberID, req.InstanceID = a.Text("group", "g"), a.member(), a.pointer("instance")
	req.Generation = int32(a.Number("generation", 1))
	req.RetentionTimeMillis = -1
	if a.D.HasArg("retention") {
		req.RetentionTimeMillis = int64(a.Millis("retention", ""))
	}
	if plan := a.Text("reset", ""); plan != "" {
		journal.ResetAsk{Plan: plan, Now: a.D.HasArg("now"), Force: a.D.HasArg("force")}.Set(&req.UnknownTags)
	}
	for _, o := range a.List("offsets") {
		tp, at, _ := strings.Cut(o, "=")
		topic, part, _ := strings.Cut(tp, ":")
		at, metadata, ok := strings.Cut(at, "/")
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = int32(harness.ParseInt(s.T, part)), int64(harness.ParseInt(s.T, at)), int32(a.Number("epoch", -1))
		if text, times, repeated := strings.Cut(metadata, "*"); repeated {
			metadata = strings.Repeat(text, harness.ParseInt(s.T, times))
		}
		if ok {
			p.Metadata = &metadata
		}
		if a.D.HasArg("replaces") {
			machine.Replaces(a.Number("replaces", 0)).Set(&p.UnknownTags)
		}
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
	}
	s.request(a.Who(), req)
}

// fetch a [groups=(g,h)] [partitions=(t:0,t:1)] [stable] [member=a] [epoch=2]; without
// partitions, all that there are, with () none; without epoch, by no one in particular.
func (s *scenario) fetch(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable = 9, a.D.HasArg("stable")
	groups := a.List("groups")
	if groups == nil {
		groups = []string{a.Text("group", "g")}
	}
	for _, id := range groups {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.MemberID, g.MemberEpoch = id, a.pointer("member"), int32(a.Number("epoch", -1))
		if partitions := a.List("partitions"); partitions != nil {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
			for _, tp := range partitions {
				topic, part, _ := strings.Cut(tp, ":")
				g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: []int32{int32(harness.ParseInt(s.T, part))}})
			}
		}
		req.Groups = append(req.Groups, g)
	}
	s.request(a.Who(), req)
}

// offset-delete a partitions=(t:0)
func (s *scenario) offsetDelete(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = a.Text("group", "g")
	for _, tp := range a.List("partitions") {
		topic, part, _ := strings.Cut(tp, ":")
		partitions := []kmsg.OffsetDeleteRequestTopicPartition{{Partition: int32(harness.ParseInt(s.T, part))}}
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: partitions})
	}
	s.request(a.Who(), req)
}

// describe a [groups=(g,h)] [v=6]
func (s *scenario) describe(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version = int16(a.Number("v", 5))
	if req.Groups = a.List("groups"); req.Groups == nil {
		req.Groups = []string{"g"}
	}
	s.request(a.Who(), req)
}

// list a [states=(Stable)] [types=(classic)]
func (s *scenario) list(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 5
	req.StatesFilter, req.TypesFilter = a.List("states"), a.List("types")
	s.request(a.Who(), req)
}

// delete-groups a groups=(g,h)
func (s *scenario) deleteGroups(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, a.List("groups")
	s.request(a.Who(), req)
}

// topics-deleted t u
func (s *scenario) topicsDeleted(d *datadriven.TestData) {
	var topics []string
	for _, a := range d.CmdArgs {
		topics = append(topics, a.Key)
	}
	before := s.image
	left := s.shard.committedTo()
	for _, topic := range topics {
		delete(left, topic)
	}
	s.image = imageOf(left)
	s.step(machine.TopicsChanged{Topics: topics, Gone: topics})
	s.image = before
}

// topics t=1 u=2:4 v=3:1:internal: which topics there are from now on, with their ids,
// how many partitions they have, and whether they are the broker's own. No one is
// told with quietly, as of what happens while no one coordinates. With
// transactions there are coordinators for those.
func (s *scenario) setTopics(d *datadriven.TestData) {
	topics, names := map[string]byte{}, []string{}
	partitions, internal := map[string]int{}, []string{}
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 {
			id, n, counted := strings.Cut(a.Vals[0], ":")
			n, ours := strings.CutSuffix(n, ":internal")
			if topics[a.Key] = byte(harness.ParseInt(s.T, id)); counted {
				partitions[a.Key] = harness.ParseInt(s.T, n)
			}
			if ours {
				internal = append(internal, a.Key)
			}
		}
	}
	for topic := range s.shard.committedTo() {
		names = append(names, topic)
	}
	if s.image = asInternal(withPartitions(imageOf(topics), partitions), internal); d.HasArg("transactions") {
		s.image = withTransactions(s.image)
	}
	if !d.HasArg("quietly") {
		slices.Sort(names)
		s.step(machine.TopicsChanged{Topics: names, Gone: names})
	}
}

// max-batch 500: how large a record batch may be.
func (s *scenario) setMaxBatch(d *datadriven.TestData) {
	s.maxBatch = harness.ParseInt(s.T, d.CmdArgs[0].Key)
}

// journal on|off
func (s *scenario) showJournal(d *datadriven.TestData) { s.journal = d.CmdArgs[0].Key == "on" }
