package classic

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// fence says whether the journal is to tell of a member id: once, however often
// it beats, and not of ever new ones that someone makes up.
func (m *Member) fence(id string) bool {
	if m.fenced == nil {
		m.fenced = &kind.Fencing{}
	}
	return m.fenced.IsNew(id)
}

// lookup is find for a request: one of a static
// member whose place was taken is told of in the journal: the process behind it
// still runs.
func (g *Group) lookup(x *kind.Step, r *machine.Request, memberID string, instance *string) (*Member, *kerr.Error) {
	mem, err := g.find(memberID, instance)
	if err == kerr.FencedInstanceID {
		stale := journal.Who{Member: memberID, ClientID: r.ClientID, Host: r.Host, Instance: *instance}
		g.fenced(x, journal.Trigger{Who: stale, Request: kmsg.NameForKey(r.Msg.Key())}, g.Members.static(*instance))
	}
	return mem, err
}

// fenced tells that a request of a stale static member was refused. The holder is
// who has its place.
func (g *Group) fenced(x *kind.Step, stale journal.Trigger, holder *Member) {
	if stale.Member == "" || !holder.fence(stale.Member) {
		return
	}
	by := holder.Who()
	stale.Kind, stale.By = journal.TriggerFenced, &by
	x.Note(g, journal.KindFenced, stale)
}

func (m *Member) Who() journal.Who {
	w := journal.Who{Member: m.ID, ClientID: m.ClientID, Host: kind.PlainHost(m.Host)}
	if m.Instance != nil {
		w.Instance = *m.Instance
	}
	return w
}

func (p *Pending) absent(id string) journal.Absent {
	return journal.Absent{Who: journal.Who{Member: id, ClientID: p.clientID, Host: p.host}, Pending: true}
}

func Trigger(what journal.TriggerKind, m *Member, reason *string) journal.Trigger {
	t := journal.Trigger{Kind: what, Who: m.Who()}
	if reason != nil {
		t.Reason = kind.Truncate(*reason, kind.MaxReason)
	}
	return t
}

// positions is where a member of a classic group is. Who has joined again has let go of what
// it had, and who has not synced does not know what it has.
func (g *Group) positions(x *kind.Step, m *Member) []journal.Position {
	works := g.State == Stable || g.State == PreparingRebalance && g.Previous == Stable && m.Join == 0
	if !works || m.Unsynced || g.ProtocolType != subscription.ConsumerType {
		return nil
	}
	w := kind.Positions{B: &g.Base}
	subscription.EachAssigned(m.Assigned, func(tp subscription.TopicPartition) { w.Add(tp.Topic, tp.Partition) })
	return x.TakePositions(&w)
}
