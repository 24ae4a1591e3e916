package consumer

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// What the shard asks of a consumer group.

func (g *Group) Kind() schema.Kind { return schema.Consumer }

func (g *Group) ProtocolName() string { return subscription.ConsumerType }

func (g *Group) Weight() int64 { return g.bytes }

// Fired handles a timer of a consumer group.
func (g *Group) Fired(x *kind.Step, e machine.TimerFired) {
	switch e.Key.Kind {
	case kind.TimerJoin, kind.TimerSync:
		g.classicFired(x, e)
	default:
		g.Group.Fired(x, e)
	}
}

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
		for _, p := range mem.Current.AssignedParts() {
			l.Parts = append(l.Parts, kind.PartLook{Topic: p.Part.Topic, Partition: p.Part.Number})
		}
	}
}

// What groups in which the coordinator assigns ask of a consumer group: see also assign.go,
// reconcile.go, stored.go and journal_target.go.

func (g *Group) NewMember(id string) *Member {
	return &Member{Member: modern.Member[Partition]{ID: id}}
}

func (g *Group) Config(x *kind.Step) *kind.KindConfig { return &x.Cfg.Consumer.KindConfig }

// TopicNames lists the topics that members subscribe to, by name and by what patterns match.
func (g *Group) TopicNames() []string {
	names := slices.Sorted(maps.Keys(g.Names))
	for _, r := range slices.Sorted(maps.Keys(g.Patterns)) {
		if g.Regexes[r] != nil {
			names = append(names, g.Regexes[r].Topics...)
		}
	}
	return names
}

// EpochRaised removes what an older Kafka has left.
func (g *Group) EpochRaised(x *kind.Step) {
	if g.oldTopics {
		x.Write(&schema.ConsumerTopicsRecord{Group: g.ID})
	}
}

// Forget removes what was found for patterns that no one has any more.
func (g *Group) Forget(x *kind.Step) {
	if len(g.Regexes) == 0 {
		return
	}
	for _, p := range slices.Sorted(maps.Keys(g.Regexes)) {
		if g.Patterns[p] == 0 {
			x.Write(&schema.ConsumerRegexRecord{Group: g.ID, Regex: p})
		}
	}
}

// IsReplaceable says whether someone else may come for a static member's place: also if that
// uses the classic protocol, where the last to come has it.
func (g *Group) IsReplaceable(mem *Member) bool {
	return g.Group.IsReplaceable(mem) || mem.Metadata.Classic != nil
}

// Converts makes a classic group of one in which no one else uses the consumer protocol.
func (g *Group) Converts(x *kind.Step, gone *Member) bool {
	to := g.DowngradedWithout(x, gone, "")
	if to == nil {
		return false
	}
	x.EndSilence(&g.Base, gone.ID)
	why, who, members := x.Why, modern.Who(gone), g.Present
	x.Why = nil
	next := g.downgrade(x, to, false)
	NoteDowngraded(x, next, &who, members)
	next.PrepareRebalance(x, why...)
	return true
}

// StopTimers cancels the timers of a member of the classic protocol.
func (g *Group) StopTimers(x *kind.Step, mem *Member) {
	g.stopJoinTimer(x, mem)
	g.stopSyncTimer(x, mem)
}
