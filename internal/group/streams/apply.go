package streams

import (
	"slices"
	"strconv"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// Replay changes the hard state of a streams group, and what follows from it. Records may come
// in any order, as those of consumer groups may.
func (g *Group) Replay(r schema.Record) {
	g.Changes++
	switch r := r.(type) {
	case *schema.StreamsEpochRecord:
		g.replayEpoch(r.Value)
	case *schema.StreamsTargetEpochRecord:
		var v schema.StreamsTargetEpoch
		if r.Value != nil {
			v = *r.Value
		}
		g.SetTarget(r.Value != nil, v.Epoch, v.Timestamp)
	case *schema.StreamsTopologyRecord:
		g.bytes -= topologyBytes(g.Topology)
		g.Topology = r.Value
		g.bytes += topologyBytes(g.Topology)
	case *schema.StreamsMemberRecord:
		g.ApplyMember(r.Member, r.Value != nil, func(m *Member) { m.Metadata = r.Value })
	case *schema.StreamsTargetRecord:
		g.ApplyTarget(r.Member, r.Value != nil, tasksOf(r.Value))
	case *schema.StreamsCurrentRecord:
		g.ApplyCurrent(r.Member, nowOf(r.Value))
	}
}

// standbysKey is the setting that Kafka keeps with the epoch.
const standbysKey = "num.standby.replicas"

func (g *Group) replayEpoch(v *schema.StreamsEpoch) {
	if v == nil {
		v = &schema.StreamsEpoch{Validated: noTopology}
		g.SetEpoch(false, 0, 0)
	} else {
		g.SetEpoch(true, v.Epoch, v.Hash)
	}
	g.Validated, g.Standbys = v.Validated, 0
	for _, c := range v.Configs {
		if n, err := strconv.Atoi(c.Value); c.Key == standbysKey && err == nil {
			g.Standbys = n
		}
	}
	g.next = found{g.Validated, g.Standbys}
}

// Count counts a member with what it says of itself in or out. One that is another process
// since holds its tasks there.
func (g *Group) Count(m *Member, n int) {
	g.bytes += int64(n) * memberBytes(m)
	if n > 0 && m.Current != nil && m.heldBy != m.process() {
		g.release(m)
		g.take(m)
	}
}

// Hold notes that a member holds tasks, or does not any more.
func (g *Group) Hold(m *Member, holds bool) {
	if holds {
		g.take(m)
	} else {
		g.release(m)
	}
	g.answers.note(m, holds)
}

// held calls back with all that a member has, or has yet to let go of.
func (m *Member) held(do func(Task)) {
	for _, list := range [][]Held{m.Current.Assigned, m.Current.Pending} {
		for i := range list {
			do(list[i].Part)
		}
	}
}

// take notes who has what. While a log is read it may seem that two have a task active: then
// that member counts which is further on.
func (g *Group) take(m *Member) {
	m.heldBy = m.process()
	m.held(func(t Task) {
		at := place{m.heldBy, t.TaskID}
		g.holders[at] = append(g.holders[at], holding{m, t.Role})
		if t.Role == Active {
			if owner := g.actives[t.TaskID]; owner == nil || owner.Now().Epoch <= m.Current.Epoch {
				g.actives[t.TaskID] = m
			}
		}
	})
}

func (g *Group) release(m *Member) {
	m.held(func(t Task) {
		at := place{m.heldBy, t.TaskID}
		left := slices.DeleteFunc(g.holders[at], func(h holding) bool { return h.by == m && h.role == t.Role })
		if g.holders[at] = left; len(left) == 0 {
			delete(g.holders, at)
		}
		if t.Role == Active && g.actives[t.TaskID] == m {
			delete(g.actives, t.TaskID)
		}
	})
}

// SettleOwners sees to it that no process has a task twice, and that each is active once. Where
// members say otherwise, which no broker should have let happen, the one that is not as far on
// is fenced.
func (g *Group) SettleOwners(x *kind.Step) {
	clear(g.actives)
	clear(g.holders)
	for _, m := range g.Members {
		if m.Current != nil {
			g.take(m)
		}
	}
	for _, m := range slices.Clone(g.Members) {
		if m.Current != nil && g.conflicts(m) {
			g.EvictConflict(x, m)
		}
	}
}

// conflicts says whether someone else has what only this member may have.
func (g *Group) conflicts(m *Member) (yes bool) {
	m.held(func(t Task) {
		if t.Role == Active && g.actives[t.TaskID] != m || len(g.holders[place{m.heldBy, t.TaskID}]) > 1 {
			yes = true
		}
	})
	return yes
}

// nowOf reads where a member has got to. Kafka counts the states of streams members from 1.
func nowOf(v *schema.StreamsCurrent) *Current {
	if v == nil {
		return nil
	}
	return &Current{
		Epoch: v.Epoch, Previous: v.Previous, State: modern.MemberState(v.State - firstState),
		Assigned: heldOf(byRole(v.Active, v.Standby, v.Warmup), v.Epoch),
		Pending:  heldOf(byRole(v.PendingActive, v.PendingStandby, v.PendingWarmup), v.Epoch),
	}
}

const firstState = 1
