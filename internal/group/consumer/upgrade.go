package consumer

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/migration"
)

// A classic group whose members are consumers becomes a consumer group when someone of
// the consumer protocol joins it, without anybody having to stop: its members stay, with
// what they were assigned last, and go on with the classic protocol among the others
// (see classic.go). The group's epoch is its generation.

// upgraded is the consumer group that a classic one becomes, or why it cannot.
func upgraded(x *kind.Step, g *classic.Group, p *place) (*Group, *modern.Refusal) {
	cannot := func(reason string) *modern.Refusal {
		return modern.Refused(kerr.GroupIDNotFound, "Cannot upgrade classic group "+g.ID+" to consumer group because "+reason+".")
	}
	cfg := &x.Cfg.Consumer
	what := migration.Group{ProtocolType: g.ProtocolType, Members: g.Members.Len(), Policy: cfg.Migration, MaxSize: cfg.MaxSize}
	if list := migration.OfGroup(what); len(list) > 0 {
		return nil, cannot(list[0].Reason)
	}
	if reason := g.RefusedBefore(x); reason != "" {
		return nil, cannot(reason)
	}
	members := g.Migrants()
	if list := classic.UpgradeObstacles(what, members); len(list) > 0 {
		g.Refusal = g.RefusedFor(list[0])
		return nil, cannot(list[0].Reason)
	}
	if p.upgrade = upgradeRecords(x, g, members); !fitsUpgraded(x, g, p.upgrade) {
		now := g.LargeNow(x)
		g.Refusal = &classic.NoUpgrade{Reason: "what is to be stored of it does not fit into one record batch", Large: &now}
		return nil, cannot(g.Refusal.Reason)
	}
	preview := New(kind.Base{ID: g.ID})
	for _, r := range p.upgrade {
		if r, ok := r.(schema.Record); ok && r.Kind() == schema.Consumer {
			preview.Replay(r)
		}
	}
	return preview, nil
}

// upgradeRecords is what it takes, in the order in which Kafka writes it. That the
// target was made at no known time has the next one made at once.
func upgradeRecords(x *kind.Step, g *classic.Group, members []classic.Migrant) []machine.Record {
	epoch := max(g.Generation, modern.FirstEpoch) // There is none yet in its first join phase.
	out := g.UnsettledTombstones()
	if g.Hard != nil {
		out = append(out, &schema.GroupRecord{Group: g.ID})
	}
	targets := make([][]Partition, len(members))
	for i := range members {
		out = append(out, &schema.ConsumerMemberRecord{Group: g.ID, Member: members[i].ID, Value: asConsumer(g.Members.Get(members[i].ID), members[i].Subscription)})
		var list []subscription.TopicPartition
		subscription.EachAssigned(members[i].Assignment, func(tp subscription.TopicPartition) { list = append(list, tp) })
		targets[i] = modern.PartitionsNamed(x.Image, list)
	}
	out = append(out, &schema.ConsumerEpochRecord{Group: g.ID, Value: &schema.ConsumerEpoch{Epoch: epoch}})
	for i := range members {
		out = append(out, TargetRecord(g.ID, members[i].ID, targets[i]))
	}
	out = append(out, &schema.ConsumerTargetEpochRecord{Group: g.ID, Value: &schema.ConsumerTargetEpoch{Epoch: epoch}})
	for i := range members {
		now := Current{Epoch: epoch, Previous: epoch}
		for _, p := range targets[i] {
			now.Assigned = append(now.Assigned, Held{Part: p, Since: epoch})
		}
		out = append(out, CurrentRecord(g.ID, members[i].ID, &now))
	}
	return out
}

// asConsumer is what a member of a classic group says of itself in a consumer group.
func asConsumer(m *classic.Member, said []byte) *schema.ConsumerMember {
	w, _ := subscription.Read(said) // It was read before.
	v := &schema.ConsumerMember{
		Instance: m.Instance, Rack: w.Rack, ClientID: m.ClientID, Host: m.Host, Topics: sortedNames(w.Topics),
		RebalanceTimeoutMillis: int32(m.Rebalance / time.Millisecond),
		Classic:                &schema.ClassicMember{SessionTimeoutMillis: int32(m.Session / time.Millisecond)},
	}
	for _, p := range m.Protocols {
		v.Classic.Protocols = append(v.Classic.Protocols, schema.ClassicProtocol{Name: p.Name, Metadata: p.Metadata})
	}
	return v
}

