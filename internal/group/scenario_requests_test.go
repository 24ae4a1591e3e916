package group

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// args reads the arguments of a command. The first word without value is who
// asks.
type args struct {
	s *scenario
	d *datadriven.TestData
}

func (a args) who() string { return a.d.CmdArgs[0].Key }

func (a args) text(name, otherwise string) string {
	for _, x := range a.d.CmdArgs[1:] {
		if x.Key == name {
			return a.s.resolve(strings.Join(x.Vals, ","))
		}
	}
	return otherwise
}

// list is nil if it is not given, and not nil if it is () or name=.
func (a args) list(name string) []string {
	for _, x := range a.d.CmdArgs {
		if x.Key == name {
			if len(x.Vals) == 1 && x.Vals[0] == "" {
				return []string{}
			}
			return x.Vals
		}
	}
	return nil
}

// pointer is nil if it is not given, or null.
func (a args) pointer(name string) *string { return nullable(a.text(name, "null")) }

func nullable(v string) *string {
	if v == "null" {
		return nil
	}
	return &v
}

func (a args) number(name string, otherwise int) int {
	v := a.text(name, "")
	if v == "" {
		return otherwise
	}
	return parseInt(a.s.t, v)
}

func (a args) millis(name, otherwise string) int32 {
	return int32(parseDuration(a.s.t, a.text(name, otherwise)).Milliseconds())
}

// member returns the member id to use: as given, or what the client was told.
func (a args) member() string {
	return a.text("member", a.s.names[a.who()])
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
	a := args{s, d}
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = int16(a.number("v", 9))
	req.Group, req.MemberID, req.InstanceID = a.text("group", "g"), a.member(), a.pointer("instance")
	req.ProtocolType = a.text("type", "consumer")
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = a.millis("session", "10s"), a.millis("rebalance", "60s")
	req.Reason = a.pointer("reason")
	protocols := a.list("protocols")
	if protocols == nil {
		protocols = []string{"range:t"}
	}
	for _, p := range protocols {
		if name, topics, ok := strings.Cut(p, ":"); ok {
			req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscriptionOf(topics)})
		}
	}
	s.request(a.who(), req)
}

// sync a [generation=1] [assign=($a=t:0+1,$b=t:2)] [protocol=range] [type=consumer] [v=5]
// A client of version 5 says which protocol it goes by; null leaves that out.
func (s *scenario) sync(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version = int16(a.number("v", 5))
	req.Group, req.MemberID, req.InstanceID = a.text("group", "g"), a.member(), a.pointer("instance")
	req.Generation = int32(a.number("generation", 1))
	req.ProtocolType, req.Protocol = nullable(a.text("type", "consumer")), nullable(a.text("protocol", "range"))
	for _, v := range a.list("assign") {
		id, parts, _ := strings.Cut(v, "=")
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: s.resolve(id), MemberAssignment: assignmentOf(parts)})
	}
	s.request(a.who(), req)
}

// heartbeat a [generation=1] [v=4]
func (s *scenario) heartbeat(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version = int16(a.number("v", 4))
	req.Group, req.MemberID, req.InstanceID = a.text("group", "g"), a.member(), a.pointer("instance")
	req.Generation = int32(a.number("generation", 1))
	s.request(a.who(), req)
}

// leave a [members=($a,$b,/i)] [reason=…] [v=5]; /i is an instance id, $a/i both.
func (s *scenario) leave(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version = int16(a.number("v", 5))
	req.Group, req.MemberID = a.text("group", "g"), a.member()
	members := a.list("members")
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
	s.request(a.who(), req)
}

