package group

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/group/classic"
	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// TestAnySequenceOfBothProtocolsKeepsTheInvariants is the same with clients of the classic
// protocol that join the same group, and policies that change: the group goes over from
// one protocol to the other again and again.
func TestAnySequenceOfBothProtocolsKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newConsumers(t)
		i := "i"
		for _, c := range []*classicClient{{name: "x"}, {name: "y", coop: true}, {name: "z", instance: &i}} {
			c.has, c.topics = map[consumer.Partition]bool{}, []string{"t"}
			w.classics = append(w.classics, c)
		}
		t.Repeat(map[string]func(*rapid.T){
			"beat": w.beat, "beat again": w.beat, "all beat": w.allBeat, "join": w.join, "leave": w.leave, "subscribe": w.subscribe,
			"commit": w.commit, "task": w.task, "wait": w.wait, "topics": w.changeTopics,
			"stale timer": w.staleTimer, "configure": w.configure, "migration": w.migration, "crash": w.crash, "torn": w.tear, "delete": w.deleteGroup,
			"act": w.classicActs, "act again": w.classicActs, "act once more": w.classicActs, "all act": w.allAct,
			"classic leaves": w.classicLeaves, "classic restarts": w.classicRestarts,
		})
		w.settle(t)
		w.calm(t)
	})
}

// classicClient is a client of the classic protocol as it sees itself.
type classicClient struct {
	name     string
	id       string // "" if it was not told one
	instance *string
	topics   []string
	coop     bool // it keeps what it has while it joins, and says so
	phase    phase
	gen      int32
	leads    []string // whom it is to assign to
	has      map[consumer.Partition]bool
	flight   machine.RequestID
	loses    bool
}

type phase int

const (
	phaseOut phase = iota
	phaseJoins
	phaseSyncs
	phaseMember
)

func (c *classicClient) forget(next phase) {
	c.id, c.gen, c.leads, c.phase, c.flight = "", 0, nil, next, 0
	clear(c.has)
}

func (w *consumers) pickClassic(t *rapid.T, fits func(*classicClient) bool) *classicClient {
	list := slices.DeleteFunc(slices.Clone(w.classics), func(c *classicClient) bool { return !fits(c) })
	if len(list) == 0 {
		t.Skip("no such client")
	}
	return pick(t, "classic client", list...)
}

func (w *consumers) classicActs(t *rapid.T) {
	c := w.pickClassic(t, func(c *classicClient) bool { return c.flight == 0 })
	if c.phase == phaseOut {
		c.phase = phaseJoins
		c.topics = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"t", "u", "v"}), 0, 3, rapid.ID[string]).Draw(t, "topics")
	}
	c.loses = rarely(t, "the answer is lost")
	w.act(t, c, pick(t, "version", int16(9), 9, 3))
}

// allAct has all of them do what is next until they are members, and then send a
// heartbeat.
func (w *consumers) allAct(t *rapid.T) {
	for _, c := range w.classics {
		for range 4 {
			if c.phase == phaseOut || c.flight != 0 {
				break
			}
			done := c.phase == phaseMember
			if w.act(t, c, 9); done {
				break
			}
		}
	}
}

// act has a client do what is next.
func (w *consumers) act(t *rapid.T, c *classicClient, version int16) {
	var req kmsg.Request
	switch c.phase {
	case phaseJoins:
		req = w.classicJoin(c, version)
	case phaseSyncs:
		m := kmsg.NewPtrSyncGroupRequest()
		m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = 5, "g", c.id, c.instance, c.gen
		m.GroupAssignment = w.deal(c)
		req = m
	case phaseMember:
		m := kmsg.NewPtrHeartbeatRequest()
		m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = 4, "g", c.id, c.instance, c.gen
		req = m
	default:
		return
	}
	c.flight = w.request(t, req)
	w.send(t, c.flight)
}

