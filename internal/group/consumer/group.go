package consumer

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// What the shard asks of a consumer group.

func (g *Group) Kind() schema.Kind { return schema.Consumer }

func (g *Group) ProtocolName() string { return subscription.ConsumerType }

func (g *Group) IsEmpty() bool { return g.Present == 0 }

func (g *Group) HadMembers() bool { return false }

func (g *Group) Weight() int64 { return g.bytes }

func (g *Group) Loaded(x *kind.Step) { g.resume(x) }

// Fired handles a timer of a consumer group.
func (g *Group) Fired(x *kind.Step, e machine.TimerFired) {
	switch e.Key.Kind {
	case kind.TimerSession:
		g.sessionFired(x, e)
	case kind.TimerRevoke:
		g.revokeFired(x, e)
	case kind.TimerJoin, kind.TimerSync:
		g.classicFired(x, e)
	}
}

func (g *Group) DeleteRecords(x *kind.Step) { g.deleteGroupRecords(x) }

func (g *Group) CheckCommit(x *kind.Step, _ *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error {
	return g.checkOffsetCommit(x, m)
}

func (g *Group) CheckTxnCommit(x *kind.Step, _ *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	return g.checkTxnOffsetCommit(x, m)
}

func (g *Group) InUse() (func(topic string) bool, *kerr.Error) { return g.subscribes(), nil }

func (g *Group) Expires() (subscribed func(topic string) bool, since int64, ok bool) {
	return g.subscribes(), -1, true
}

// Of a consumer group all that is seen of it is written down.
func (g *Group) Version() kind.Version { return kind.Version{Changes: g.changes} }

func (g *Group) Entry(x *kind.Step, kind journal.EntryKind) journal.Entry {
	if g.Gone {
		return journal.Entry{Time: x.Now, Group: g.ID, Kind: kind, State: classic.Dead.String()}
	}
	return g.journalEntry(x, kind)
}

func (g *Group) SilentSince(id string) int64 {
	if m := g.Member(id); m != nil {
		return m.Silent
	}
	return 0
}

func (g *Group) Check() error { return g.checkState() }

func (g *Group) Look(out *kind.Look) {
	for _, mem := range g.Members {
		if mem.Metadata == nil {
			continue
		}
		l := out.Another()
		l.ID, l.ClientID, l.Host, l.Topics = mem.ID, mem.Metadata.ClientID, kind.PlainHost(mem.Metadata.Host), mem.Metadata.Topics
		if r := g.Regexes[mem.pattern()]; r != nil {
			l.Regex = r.Topics
		}
		for _, p := range mem.Current.AssignedPartitions() {
			l.Parts = append(l.Parts, kind.PartLook{Topic: p.Topic, Partition: p.Number})
		}
	}
}
