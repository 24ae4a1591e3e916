package group

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
)

func (g *classicGroup) pendingIDs() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(g.pending)))
}

func (g *classicGroup) check() error {
	joined, unsynced, listed, static, bytes := 0, 0, 0, 0, int64(0)
	for _, id := range slices.Sorted(maps.Keys(g.pending)) {
		bytes += pendingBytes(id)
	}
	var supported map[string]int
	for m := g.members.first; m != nil; m = m.next {
		listed++
		if err := g.checkMember(m); err != nil {
			return fmt.Errorf("member %q: %w", m.id, err)
		}
		bytes += int64(m.fixed + protocolBytes(m.protocols))
		if m.join != 0 {
			joined++
		}
		if m.unsynced {
			unsynced++
		}
		if m.instance != nil {
			static++
		}
		if supported == nil {
			supported = map[string]int{}
		}
		for _, p := range m.protocols {
			supported[p.name]++
		}
	}
	switch {
	case listed != g.members.len():
		return fmt.Errorf("%d members listed, %d known", listed, g.members.len())
	case g.members.byID != nil && (len(g.members.byID) != listed || len(g.members.byInstance) != static):
		return fmt.Errorf("%d members listed, %d of them static; found are %d and %d", listed, static, len(g.members.byID), len(g.members.byInstance))
	case bytes != g.bytes:
		return fmt.Errorf("members hold %d bytes, counted are %d", bytes, g.bytes)
	case joined != int(g.joined):
		return fmt.Errorf("%d members are parked in JoinGroup, counted are %d", joined, g.joined)
	case unsynced != int(g.unsynced):
		return fmt.Errorf("%d members have not synced, counted are %d", unsynced, g.unsynced)
	case !g.supported.are(supported):
		return fmt.Errorf("protocols %v, counted are %v", supported, g.supported)
	case g.changed:
		return fmt.Errorf("what a successor must know is not written")
	}
	return g.checkState()
}

func (g *classicGroup) checkMember(m *member) error {
	switch {
	case g.members.get(m.id) != m:
		return fmt.Errorf("listed under another id")
	case m.instance != nil && g.members.static(*m.instance) != m:
		return fmt.Errorf("instance id %q is another member's", *m.instance)
	case g.pending[m.id] != nil:
		return fmt.Errorf("both pending and a member")
	case m.join != 0 && g.state != PreparingRebalance:
		return fmt.Errorf("parked in JoinGroup")
	case m.sync != 0 && g.state != CompletingRebalance:
		return fmt.Errorf("parked in SyncGroup")
	case m.timerSeq == 0 || m.timerAt.After(m.deadline):
		return fmt.Errorf("no timer before its deadline")
	case m.isNew && g.state != PreparingRebalance:
		return fmt.Errorf("new outside of a join phase")
	}
	return nil
}

func (g *classicGroup) checkState() error {
	leader := g.members.get(g.leader)
	switch {
	case g.state == Dead:
		return fmt.Errorf("dead but listed")
	case g.state == Empty && g.members.len() > 0:
		return fmt.Errorf("empty with %d members", g.members.len())
	case g.members.len() > 0 && leader == nil:
		return fmt.Errorf("leader %q is not a member", g.leader)
	case g.state == PreparingRebalance && g.joinSeq == 0:
		return fmt.Errorf("waits for joins without a timer")
	case g.state == PreparingRebalance && g.previous != Empty && g.allJoined():
		return fmt.Errorf("waits for joins though everybody is there")
	case g.state == CompletingRebalance && g.syncSeq == 0:
		return fmt.Errorf("waits for the leader without a timer")
	case (g.state == CompletingRebalance || g.state == Stable) && (g.members.len() == 0 || g.supported.of(g.protocol) != g.members.len()):
		return fmt.Errorf("protocol %q is not everybody's", g.protocol)
	case (g.state == PreparingRebalance || g.state == CompletingRebalance) && g.rebalance == nil:
		return fmt.Errorf("rebalances without an account of it")
	}
	return g.checkRecord()
}

// checkRecord compares the soft state with what the record says.
func (g *classicGroup) checkRecord() error {
	switch {
	case g.hard == nil && (g.state != Empty || len(g.pending) > 0):
		return fmt.Errorf("alive without a record")
	case (g.state == Stable || g.state == Empty) && (g.rebalancing != nil || g.departed != nil):
		return fmt.Errorf("settled, but a record says that it rebalances")
	case (g.state == PreparingRebalance || g.state == CompletingRebalance) && len(g.hard.Members) > 0 && !g.isUnsettled():
		return fmt.Errorf("rebalances, and no record says so")
	case g.state == Stable && !g.isStored():
		return fmt.Errorf("stable, but the record says otherwise")
	case g.unsynced > 0 && (g.syncSeq == 0 || g.state != CompletingRebalance && g.state != Stable):
		return fmt.Errorf("%d members have not synced, and no timer waits for them", g.unsynced)
	}
	return nil
}

// isStored says whether the record has this generation, with these members and
// what they are assigned.
func (g *classicGroup) isStored() bool {
	m := g.members.first
	for i := range g.hard.Members {
		e := &g.hard.Members[i]
		if m == nil || m.id != e.MemberID || !bytes.Equal(m.assigned, e.Assignment) {
			return false
		}
		m = m.next
	}
	return m == nil && g.hard.Generation == g.generation
}
