package group

import "muster/internal/journal"

func (m *member) who() journal.Who {
	w := journal.Who{Member: m.id, ClientID: m.clientID, Host: plainHost(m.host)}
	if m.instance != nil {
		w.Instance = *m.instance
	}
	return w
}

func (p *pending) absent(id string) journal.Absent {
	return journal.Absent{Who: journal.Who{Member: id, ClientID: p.clientID, Host: p.host}, Pending: true}
}

func trigger(kind journal.TriggerKind, m *member, reason *string) journal.Trigger {
	t := journal.Trigger{Kind: kind, Who: m.who()}
	if reason != nil {
		t.Reason = firstCharacters(*reason, maxReason)
	}
	return t
}

// atClassic is where a member of a classic group is. Who has joined again has let go of what
// it had, and who has not synced does not know what it has.
func (g *classicGroup) atClassic(x *step, m *member) []journal.Position {
	works := g.state == Stable || g.state == PreparingRebalance && g.previous == Stable && m.join == 0
	if !works || m.unsynced || g.protocolType != consumerType {
		return nil
	}
	w := whereabouts{b: &g.base}
	eachAssigned(m.assigned, func(tp topicPartition) { w.add(tp.topic, tp.partition) })
	return x.tellAt(&w)
}
