package modern

import (
	"muster/internal/group/kind"
	"muster/internal/machine"
)

// records lists all records of a group, or their tombstones, in the order in which Kafka
// removes them: where its members have got to, what they are to have, and who they are; the
// group's epoch comes last.
func (g *Group[P, M]) records(live bool) (out []machine.Record) {
	var none M
	for _, m := range g.Members {
		if mem := m.Common(); mem.Current != nil {
			out = append(out, g.own.CurrentRecord(mem.ID, only(live, mem.Current)))
		}
	}
	for _, m := range g.Members {
		if mem := m.Common(); mem.HasTarget {
			out = append(out, g.own.TargetRecord(mem.ID, only(live, &TargetOf[P]{mem.Target})))
		}
	}
	if g.HasTarget {
		out = append(out, g.own.TargetEpochRecord(only(live, &TargetEpoch{g.TargetEpoch, g.TargetAt})))
	}
	for _, m := range g.Members {
		switch {
		case hasJoined(m) && live:
			out = append(out, g.own.MemberRecord(m.Common().ID, m))
		case hasJoined(m):
			out = append(out, g.own.MemberRecord(m.Common().ID, none))
		}
	}
	for _, r := range g.own.OtherRecords(live) {
		out = append(out, r)
	}
	if g.HasEpoch {
		out = append(out, g.own.EpochRecord(only(live, &Epoch{g.Epoch, g.Hash})))
	}
	return out
}

// only is what a record says, nothing if it is a tombstone.
func only[V any](live bool, v *V) *V {
	if live {
		return v
	}
	return nil
}

// EachRecord implements kind.Group.
func (g *Group[P, M]) EachRecord(put func(machine.Record)) {
	for _, r := range g.records(true) {
		put(r)
	}
}

// Tombstones removes everything of a group but its offsets.
func (g *Group[P, M]) Tombstones() []machine.Record { return g.records(false) }

// DeleteRecords implements kind.Group.
func (g *Group[P, M]) DeleteRecords(x *kind.Step) {
	for _, r := range g.Tombstones() {
		x.Write(r)
	}
}

// removeRecords removes a member's records.
func (g *Group[P, M]) removeRecords(x *kind.Step, m M) {
	var none M
	mem := m.Common()
	if mem.Current != nil {
		x.Write(g.own.CurrentRecord(mem.ID, nil))
	}
	if mem.HasTarget {
		x.Write(g.own.TargetRecord(mem.ID, nil))
	}
	if hasJoined(m) {
		x.Write(g.own.MemberRecord(mem.ID, none))
	}
}
