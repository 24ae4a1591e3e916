package group

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/migration"
)

// A classic group whose members are consumers becomes a consumer group when somebody of
// the consumer protocol joins it, without anybody having to stop: its members stay, with
// what they were assigned last, and go on with the classic protocol among the others
// (see consumer_classic.go). The group's epoch is its generation.

// upgraded is the consumer group that a classic one becomes, or why it cannot.
func (g *classicGroup) upgraded(x *step, p *place) (*consumerGroup, *consumerError) {
	cannot := func(reason string) *consumerError {
		return refused(kerr.GroupIDNotFound, "Cannot upgrade classic group "+g.id+" to consumer group because "+reason+".")
	}
	cfg := &x.cfg.Consumer
	what := migration.Group{ProtocolType: g.protocolType, Members: g.members.len(), Policy: cfg.Migration, MaxSize: cfg.MaxSize}
	if list := migration.OfGroup(what); len(list) > 0 {
		return nil, cannot(list[0].Reason)
	}
	if reason := g.refusedBefore(x); reason != "" {
		return nil, cannot(reason)
	}
	members := g.migrants()
	if list := upgradeObstacles(what, members); len(list) > 0 {
		g.refusal = g.refusedFor(list[0])
		return nil, cannot(list[0].Reason)
	}
	if p.upgrade = g.upgradeRecords(x, members); !g.fitsUpgraded(x, p.upgrade) {
		now := g.largeNow(x)
		g.refusal = &noUpgrade{reason: "what is to be stored of it does not fit into one record batch", large: &now}
		return nil, cannot(g.refusal.reason)
	}
	preview := newConsumerGroup(base{id: g.id})
	for _, r := range p.upgrade {
		if r, ok := r.(schema.Record); ok && r.Kind() == schema.Consumer {
			preview.replay(r)
		}
	}
	return preview, nil
}

// upgradeRecords is what it takes, in the order in which Kafka writes it. That the
// target was made at no known time has the next one made at once.
func (g *classicGroup) upgradeRecords(x *step, members []migrant) []machine.Record {
	epoch := max(g.generation, firstEpoch) // There is none yet in its first join phase.
	out := g.unsettledTombstones()
	if g.hard != nil {
		out = append(out, &schema.GroupRecord{Group: g.id})
	}
	targets := make([][]part, len(members))
	for i := range members {
		out = append(out, &schema.ConsumerMemberRecord{Group: g.id, Member: members[i].id, Value: g.members.get(members[i].id).asConsumer(members[i].subscription)})
		var list []topicPartition
		eachAssigned(members[i].assignment, func(tp topicPartition) { list = append(list, tp) })
		targets[i] = partsNamed(x.image, list)
	}
	out = append(out, &schema.ConsumerEpochRecord{Group: g.id, Value: &schema.ConsumerEpoch{Epoch: epoch}})
	for i := range members {
		out = append(out, targetRecord(g.id, members[i].id, targets[i]))
	}
	out = append(out, &schema.ConsumerTargetEpochRecord{Group: g.id, Value: &schema.ConsumerTargetEpoch{Epoch: epoch}})
	for i := range members {
		now := consumerNow{epoch: epoch, previous: epoch}
		for _, p := range targets[i] {
			now.assigned = append(now.assigned, heldPart{p, epoch})
		}
		out = append(out, currentRecord(g.id, members[i].id, &now))
	}
	return out
}

// asConsumer is what a member of a classic group says of itself in a consumer group.
func (m *member) asConsumer(subscription []byte) *schema.ConsumerMember {
	w, _ := readWants(subscription) // It was read before.
	v := &schema.ConsumerMember{
		Instance: m.instance, Rack: w.rack, ClientID: m.clientID, Host: m.host, Topics: sortedNames(w.topics),
		RebalanceTimeoutMillis: int32(m.rebalance / time.Millisecond),
		Classic:                &schema.ClassicMember{SessionTimeoutMillis: int32(m.session / time.Millisecond)},
	}
	for _, p := range m.protocols {
		v.Classic.Protocols = append(v.Classic.Protocols, schema.ClassicProtocol{Name: p.name, Metadata: p.metadata})
	}
	return v
}

