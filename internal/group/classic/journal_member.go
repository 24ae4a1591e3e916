package classic

import (
	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/journal"
)

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