// classicJoin is a JoinGroup. Who is not cooperative has let go of everything before, and
// so has who is no member any more: it would have been told.
func (w *consumers) classicJoin(c *classicClient, version int16) kmsg.Request {
	g, mixed := w.shard.classic("g"), w.shard.consumer("g")
	if !c.coop || (g == nil || g.Members.Get(c.id) == nil) && (mixed == nil || mixed.Member(c.id) == nil) {
		clear(c.has)
	}
	sub := kmsg.NewConsumerMemberMetadata()
	sub.Version, sub.Topics = 1, c.topics
	for _, p := range slices.SortedFunc(maps.Keys(c.has), modern.Compare[consumer.Partition]) {
		if t := w.image.TopicByID(p.Topic); t != nil {
			sub.OwnedPartitions = append(sub.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: t.Name, Partitions: []int32{p.Number}})
		}
	}
	m := kmsg.NewPtrJoinGroupRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.ProtocolType = version, "g", c.id, c.instance, subscription.ConsumerType
	if version < 5 {
		m.InstanceID = nil
	}
	m.SessionTimeoutMillis, m.RebalanceTimeoutMillis = 10_000, 30_000
	m.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: sub.AppendTo(nil)}}
	return m
}

// deal assigns all partitions that there are, so that whoever works on one keeps it.
func (w *consumers) deal(c *classicClient) (out []kmsg.SyncGroupRequestGroupAssignment) {
	given := map[string]*kmsg.ConsumerMemberAssignment{}
	for _, id := range c.leads {
		given[id] = &kmsg.ConsumerMemberAssignment{}
	}
	n := 0
	for _, t := range w.image.Topics() {
		for i := range t.Partitions {
			p := consumer.Partition{Topic: t.ID, Number: int32(i)}
			id := ""
			for _, other := range w.classics {
				if other.has[p] && slices.Contains(c.leads, other.id) {
					id = other.id
				}
			}
			if n++; id == "" && len(c.leads) > 0 {
				id = c.leads[n%len(c.leads)]
			}
			if a := given[id]; a != nil {
				a.Topics = append(a.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: t.Name, Partitions: []int32{p.Number}})
			}
		}
	}
	for _, id := range c.leads {
		out = append(out, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: given[id].AppendTo(nil)})
	}
	return out
}

// hearClassic does what a client does with an answer.
func (w *consumers) hearClassic(c *classicClient, resp kmsg.Response) {
	c.flight = 0
	if c.loses {
		c.phase, c.loses = phaseJoins, false
		return
	}
	var code int16
	switch m := resp.(type) {
	case *kmsg.JoinGroupResponse:
		if code = m.ErrorCode; code == kerr.MemberIDRequired.Code {
			c.id = m.MemberID
			return
		}
		if code == 0 {
			c.id, c.gen, c.phase, c.leads = m.MemberID, m.Generation, phaseSyncs, nil
			for _, e := range m.Members {
				c.leads = append(c.leads, e.MemberID)
			}
		}
	case *kmsg.SyncGroupResponse:
		if code = m.ErrorCode; code == 0 {
			before := maps.Clone(c.has)
			clear(c.has)
			c.phase = phaseMember
			subscription.EachAssigned(m.MemberAssignment, func(tp subscription.TopicPartition) {
				if t := w.image.Topic(tp.Topic); t != nil {
					c.has[consumer.Partition{Topic: t.ID, Number: tp.Partition}] = true
				}
			})
			for p := range before {
				if !c.has[p] { // It lets go, and says so.
					c.phase = phaseJoins
				}
			}
		}
	case *kmsg.HeartbeatResponse:
		code = m.ErrorCode
	}
	switch code {
	case 0:
	case kerr.RebalanceInProgress.Code:
		c.phase = phaseJoins
	case kerr.IllegalGeneration.Code:
		clear(c.has)
		c.phase = phaseJoins
	case kerr.UnknownMemberID.Code:
		c.forget(phaseJoins)
	default:
		c.forget(phaseOut)
	}
}

