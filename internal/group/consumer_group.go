package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// What the shard asks of a consumer group.

func (g *consumerGroup) kind() schema.Kind { return schema.Consumer }

func (g *consumerGroup) protocolName() string { return consumerType }

func (g *consumerGroup) isEmpty() bool { return g.present == 0 }

func (g *consumerGroup) hadMembers() bool { return false }

func (g *consumerGroup) weight() int64 { return g.bytes }

func (g *consumerGroup) loaded(x *step) { g.wakeConsumers(x) }

// fired handles a timer of a consumer group.
func (g *consumerGroup) fired(x *step, e machine.TimerFired) {
	switch e.Key.Kind {
	case TimerSession:
		g.consumerSilent(x, e)
	case TimerRevoke:
		g.revokeFired(x, e)
	case TimerJoin, TimerSync:
		g.classicFired(x, e)
	}
}

func (g *consumerGroup) deleteRecords(x *step) { g.forgetConsumers(x) }

func (g *consumerGroup) checkCommit(x *step, _ *machine.Request, m *kmsg.OffsetCommitRequest) *kerr.Error {
	return g.checkConsumerCommit(x, m)
}

func (g *consumerGroup) checkTxnCommit(x *step, _ *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	return g.checkConsumerTxnCommit(x, m)
}

func (g *consumerGroup) inUse() (func(topic string) bool, *kerr.Error) { return g.subscribes(), nil }

func (g *consumerGroup) expires() (subscribed func(topic string) bool, since int64, ok bool) {
	return g.subscribes(), -1, true
}

// Of a consumer group all that is seen of it is written down.
func (g *consumerGroup) version() version { return version{changes: g.changes} }

func (g *consumerGroup) entry(x *step, kind journal.EntryKind) journal.Entry {
	if g.gone {
		return journal.Entry{Time: x.now, Group: g.id, Kind: kind, State: Dead.String()}
	}
	return g.consumerEntry(x, kind)
}

func (g *consumerGroup) silentSince(id string) int64 {
	if m := g.member(id); m != nil {
		return m.silent
	}
	return 0
}

func (g *consumerGroup) check() error { return g.checkConsumers() }

func (g *consumerGroup) look(out *Look) {
	for _, mem := range g.members {
		if mem.says == nil {
			continue
		}
		l := out.another()
		l.ID, l.ClientID, l.Host, l.Topics = mem.id, mem.says.ClientID, plainHost(mem.says.Host), mem.says.Topics
		if r := g.regexes[mem.pattern()]; r != nil {
			l.Regex = r.topics
		}
		for _, p := range mem.current.places() {
			l.Parts = append(l.Parts, PartLook{p.topic, p.n})
		}
	}
}
