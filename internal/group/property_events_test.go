package group

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

func pick[T any](t *rapid.T, what string, from ...T) T { return rapid.SampledFrom(from).Draw(t, what) }

// rarely is true once in ten times: most events should be sensible, or a group
// never gets anywhere.
func rarely(t *rapid.T, what string) bool { return rapid.IntRange(0, 9).Draw(t, what) == 9 }

func pickGroup(t *rapid.T) string {
	if rarely(t, "another group") {
		return pick(t, "group", "h", "")
	}
	return "g"
}

func pickInstance(t *rapid.T) *string {
	i, j := "i", "j"
	return pick(t, "instance", nil, nil, &i, &j)
}

func pickTopics(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"t", "u", "v", ""}), 0, 4).Draw(t, "topics")
}

func (w *world) pickMember(t *rapid.T) string { return pick(t, "member", w.ids...) }

// pickIdentity returns a member that is one, most of the time, with its
// generation.
func (w *world) pickIdentity(t *rapid.T, id string) (member string, instance *string, generation int32) {
	g := w.shard.classic(id)
	if g == nil || g.Members.Len() == 0 || rarely(t, "stranger") {
		return w.pickMember(t), pickInstance(t), pick(t, "generation", int32(-1), 0, 1, 2)
	}
	m := g.Members.Get(pick(t, "of the group", memberIDs(g)...))
	return m.ID, m.Instance, g.Generation
}

// form brings a group as far as it gets when everybody does what is expected:
// members that have not joined do, and all sync.
func (w *world) form(t *rapid.T) {
	for range 4 {
		g := w.shard.classic("g")
		switch {
		case g == nil || g.State == classic.Empty && len(g.Pending) == 0:
			w.sendJoin(t, &kmsg.JoinGroupRequest{Version: 3, Group: "g"})
			w.sendJoin(t, &kmsg.JoinGroupRequest{Version: 5, Group: "g", InstanceID: pickInstance(t)})
		case g.State == classic.Stable:
			return
		case g.State == classic.CompletingRebalance:
			for _, id := range memberIDs(g) {
				w.sendSync(t, &kmsg.SyncGroupRequest{Version: 4, Group: "g", MemberID: id, Generation: g.Generation})
			}
			return
		}
		for _, id := range w.absent("g") {
			w.sendJoin(t, &kmsg.JoinGroupRequest{Version: 4, Group: "g", MemberID: id})
		}
		w.pass(t, 3*time.Second)
	}
}

// absent lists who is expected to join.
func (w *world) absent(id string) (ids []string) {
	g := w.shard.classic(id)
	if g == nil || g.State == classic.CompletingRebalance || g.State == classic.Stable {
		return nil
	}
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Join == 0 {
			ids = append(ids, m.ID)
		}
	}
	return append(ids, slices.Collect(g.PendingIDs())...)
}

func memberIDs(g *classic.Group) (ids []string) {
	for m := g.Members.First; m != nil; m = m.Next {
		ids = append(ids, m.ID)
	}
	return ids
}

func (w *world) join(t *rapid.T) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = pick(t, "version", int16(9), 9, 9, 8, 5, 4, 3, 0)
	req.Group, req.InstanceID = pickGroup(t), pickInstance(t)
	if rarely(t, "with a member id") {
		req.MemberID = w.pickMember(t)
	}
	w.sendJoin(t, req)
}

// restart lets a static member come back without its member id.
func (w *world) restart(t *rapid.T) {
	g := w.shard.classic("g")
	var instances []string
	if g != nil {
		for m := g.Members.First; m != nil; m = m.Next {
			if m.Instance != nil {
				instances = append(instances, *m.Instance)
			}
		}
	}
	if len(instances) == 0 {
		t.Skip("no static member")
	}
	instance := pick(t, "instance", instances...)
	w.sendJoin(t, &kmsg.JoinGroupRequest{Version: pick(t, "version", int16(9), 8), Group: "g", InstanceID: &instance})
}