func (w *consumers) classicLeaves(t *rapid.T) {
	c := w.pickClassic(t, func(c *classicClient) bool { return c.id != "" })
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 5, "g"
	req.Members = []kmsg.LeaveGroupRequestMember{{MemberID: c.id, InstanceID: c.instance}}
	if rarely(t, "takes others along") {
		for _, other := range w.clients {
			req.Members = append(req.Members, kmsg.LeaveGroupRequestMember{MemberID: other.id})
		}
	}
	c.forget(phaseOut)
	w.send(t, w.request(t, req))
}

func (w *consumers) classicRestarts(t *rapid.T) {
	c := w.pickClassic(t, func(c *classicClient) bool { return c.phase != phaseOut })
	c.forget(phaseJoins)
}

func (w *consumers) migration(t *rapid.T) {
	w.cfg.Consumer.Migration = pick(t, "migration", kind.MigrateBoth, kind.MigrateBoth, kind.MigrateBoth, kind.MigrateUpgrade, kind.MigrateDowngrade, kind.MigrateNever)
	w.cfg.MaxSize = pick(t, "classic max size", 1<<31-1, 1<<31-1, 2)
	w.step(t, Configured{Config: w.cfg})
}

// checkClassic counts what a classic group waits for.
func (w *consumers) checkClassic(t *rapid.T, g *classic.Group) (parked, timers int) {
	for m := g.Members.First; m != nil; m = m.Next {
		for _, waits := range []machine.RequestID{m.Join, m.Sync} {
			if waits != 0 {
				parked++
			}
		}
		timers += w.armed(t, classic.SessionKey(g, m.ID), m.TimerSeq)
	}
	for p := range g.PendingIDs() {
		timers += w.armed(t, classic.SessionKey(g, p), g.Pending[p].Seq)
	}
	return parked, timers + w.armed(t, classic.JoinKey(g), g.JoinSeq) + w.armed(t, classic.SyncKey(g), g.SyncSeq)
}

// checkClassics says whether a client of the classic protocol works on what is another's.
func (w *consumers) checkClassics(t *rapid.T, c *consumer.Group, works map[consumer.Partition]string) {
	for _, cl := range w.classics {
		if m := c.Member(cl.id); m == nil || m.Current == nil || m.Now().Epoch == modern.EpochLeaveStatic {
			continue
		}
		for p := range cl.has {
			if w.image.TopicByID(p.Topic) == nil {
				continue
			}
			if other, ok := works[p]; ok {
				t.Fatalf("%s and %s both work on partition %d of %x", cl.name, other, p.Number, p.Topic)
			}
			works[p] = cl.name
			if c.Owners[p] == nil || c.Owners[p].ID != cl.id {
				t.Fatalf("%s works on partition %d of %x, and the coordinator does not know", cl.name, p.Number, p.Topic)
			}
		}
	}
}

// checkOffsets says whether offsets were lost, though no one had any removed.
func (w *consumers) checkOffsets(t *rapid.T, e machine.Event, before any) {
	switch e := e.(type) {
	case machine.Request:
		switch e.Msg.(type) {
		case *kmsg.ConsumerGroupHeartbeatRequest, *kmsg.JoinGroupRequest, *kmsg.SyncGroupRequest, *kmsg.LeaveGroupRequest, *kmsg.HeartbeatRequest:
		default:
			return
		}
	case machine.TimerFired:
		if e.Key.Kind == kind.TimerSweep {
			return
		}
	default:
		return
	}
	if after := w.shard.committedOffsets(); !reflect.DeepEqual(before, any(after)) {
		t.Fatalf("%+v has changed the offsets from %v to %v", e, before, after)
	}
}

// settleClassics says whether a group that is left alone has settled.
func (w *consumers) settleClassics(t *rapid.T) {
	if g := w.shard.classic("g"); g != nil && g.State != classic.Stable && g.State != classic.Empty {
		t.Fatalf("nothing has happened for long, and the group is %s", g.State)
	}
	if w.shard.consumer("g") == nil {
		return
	}
	for _, c := range w.classics {
		if c.phase != phaseOut {
			if w.act(t, c, 9); c.phase != phaseMember || w.records > 0 {
				t.Fatalf("a heartbeat of %s in a stable group has %d records, and leaves it in phase %d", c.name, w.records, c.phase)
			}
		}
	}
}
