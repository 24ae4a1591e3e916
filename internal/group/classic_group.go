package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// What the shard asks of a classic group.

func (g *classicGroup) kind() schema.Kind { return schema.Classic }

func (g *classicGroup) protocolName() string { return g.protocolType }

func (g *classicGroup) stateName() string {
	if g.gone {
		return Dead.String()
	}
	return g.state.String()
}

func (g *classicGroup) isEmpty() bool { return g.state == Empty }

func (g *classicGroup) hadMembers() bool { return g.protocolType != "" }

func (g *classicGroup) weight() int64 { return g.bytes }

func (g *classicGroup) replay(r schema.Record) {
	switch r := r.(type) {
	case *schema.GroupRecord:
		g.hard = r.Value
	case *schema.RebalanceRecord:
		g.rebalancing = r.Value
	case *schema.DepartureRecord:
		g.applyDeparture(r)
	}
}

func (g *classicGroup) applyDeparture(r *schema.DepartureRecord) {
	if r.Value == nil {
		if delete(g.departed, r.Member); len(g.departed) == 0 {
			g.departed = nil
		}
		return
	}
	if g.departed == nil {
		g.departed = map[string]int32{}
	}
	g.departed[r.Member] = r.Value.Generation
}

func (g *classicGroup) isGone() bool {
	return g.hard == nil && g.rebalancing == nil && len(g.departed) == 0
}

func (g *classicGroup) eachRecord(put func(machine.Record)) {
	if g.hard != nil {
		put(&schema.GroupRecord{Group: g.id, Value: g.hard})
	}
	if g.rebalancing != nil {
		put(&schema.RebalanceRecord{Group: g.id, Value: g.rebalancing})
	}
	for _, m := range slices.Sorted(maps.Keys(g.departed)) {
		put(&schema.DepartureRecord{Group: g.id, Member: m, Value: &schema.Departure{Generation: g.departed[m]}})
	}
}

func (g *classicGroup) loaded(x *step) {
	resumes := g.isUnsettled()
	if !resumes {
		g.forgetUnsettled(x)
	}
	if !g.gone {
		g.wake(x, resumes)
	}
}

func (g *classicGroup) fired(x *step, e machine.TimerFired) {
	switch e.Key.Kind {
	case TimerSession:
		g.sessionFired(x, e)
	case TimerJoin:
		if g.joinSeq == e.Seq {
			g.joinFired(x)
		}
	case TimerSync:
		if g.syncSeq == e.Seq {
			g.syncFired(x)
		}
	}
}

func (g *classicGroup) deleteRecords(x *step) {
	for id := range g.pendingIDs() {
		g.forgetPending(x, id)
	}
	if g.hard != nil {
		x.write(&schema.GroupRecord{Group: g.id})
	}
}

func (g *classicGroup) checkCommit(x *step, r *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && g.state == Empty {
		return nil
	}
	if m.Generation < 0 && m.MemberID == "" && m.InstanceID == nil {
		return kerr.UnknownMemberID // It is in use, by others.
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	switch {
	case err != nil:
		return err
	case m.Generation != g.generation:
		return kerr.IllegalGeneration
	case g.state == CompletingRebalance:
		return kerr.RebalanceInProgress
	}
	g.alive(x, mem) // A commit counts as a sign of life.
	g.touch(x, mem, mem.session)
	return nil
}

func (g *classicGroup) checkTxnCommit(x *step, r *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && (g.state == Empty || m.MemberID == "" && m.InstanceID == nil) {
		return nil
	}
	if _, err := g.lookup(x, r, m.MemberID, m.InstanceID); err != nil {
		return err
	}
	if m.Generation != g.generation {
		return kerr.IllegalGeneration
	}
	return nil
}

func (g *classicGroup) checkFetch(*kmsg.OffsetFetchRequestGroup) *kerr.Error { return nil }

func (g *classicGroup) inUse() (func(topic string) bool, *kerr.Error) {
	switch {
	case g.state == Empty:
		return func(string) bool { return false }, nil
	case g.protocolType != consumerType:
		return nil, kerr.NonEmptyGroup
	}
	return g.subscribes(), nil
}

func (g *classicGroup) expires() (subscribed func(topic string) bool, since int64, ok bool) {
	switch {
	case g.state == Empty && g.protocolType != "":
		since = g.hard.CurrentStateTimestamp // From when the last member left, if that is known.
	case g.state == Empty: // A simple group: from each commit.
		since = -1
	case g.state == Stable && g.protocolType == consumerType:
		return g.subscribes(), -1, true
	default:
		return nil, -1, false
	}
	return func(string) bool { return false }, since, true
}

func (g *classicGroup) look(out *Look) {
	out.Protocol = g.protocol
	for m := g.members.first; m != nil; m = m.next {
		l := out.another()
		l.ID, l.ClientID, l.Host = m.id, m.clientID, plainHost(m.host)
		if g.state == Stable {
			l.Subscription, l.Assignment = m.metadata(g.protocol), m.assigned
		}
	}
}

// Who is a member of a classic group, and what it has, is written down with each
// generation; while one is formed nothing is the same.
func (g *classicGroup) version() version {
	return version{record: g.hard, generation: g.generation, state: int8(g.state), unsettled: g.state != Stable && g.state != Empty}
}

func (g *classicGroup) entry(x *step, kind journal.EntryKind) journal.Entry {
	e := journal.Entry{Time: x.now, Group: g.id, Kind: kind, State: g.stateName(), Generation: g.generation, Protocol: g.protocol, After: g.members.len()}
	if g.hard != nil {
		e.Before = len(g.hard.Members)
	}
	return e
}

func (g *classicGroup) silentSince(id string) int64 {
	if m := g.members.get(id); m != nil {
		return m.silent
	}
	return 0
}