// rejoin lets a member that is one, or is pending, join again.
func (w *world) rejoin(t *rapid.T) {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version = pick(t, "version", int16(9), 8, 5, 4)
	req.Group = pickGroup(t)
	g := w.shard.classic(req.Group)
	if g == nil {
		t.Skip("no such group")
	}
	ids := append(memberIDs(g), slices.Collect(g.PendingIDs())...)
	if len(ids) == 0 {
		t.Skip("nobody to join again")
	}
	req.MemberID = pick(t, "member", ids...)
	if m := g.Members.Get(req.MemberID); m != nil {
		req.InstanceID = m.Instance
	}
	w.sendJoin(t, req)
}

func (w *world) sendJoin(t *rapid.T, req *kmsg.JoinGroupRequest) {
	req.ProtocolType = "consumer"
	names := pick(t, "protocols", []string{"range", "sticky"}, []string{"sticky", "range"}, []string{"range"}, []string{"range", "range"})
	if rarely(t, "another kind") {
		req.ProtocolType = pick(t, "type", "connect", "")
		names = pick(t, "odd protocols", []string{"sticky"}, []string{"odd"}, nil)
	}
	for _, name := range names {
		req.Protocols = append(req.Protocols, kmsg.JoinGroupRequestProtocol{Name: name, Metadata: subscriptionOf(pick(t, "metadata", "t", "t", "t", "t+u", "raw:?"))})
	}
	req.SessionTimeoutMillis = pick(t, "session", int32(10_000), 6_000, 60_000, 1_800_000)
	if rarely(t, "odd session") {
		req.SessionTimeoutMillis = 1
	}
	req.RebalanceTimeoutMillis = pick(t, "rebalance", int32(60_000), 5_000, 600_000, 0)
	w.request(t, req)
}

func (w *world) sync(t *rapid.T) {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Version, req.Group = pick(t, "version", int16(5), 4, 0), pickGroup(t)
	req.MemberID, req.InstanceID, req.Generation = w.pickIdentity(t, req.Group)
	w.sendSync(t, req)
}

func (w *world) sendSync(t *rapid.T, req *kmsg.SyncGroupRequest) {
	if g := w.shard.classic(req.Group); g != nil {
		req.ProtocolType, req.Protocol = &g.ProtocolType, &g.Protocol
		for i, id := range append(memberIDs(g), "ghost") {
			req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: assignmentOf([]string{"t:0+1", "u:2", ""}[i%3])})
		}
	}
	w.request(t, req)
}

func (w *world) heartbeat(t *rapid.T) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group = 4, pickGroup(t)
	req.MemberID, req.InstanceID, req.Generation = w.pickIdentity(t, req.Group)
	w.request(t, req)
}

func (w *world) leave(t *rapid.T) {
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = pick(t, "version", int16(5), 3, 1), pickGroup(t)
	req.MemberID, _, _ = w.pickIdentity(t, req.Group)
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		m := kmsg.NewLeaveGroupRequestMember()
		m.MemberID, m.InstanceID, _ = w.pickIdentity(t, req.Group)
		req.Members = append(req.Members, m)
	}
	w.request(t, req)
}

func (w *world) commit(t *rapid.T) {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group = pick(t, "version", int16(9), 8, 3), pickGroup(t)
	req.MemberID, req.InstanceID, req.Generation = w.pickIdentity(t, req.Group)
	req.RetentionTimeMillis = pick(t, "retention", int64(-1), -1, 0, 60_000, 3_000_000)
	for _, topic := range pickTopics(t) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = pick(t, "partition", int32(0), 1), rapid.Int64Range(0, 9).Draw(t, "offset")
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
	}
	w.request(t, req)
}

func (w *world) reset(t *rapid.T) {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = pick(t, "version", int16(9), 8), pickGroup(t), -1
	journal.ResetAsk{Plan: pick(t, "plan", "r1", "r2"), Now: rapid.Bool().Draw(t, "now"), Force: rapid.Bool().Draw(t, "force")}.Set(&req.UnknownTags)
	for _, topic := range pickTopics(t) {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = pick(t, "partition", int32(0), 1), rapid.Int64Range(0, 9).Draw(t, "offset")
		req.Topics = append(req.Topics, kmsg.OffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.OffsetCommitRequestTopicPartition{p}})
	}
	w.request(t, req)
}

