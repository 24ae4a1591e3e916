package classic

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"slices"
)

func (g *Group) PendingIDs() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(g.Pending)))
}

func (g *Group) Check() error {
	joined, unsynced, listed, static, bytes := 0, 0, 0, 0, int64(0)
	for _, id := range slices.Sorted(maps.Keys(g.Pending)) {
		bytes += pendingBytes(id)
	}
	var supported map[string]int
	for m := g.Members.First; m != nil; m = m.Next {
		listed++
		if err := g.checkMember(m); err != nil {
			return fmt.Errorf("member %q: %w", m.ID, err)
		}
		bytes += int64(m.fixed + protocolBytes(m.Protocols))
		if m.Join != 0 {
			joined++
		}
		if m.Unsynced {
			unsynced++
		}
		if m.Instance != nil {
			static++
		}
		if supported == nil {
			supported = map[string]int{}
		}
		for _, p := range m.Protocols {
			supported[p.Name]++
		}
	}
	switch {
	case listed != g.Members.Len():
		return fmt.Errorf("%d members listed, %d known", listed, g.Members.Len())
	case g.Members.byID != nil && (len(g.Members.byID) != listed || len(g.Members.byInstance) != static):
		return fmt.Errorf("%d members listed, %d of them static; found are %d and %d", listed, static, len(g.Members.byID), len(g.Members.byInstance))
	case bytes != g.bytes:
		return fmt.Errorf("members hold %d bytes, counted are %d", bytes, g.bytes)
	case joined != int(g.Joined):
		return fmt.Errorf("%d members are parked in JoinGroup, counted are %d", joined, g.Joined)
	case unsynced != int(g.Unsynced):
		return fmt.Errorf("%d members have not synced, counted are %d", unsynced, g.Unsynced)
	case !g.Supported.Are(supported):
		return fmt.Errorf("protocols %v, counted are %v", supported, g.Supported)
	case g.changed:
		return fmt.Errorf("what a successor must know is not written")
	}
	return g.checkState()
}

func (g *Group) checkMember(m *Member) error {
	switch {
	case g.Members.Get(m.ID) != m:
		return fmt.Errorf("listed under another id")
	case m.Instance != nil && g.Members.static(*m.Instance) != m:
		return fmt.Errorf("instance id %q is another member's", *m.Instance)
	case g.Pending[m.ID] != nil:
		return fmt.Errorf("both pending and a member")
	case m.Join != 0 && g.State != PreparingRebalance:
		return fmt.Errorf("parked in JoinGroup")
	case m.Sync != 0 && g.State != CompletingRebalance:
		return fmt.Errorf("parked in SyncGroup")
	case m.TimerSeq == 0 || m.TimerAt.After(m.Deadline):
		return fmt.Errorf("no timer before its deadline")
	case m.IsNew && g.State != PreparingRebalance:
		return fmt.Errorf("new outside of a join phase")
	}
	return nil
}

func (g *Group) checkState() error {
	leader := g.Members.Get(g.Leader)
	switch {
	case g.State == Dead:
		return fmt.Errorf("dead but listed")
	case g.State == Empty && g.Members.Len() > 0:
		return fmt.Errorf("empty with %d members", g.Members.Len())
	case g.Members.Len() > 0 && leader == nil:
		return fmt.Errorf("leader %q is not a member", g.Leader)
	case g.State == PreparingRebalance && g.JoinSeq == 0:
		return fmt.Errorf("waits for joins without a timer")
	case g.State == PreparingRebalance && g.Previous != Empty && g.allJoined():
		return fmt.Errorf("waits for joins though everybody is there")
	case g.State == CompletingRebalance && g.SyncSeq == 0:
		return fmt.Errorf("waits for the leader without a timer")
	case (g.State == CompletingRebalance || g.State == Stable) && (g.Members.Len() == 0 || g.Supported.Of(g.Protocol) != g.Members.Len()):
		return fmt.Errorf("protocol %q is not everybody's", g.Protocol)
	case (g.State == PreparingRebalance || g.State == CompletingRebalance) && g.Rebalance == nil:
		return fmt.Errorf("rebalances without an account of it")
	}
	if err := g.checkReset(); err != nil {
		return err
	}
	return g.checkRecord()
}

// checkReset finds a reset that would wait for ever.
func (g *Group) checkReset() error {
	switch {
	case g.Live == nil:
		return nil
	case g.Live.Seq == 0:
		return fmt.Errorf("reset without a timer")
	case g.State == Empty:
		return fmt.Errorf("reset in an empty group")
	case g.State == Stable && !g.Live.Withheld:
		return fmt.Errorf("stable, and a reset has not taken effect")
	}
	return nil
}

// checkRecord compares the soft state with what the record says.
func (g *Group) checkRecord() error {
	switch {
	case g.Hard == nil && (g.State != Empty || len(g.Pending) > 0):
		return fmt.Errorf("alive without a record")
	case (g.State == Stable || g.State == Empty) && (g.rebalancing != nil || g.departed != nil):
		return fmt.Errorf("settled, but a record says that it rebalances")
	case (g.State == PreparingRebalance || g.State == CompletingRebalance) && len(g.Hard.Members) > 0 && !g.isUnsettled():
		return fmt.Errorf("rebalances, and no record says so")
	case g.State == Stable && !g.isStored():
		return fmt.Errorf("stable, but the record says otherwise")
	case g.Unsynced > 0 && (g.SyncSeq == 0 || g.State != CompletingRebalance && g.State != Stable):
		return fmt.Errorf("%d members have not synced, and no timer waits for them", g.Unsynced)
	}
	return nil
}

// isStored says whether the record has this generation, with these members and
// what they are assigned.
func (g *Group) isStored() bool {
	m := g.Members.First
	for i := range g.Hard.Members {
		e := &g.Hard.Members[i]
		if m == nil || m.ID != e.MemberID || !bytes.Equal(m.Assigned, e.Assignment) {
			return false
		}
		m = m.Next
	}
	return m == nil && g.Hard.Generation == g.Generation
}