// upgrade makes a consumer group of a classic one, and says where in it the place is.
// That is one batch: were only its beginning stored, some members would have lost what
// they have, and would not know.
func upgrade(x *kind.Step, old *classic.Group, p place, by *journal.Who) place {
	leaps, silent := old.FirstAfterLoad, old.SilentMembers()
	parked := endClassic(x, old, p)
	x.WriteWhole(p.upgrade)
	g := x.Groups[old.ID].(*Group)
	g.FirstAfterLoad = leaps
	for _, mem := range g.Members {
		mem.Silent = silent[mem.ID]
		mem.Wait(x, &g.Base, g.Session(x, mem), g.Session(x, mem))
	}
	for _, j := range parked {
		g.answerParkedJoin(x, j)
	}
	g.NoteUpgraded(x, by, g.Present)
	again := func(mem *Member) *Member {
		if mem == nil {
			return nil
		}
		return g.Member(mem.ID)
	}
	return place{Place: modern.Place[*Member]{Known: again(p.Known), Replaces: again(p.Replaces)}}
}

// parkedJoin is a JoinGroup that waits for the end of a join phase.
type parkedJoin struct {
	id      machine.RequestID
	version int16
	member  string
}

// endClassic ends a classic group that goes on as a consumer group, and nothing is left of
// it. Who waits to join has joined the consumer group, unless its place is taken with the
// upgrade; who waits for its assignment is told to join again, which it then does there.
func endClassic(x *kind.Step, g *classic.Group, p place) (parked []parkedJoin) {
	g.EndReset(x)
	for m := g.Members.First; m != nil; m = m.Next {
		switch {
		case m.Join != 0 && p.takes(m.ID):
			classic.ReplyJoinError(x, m.Join, m.JoinVersion, m.ID, kerr.RebalanceInProgress)
		case m.Join != 0:
			parked = append(parked, parkedJoin{m.Join, m.JoinVersion, m.ID})
		}
		if m.Sync != 0 {
			classic.ReplySyncError(x, m.Sync, m.SyncVersion, kerr.RebalanceInProgress)
		}
		x.Cancel(classic.SessionKey(g, m.ID))
	}
	for id := range g.PendingIDs() {
		g.ForgetPending(x, id)
	}
	if g.JoinSeq != 0 {
		x.Cancel(classic.JoinKey(g))
	}
	g.CancelSync(x)
	g.State = classic.Dead
	return parked
}

// takes says whether a heartbeat takes the place of a member of the classic protocol.
func (p place) takes(id string) bool {
	return p.Known != nil && p.Known.ID == id || p.Replaces != nil && p.Replaces.ID == id
}

// answerParkedJoin answers a join that waited when the group was upgraded: its member is in the
// epoch that is the generation, with what it had. That the newcomer is a reason for another
// target it learns with SyncGroup. Kafka says REBALANCE_IN_PROGRESS to the join, and there
// are clients that let go of everything then.
func (g *Group) answerParkedJoin(x *kind.Step, j parkedJoin) {
	mem := g.Member(j.member)
	mem.SyncSeq = x.Arm(mem.Timer(kind.TimerSync, g.ID), x.Now.Add(mem.rebalanceTimeout()))
	replyJoin(x, j.id, j.version, mem.ID, mem.Now().Epoch, firstProtocol(mem.Metadata.Classic).Name)
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
func fitsUpgraded(x *kind.Step, g *classic.Group, records []machine.Record) bool {
	if x.MaxBatch > 0 && (&machine.Batch{Records: records, Whole: true}).Size() > x.MaxBatch {
		return false
	}
	return !slices.ContainsFunc(records, func(r machine.Record) bool {
		t, ok := r.(*schema.ConsumerTargetRecord)
		return ok && !fitsHeld(x, g.ID, t.Member, modern.PartitionsOf(t.Value.Assigned))
	})
}