func (w *world) fetch(t *rapid.T) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable = 9, rapid.Bool().Draw(t, "stable")
	req.Groups = []kmsg.OffsetFetchRequestGroup{{Group: pickGroup(t)}, {Group: "h"}}
	for _, topic := range pickTopics(t) {
		req.Groups[0].Topics = append(req.Groups[0].Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: topic, Partitions: []int32{0, 1}})
	}
	w.request(t, req)
}

func (w *world) deleteOffsets(t *rapid.T) {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = pickGroup(t)
	for _, topic := range pickTopics(t) {
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: 0}}})
	}
	w.request(t, req)
}

func (w *world) deleteGroups(t *rapid.T) {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, rapid.SliceOfN(rapid.SampledFrom([]string{"g", "h", "", "nobody"}), 0, 3).Draw(t, "groups")
	w.request(t, req)
}

func (w *world) describe(t *rapid.T) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = pick(t, "version", int16(6), 5, 0), []string{"g", "h", "", "nobody"}
	w.request(t, req)
	list := kmsg.NewPtrListGroupsRequest()
	list.Version = 5
	w.request(t, list)
}

// topicsChanged deletes topics, creates some, and some again under the same name.
func (w *world) topicsChanged(t *rapid.T) {
	topics := pickTopics(t)
	for _, topic := range topics {
		w.ids16++
		if w.topics[topic] != 0 && pick(t, "gone", true, false) {
			delete(w.topics, topic)
		} else {
			w.topics[topic] = w.ids16
		}
	}
	w.image = withTransactions(imageOf(w.topics))
	w.step(t, machine.TopicsChanged{Topics: topics, Gone: topics})
}

func (w *world) configure(t *rapid.T) {
	w.cfg.MaxSize = pick(t, "max size", 1<<31-1, 1<<31-1, 3, 2, 1)
	w.step(t, Configured{Config: w.cfg})
}

func (w *world) wait(t *rapid.T) {
	w.pass(t, pick(t, "time", time.Second, 3*time.Second, 5*time.Second, 20*time.Second))
	if rarely(t, "long") {
		w.pass(t, pick(t, "long time", time.Minute, 6*time.Minute, time.Hour))
	}
}

// staleTimer fires a timer that was replaced, cancelled or has fired: nothing
// may come of it.
func (w *world) staleTimer(t *rapid.T) {
	old := slices.DeleteFunc(slices.Clone(w.stale), func(tm machine.Timer) bool { return tm.Key.Kind == kind.TimerSweep })
	if len(old) == 0 {
		t.Skip("no stale timer")
	}
	tm := pick(t, "timer", old...)
	if fx := w.step(t, machine.TimerFired{Key: tm.Key, Seq: tm.Seq}); len(fx.Batches)+len(fx.Replies)+len(fx.Timers)+len(fx.Notes) > 0 {
		t.Fatalf("a stale timer %v has effects: %+v", tm, fx)
	}
}

func (w *world) crash(t *rapid.T) { w.crashAnd(t, w.load) }

// crashAnd is the end of the broker. The log may be compacted before it is loaded.
func (w *world) crashAnd(t *rapid.T, load func(*rapid.T)) {
	if !rarely(t, "crash") {
		t.Skip("not now")
	}
	if rapid.Bool().Draw(t, "compacted") {
		w.log = compacted(w.log, rapid.IntRange(0, len(w.log)).Draw(t, "up to"), rapid.Bool().Draw(t, "with tombstones"))
	}
	load(t)
}

// appendFails takes the records of the last step back, and with them the shard.
func (w *world) appendFails(t *rapid.T) {
	if w.last == 0 || w.last > len(w.log) {
		t.Skip("nothing to fail")
	}
	w.log, w.last = w.log[:len(w.log)-w.last], 0
	w.load(t)
}
