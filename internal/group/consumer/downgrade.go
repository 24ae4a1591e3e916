package consumer

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// A consumer group in which no one uses the consumer protocol any more becomes a classic
// one: its members do not know that it ever was another. Its generation is the group's
// epoch, and offsets stay. Everybody is assigned what they have: Kafka takes the target,
// but what someone was yet to let go of would be another's then, should the group be
// upgraded again before all have joined. They get what they should in the rebalance; if
// there is none, it is the same.

// downgraded is the classic group that a consumer group becomes.
type downgraded struct {
	*classic.Group
	records []machine.Record // the last says that it rebalances
}

// DowngradedWithout returns the classic group that a consumer group becomes without a member,
// who may be nil for no one, or nil if it stays what it is: someone uses the consumer
// protocol, no one is left, there are too many for a classic group, or the policy says so.
// Whoever has just joined leads it, if anybody has.
func (g *Group) DowngradedWithout(x *kind.Step, gone *Member, joins string) *downgraded {
	left, classic := g.Present, g.Classic
	if gone != nil {
		if left--; gone.Metadata.Classic != nil {
			classic--
		}
	}
	if !x.Cfg.Consumer.Migration.Downgrades() || left == 0 || left != classic || left > x.Cfg.MaxSize {
		return nil
	}
	now := downgradeRefusal{changes: g.Changes, maxBatch: x.MaxBatch, image: x.Image, gone: gone}
	if g.DowngradeRefusal != nil && *g.DowngradeRefusal == now {
		return nil
	}
	to := g.asClassicGroup(x, gone, joins)
	if g.DowngradeRefusal = nil; to == nil {
		known := now
		g.DowngradeRefusal = &known
	}
	return to
}

// downgradeRefusal is with what a consumer group could not become a classic one though all its
// members are of the classic protocol: they support no protocol in common, or it is too
// large for a record. To find that out takes all that is known of all members, and they
// join again and again: until something of this is different the answer is the same.
type downgradeRefusal struct {
	changes  uint64
	maxBatch int
	image    *metadata.Image
	gone     *Member
}

// asClassicGroup makes the classic group that a consumer group becomes, nil if it cannot.
func (g *Group) asClassicGroup(x *kind.Step, gone *Member, joins string) *downgraded {
	to := classic.New(kind.Base{ID: g.ID})
	for _, mem := range g.Members {
		if mem != gone && mem.Metadata != nil {
			to.Add(mem.asClassic(), subscription.ConsumerType)
		}
	}
	if joins != "" {
		to.Leader = joins
	}
	if to.Protocol = to.Vote(); to.Protocol == "" {
		return nil
	}
	for m := to.Members.First; m != nil; m = m.Next {
		now := g.Member(m.ID).Now()
		m.Assigned = AssignmentBytes(x.Image, modern.PartsHeld(modern.Merged(now.Assigned, now.Pending)), m.Metadata(to.Protocol))
	}
	to.Generation = g.Epoch
	rebalances := &schema.Rebalance{Generation: to.Generation}
	if g.FirstAfterLoad { // The next generation must leap as the next epoch would.
		to.FirstAfterLoad, to.LoadedGeneration, rebalances.Lives = true, to.Generation, 1
	}
	to.Previous, to.State, to.Since = classic.CompletingRebalance, classic.Stable, x.Now.UnixMilli()
	out := &downgraded{to, append(g.Tombstones(), to.Record())}
	out.records = append(out.records, &schema.RebalanceRecord{Group: g.ID, Value: rebalances})
	if x.MaxBatch > 0 && (&machine.Batch{Records: out.records, Whole: true}).Size() > x.MaxBatch {
		return nil
	}
	return out
}

// asClassic is a member of the classic protocol as a classic group knows it.
func (mem *Member) asClassic() *classic.Member {
	meta := mem.Metadata
	m := &classic.Member{
		ID: mem.ID, Instance: meta.Instance, ClientID: meta.ClientID, Host: meta.Host,
		Rebalance: mem.rebalanceTimeout(), Session: time.Duration(meta.Classic.SessionTimeoutMillis) * time.Millisecond, Silent: mem.Silent,
	}
	for _, p := range meta.Classic.Protocols {
		m.Protocols = append(m.Protocols, classic.Protocol{Name: p.Name, Metadata: p.Metadata})
	}
	return m
}

// downgrade makes a classic group of a consumer group, and returns it. It is Stable; if
// it is not to be left alone, who calls has it rebalance. That it does is in the same
// batch: else it might be loaded without, and no one would get what the member had that
// is gone.
func (g *Group) downgrade(x *kind.Step, to *downgraded, quiet bool) *classic.Group {
	for _, mem := range g.Members {
		g.StopWaiting(x, mem)
	}
	g.CancelRun(x)
	if quiet {
		to.records = to.records[:len(to.records)-1]
	}
	x.WriteWhole(to.records)
	next := x.Groups[g.ID].(*classic.Group)
	next.Adopt(x, to.Group)
	return next
}

// joinDowngraded answers the member whose join was the reason. If nothing is to change
// for anybody there is no rebalance, and it gets what its predecessor was to have. It is
// told that it leads: in a consumer group no one does, and no one else would see to it that
// the group rebalances when its topics change. Versions that cannot be told to leave the
// assignment alone have a rebalance. Kafka tells no one.
func joinDowngraded(x *kind.Step, g *classic.Group, id string, r *machine.Request, m *kmsg.JoinGroupRequest, quiet bool) {
	mem := g.Members.Get(id)
	if quiet {
		resp := g.JoinResponse(mem, m.Version)
		resp.SkipAssignment = true
		x.Reply(r.ID, resp)
		return
	}
	mem.Join, mem.JoinVersion, mem.JoinedAt = r.ID, m.Version, x.Now.UnixMilli()
	g.Joined++
	g.PrepareRebalance(x, classic.Trigger(journal.TriggerReplaced, mem, m.Reason))
}