// upgrade makes a consumer group of a classic one, and says where in it the place is.
// That is one batch: were only its beginning stored, some members would have lost what
// they have, and would not know.
func (old *classicGroup) upgrade(x *step, p place, by *journal.Who) place {
	leaps, silent := old.leaps, old.silentMembers()
	parked := old.disband(x, p)
	x.writeWhole(p.upgrade)
	g := x.groups[old.id].(*consumerGroup)
	g.leaps = leaps
	for _, mem := range g.members {
		mem.silent = silent[mem.id]
		g.waitForBeat(x, mem, g.sessionOf(x, mem))
	}
	for _, j := range parked {
		g.answerParked(x, j)
	}
	g.noteUpgraded(x, by, g.present)
	again := func(mem *consumerMember) *consumerMember {
		if mem == nil {
			return nil
		}
		return g.member(mem.id)
	}
	return place{known: again(p.known), replaces: again(p.replaces)}
}

// parkedJoin is a JoinGroup that waits for the end of a join phase.
type parkedJoin struct {
	id      machine.RequestID
	version int16
	member  string
}

// disband ends a classic group that goes on as a consumer group, and nothing is left of
// it. Who waits to join has joined the consumer group, unless its place is taken with the
// upgrade; who waits for its assignment is told to join again, which it then does there.
func (g *classicGroup) disband(x *step, p place) (parked []parkedJoin) {
	for m := g.members.first; m != nil; m = m.next {
		switch {
		case m.join != 0 && p.takes(m.id):
			replyJoinError(x, m.join, m.joinVersion, m.id, kerr.RebalanceInProgress)
		case m.join != 0:
			parked = append(parked, parkedJoin{m.join, m.joinVersion, m.id})
		}
		if m.sync != 0 {
			replySyncError(x, m.sync, m.syncVersion, kerr.RebalanceInProgress)
		}
		x.cancel(sessionKey(g, m.id))
	}
	for id := range g.pendingIDs() {
		g.forgetPending(x, id)
	}
	if g.joinSeq != 0 {
		x.cancel(joinKey(g))
	}
	g.cancelSync(x)
	g.state = Dead
	return parked
}

// takes says whether a heartbeat takes the place of a member of the classic protocol.
func (p place) takes(id string) bool {
	return p.known != nil && p.known.id == id || p.replaces != nil && p.replaces.id == id
}

// answerParked answers a join that waited when the group was upgraded: its member is in the
// epoch that is the generation, with what it had. That the newcomer is a reason for another
// target it learns with SyncGroup. Kafka says REBALANCE_IN_PROGRESS to the join, and there
// are clients that let go of everything then.
func (g *consumerGroup) answerParked(x *step, j parkedJoin) {
	mem := g.member(j.member)
	mem.syncSeq = x.arm(memberTimer(TimerSync, g, mem), x.now.Add(mem.rebalanceTimeout()))
	replyJoinMixed(x, j.id, j.version, mem.id, mem.now().epoch, firstProtocol(mem.says.Classic).Name)
}

// sameClassic says whether two members of the classic protocol have said the same.
func sameClassic(c, d *schema.ClassicMember) bool {
	if c == nil || d == nil {
		return c == d
	}
	return c.SessionTimeoutMillis == d.SessionTimeoutMillis && slices.EqualFunc(c.Protocols, d.Protocols, func(p, q schema.ClassicProtocol) bool {
		return cmp.Or(strings.Compare(p.Name, q.Name), slices.Compare(p.Metadata, q.Metadata)) == 0
	})
}

// fitsUpgraded says whether a consumer group that a classic one becomes can be stored.
func (g *classicGroup) fitsUpgraded(x *step, records []machine.Record) bool {
	if x.maxBatch > 0 && (&machine.Batch{Records: records, Whole: true}).Size() > x.maxBatch {
		return false
	}
	return !slices.ContainsFunc(records, func(r machine.Record) bool {
		t, ok := r.(*schema.ConsumerTargetRecord)
		return ok && !fitsHeld(x, g.id, t.Member, partsOf(t.Value.Assigned))
	})
}