// commit a [generation=1] [offsets=(t:0=5,t:1=7/note,t:2=9/x*4097)] [retention=1h] [epoch=3] [v=9]
// Generation -1 is that of a consumer outside of the group protocol, or of an
// administrator. After an offset may stand its metadata, repeated some times.
func (s *scenario) commit(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version = int16(a.number("v", 9))
	req.Group, req.MemberID, req.InstanceID = a.text("group", "g"), a.member(), a.pointer("instance")
	req.Generation = int32(a.number("generation", 1))
	req.RetentionTimeMillis = -1
	if a.d.HasArg("retention") {
		req.RetentionTimeMillis = int64(a.millis("retention", ""))
	}
	for _, o := range a.list("offsets") {
		tp, at, _ := strings.Cut(o, "=")
		topic, part, _ := strings.Cut(tp, ":")
		at, metadata, ok := strings.Cut(at, "/")
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = int32(parseInt(s.t, part)), int64(parseInt(s.t, at)), int32(a.number("epoch", -1))
		if text, times, repeated := strings.Cut(metadata, "*"); repeated {
			metadata = strings.Repeat(text, parseInt(s.t, times))
		}
		if ok {
			p.Metadata = &metadata
		}
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
	}
	s.request(a.who(), req)
}

// fetch a [groups=(g,h)] [partitions=(t:0,t:1)] [stable] [member=a] [epoch=2]; without
// partitions, all that there are, with () none; without epoch, by nobody in particular.
func (s *scenario) fetch(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable = 9, a.d.HasArg("stable")
	groups := a.list("groups")
	if groups == nil {
		groups = []string{a.text("group", "g")}
	}
	for _, id := range groups {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group, g.MemberID, g.MemberEpoch = id, a.pointer("member"), int32(a.number("epoch", -1))
		if partitions := a.list("partitions"); partitions != nil {
			g.Topics = []kmsg.OffsetFetchRequestGroupTopic{}
			for _, tp := range partitions {
				topic, part, _ := strings.Cut(tp, ":")
				g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: []int32{int32(parseInt(s.t, part))}})
			}
		}
		req.Groups = append(req.Groups, g)
	}
	s.request(a.who(), req)
}

// offset-delete a partitions=(t:0)
func (s *scenario) offsetDelete(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = a.text("group", "g")
	for _, tp := range a.list("partitions") {
		topic, part, _ := strings.Cut(tp, ":")
		partitions := []kmsg.OffsetDeleteRequestTopicPartition{{Partition: int32(parseInt(s.t, part))}}
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: partitions})
	}
	s.request(a.who(), req)
}

// describe a [groups=(g,h)] [v=6]
func (s *scenario) describe(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version = int16(a.number("v", 5))
	if req.Groups = a.list("groups"); req.Groups == nil {
		req.Groups = []string{"g"}
	}
	s.request(a.who(), req)
}

// list a [states=(Stable)] [types=(classic)]
func (s *scenario) list(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrListGroupsRequest()
	req.Version = 5
	req.StatesFilter, req.TypesFilter = a.list("states"), a.list("types")
	s.request(a.who(), req)
}

// delete-groups a groups=(g,h)
func (s *scenario) deleteGroups(d *datadriven.TestData) {
	a := args{s, d}
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, a.list("groups")
	s.request(a.who(), req)
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
// how many partitions they have, and whether they are the broker's own. Nobody is
// told with quietly, as of what happens while nobody coordinates. With
// transactions there are coordinators for those.
func (s *scenario) setTopics(d *datadriven.TestData) {
	topics, names := map[string]byte{}, []string{}
	partitions, internal := map[string]int{}, []string{}
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 {
			id, n, counted := strings.Cut(a.Vals[0], ":")
			n, ours := strings.CutSuffix(n, ":internal")
			if topics[a.Key] = byte(parseInt(s.t, id)); counted {
				partitions[a.Key] = parseInt(s.t, n)
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
func (s *scenario) setMaxBatch(d *datadriven.TestData) { s.maxBatch = parseInt(s.t, d.CmdArgs[0].Key) }

// journal on|off
func (s *scenario) showJournal(d *datadriven.TestData) { s.journal = d.CmdArgs[0].Key == "on" }
