package classic

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// What the shard asks of a classic group.

func (g *Group) Kind() schema.Kind { return schema.Classic }

func (g *Group) ProtocolName() string { return g.ProtocolType }

func (g *Group) StateName() string {
	if g.Gone {
		return Dead.String()
	}
	return g.State.String()
}

func (g *Group) IsEmpty() bool { return g.State == Empty }

func (g *Group) HadMembers() bool { return g.ProtocolType != "" }

func (g *Group) Weight() int64 { return g.bytes }

func (g *Group) Replay(r schema.Record) {
	switch r := r.(type) {
	case *schema.GroupRecord:
		g.Hard = r.Value
	case *schema.RebalanceRecord:
		g.rebalancing = r.Value
	case *schema.DepartureRecord:
		g.applyDeparture(r)
	}
}

func (g *Group) applyDeparture(r *schema.DepartureRecord) {
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

func (g *Group) IsGone() bool {
	return g.Hard == nil && g.rebalancing == nil && len(g.departed) == 0
}

func (g *Group) EachRecord(put func(machine.Record)) {
	if g.Hard != nil {
		put(&schema.GroupRecord{Group: g.ID, Value: g.Hard})
	}
	if g.rebalancing != nil {
		put(&schema.RebalanceRecord{Group: g.ID, Value: g.rebalancing})
	}
	for _, m := range slices.Sorted(maps.Keys(g.departed)) {
		put(&schema.DepartureRecord{Group: g.ID, Member: m, Value: &schema.Departure{Generation: g.departed[m]}})
	}
}

func (g *Group) Loaded(x *kind.Step) {
	resumes := g.isUnsettled()
	if !resumes {
		g.forgetUnsettled(x)
	}
	if !g.Gone {
		g.resume(x, resumes)
	}
}

func (g *Group) Fired(x *kind.Step, e machine.TimerFired) {
	switch e.Key.Kind {
	case kind.TimerSession:
		g.sessionFired(x, e)
	case kind.TimerJoin:
		if g.JoinSeq == e.Seq {
			g.joinFired(x)
		}
	case kind.TimerSync:
		if g.SyncSeq == e.Seq {
			g.syncFired(x)
		}
	case kind.TimerReset:
		g.resetFired(x, e)
	}
}

func (g *Group) DeleteRecords(x *kind.Step) {
	for id := range g.PendingIDs() {
		g.ForgetPending(x, id)
	}
	if g.Hard != nil {
		x.Write(&schema.GroupRecord{Group: g.ID})
	}
}

func (g *Group) CheckCommit(x *kind.Step, r *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && g.State == Empty {
		return nil
	}
	if m.Generation < 0 && m.MemberID == "" && m.InstanceID == nil {
		return kerr.UnknownMemberID // It is in use, by others.
	}
	mem, err := g.lookup(x, r, m.MemberID, m.InstanceID)
	switch {
	case err != nil:
		return err
	case m.Generation != g.Generation:
		return kerr.IllegalGeneration
	case g.State == CompletingRebalance:
		return kerr.RebalanceInProgress
	}
	g.noteHeard(x, mem) // A commit counts as a sign of life.
	g.touch(x, mem, mem.Session)
	return nil
}

func (g *Group) CheckTxnCommit(x *kind.Step, r *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	if m.Generation < 0 && (g.State == Empty || m.MemberID == "" && m.InstanceID == nil) {
		return nil
	}
	if _, err := g.lookup(x, r, m.MemberID, m.InstanceID); err != nil {
		return err
	}
	if m.Generation != g.Generation {
		return kerr.IllegalGeneration
	}
	return nil
}

func (g *Group) CheckFetch(*kmsg.OffsetFetchRequestGroup) *kerr.Error { return nil }

func (g *Group) InUse() (func(topic string) bool, *kerr.Error) {
	switch {
	case g.State == Empty:
		return func(string) bool { return false }, nil
	case g.ProtocolType != subscription.ConsumerType:
		return nil, kerr.NonEmptyGroup
	}
	return g.subscribes(), nil
}

func (g *Group) Expires() (subscribed func(topic string) bool, since int64, ok bool) {
	switch {
	case g.State == Empty && g.ProtocolType != "":
		since = g.Hard.CurrentStateTimestamp // From when the last member left, if that is known.
	case g.State == Empty: // A simple group: from each commit.
		since = -1
	case g.State == Stable && g.ProtocolType == subscription.ConsumerType:
		return g.subscribes(), -1, true
	default:
		return nil, -1, false
	}
	return func(string) bool { return false }, since, true
}

func (g *Group) Look(out *kind.Look) {
	out.Protocol = g.Protocol
	for m := g.Members.First; m != nil; m = m.Next {
		l := out.Another()
		l.ID, l.ClientID, l.Host = m.ID, m.ClientID, kind.PlainHost(m.Host)
		if g.State == Stable {
			l.Subscription, l.Assignment = m.Metadata(g.Protocol), m.Assigned
		}
	}
}

// Who is a member of a classic group, and what it has, is written down with each
// generation; while one is formed nothing is the same.
func (g *Group) Version() kind.Version {
	return kind.Version{Record: g.Hard, Generation: g.Generation, State: int8(g.State), Unsettled: g.State != Stable && g.State != Empty}
}

func (g *Group) Entry(x *kind.Step, kind journal.EntryKind) journal.Entry {
	e := journal.Entry{Time: x.Now, Group: g.ID, Kind: kind, State: g.StateName(), Generation: g.Generation, Protocol: g.Protocol, After: g.Members.Len()}
	if g.Hard != nil {
		e.Before = len(g.Hard.Members)
	}
	return e
}

func (g *Group) SilentSince(id string) int64 {
	if m := g.Members.Get(id); m != nil {
		return m.Silent
	}
	return 0
}
