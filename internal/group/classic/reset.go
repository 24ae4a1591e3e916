package classic

import (
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// A reset of a group that has members takes effect in the batch that stores a generation.
// From the end of the join phase until then no commit is taken, and those of generations
// before never again; and no member is told what it has before the offsets are there.
//
// Members that give up everything when they join again ask for committed offsets of all that
// they are assigned: for them one rebalance is enough. Cooperative ones go on with what they
// keep. What is to be moved is withheld from them: the leader's assignment is stored without
// it, so that those who had it let go of it and join again. When no one who joins says that it
// has any of it, the leader's assignment is stored as it is, and the offsets with it.

// eagerProtocols are those of clients that give up everything when they join again: by the
// names that Kafka's own clients use, librdkafka, franz-go, sarama, kafka-go and KafkaJS.
var eagerProtocols = []string{"range", "roundrobin", "sticky", "RoundRobinAssigner"}

const (
	cooperativeSticky = "cooperative-sticky"
	streamsProtocol   = "stream" // of Kafka Streams, whose state is elsewhere
)

// BeginReset implements kind.Resettable.
func (g *Group) BeginReset(x *kind.Step, r *kind.LiveReset) (refused string) {
	r.Protocol = g.Protocol
	if r.Protocol == "" {
		r.Protocol = g.Vote()
	}
	switch {
	case g.ProtocolType != subscription.ConsumerType:
		return fmt.Sprintf("members are of protocol type %q, which do not begin where offsets are committed", g.ProtocolType)
	case r.Protocol == streamsProtocol && !r.Ask.Force:
		return "members are of Kafka Streams, which has state that does not move with the offsets"
	case g.Live != nil && !r.Ask.Now:
		return "another reset is under way: " + g.Live.Ask.Plan
	case g.Live != nil:
		g.endReset(x, "another reset took its place: "+r.Ask.Plan)
	}
	g.Live, r.Method = r, g.resetMethod(r)
	r.Started(x, g)
	why := []journal.Trigger{{Kind: journal.TriggerReset, By: &r.By}}
	if r.Method == journal.ResetRemove {
		for m := g.Members.First; m != nil; m = m.Next {
			if !g.hasAny(r, m) {
				continue
			}
			gone := Trigger(journal.TriggerRemoved, m, nil)
			gone.By = &r.By
			why = append(why, gone)
			g.drop(x, m)
		}
	}
	if g.State == PreparingRebalance {
		g.Rebalance.Add(why...)
		g.maybeComplete(x)
	} else {
		g.PrepareRebalance(x, why...)
	}
	return ""
}

// resetMethod is how members are brought to ask for offsets anew. Of an assignor that is not
// known it cannot be said what its members keep.
func (g *Group) resetMethod(r *kind.LiveReset) journal.ResetMethod {
	switch {
	case r.Ask.Now:
	case slices.Contains(eagerProtocols, r.Protocol):
		return journal.ResetRebalance
	case r.Protocol == cooperativeSticky && g.isPlain(r.Protocol):
		return journal.ResetWithhold
	}
	return journal.ResetRemove
}

// isPlain says whether it can be read what members have and were assigned, and the latter can
// be written anew.
func (g *Group) isPlain(protocol string) bool {
	for m := g.Members.First; m != nil; m = m.Next {
		a, ok := subscription.ParseAssignment(m.Assigned)
		if len(m.Assigned) > 0 && (!ok || len(a.UserData) > 0) {
			return false
		}
		if _, err := subscription.Read(m.subscription(protocol)); err != nil {
			return false
		}
	}
	return true
}

// hasAny says whether a member has, or may have, a partition that is moved: it was assigned it,
// or said when it joined that it has it.
func (g *Group) hasAny(r *kind.LiveReset, m *Member) bool {
	a, ok := subscription.ParseAssignment(m.Assigned)
	if len(m.Assigned) > 0 && !ok {
		return true
	}
	for _, t := range a.Topics {
		for _, p := range t.Partitions {
			if r.Has(subscription.TopicPartition{Topic: t.Topic, Partition: p}) {
				return true
			}
		}
	}
	return claims(r, m.subscription(r.Protocol))
}

// claims says whether a member that joins with this says that it has a partition that is
// moved. One that cannot be read may.
func claims(r *kind.LiveReset, said []byte) bool {
	s, err := subscription.Read(said)
	return err != nil || slices.ContainsFunc(s.Owned, r.Has)
}

// noteHeld notes, at the end of a join phase, whether members have what is to be withheld. A
// static member that did not join has what it had.
func (g *Group) noteHeld(x *kind.Step) {
	r := g.Live
	switch {
	case r == nil:
		return
	case g.Protocol != r.Protocol:
		g.endReset(x, "members changed their assignor from "+r.Protocol+" to "+g.Protocol)
		return
	case r.Method != journal.ResetWithhold:
		return
	}
	r.Held = false
	for m := g.Members.First; m != nil; m = m.Next {
		if m.Join == 0 && g.hasAny(r, m) || m.Join != 0 && claims(r, m.Metadata(g.Protocol)) {
			r.Held = true
		}
	}
}

// withhold takes what is moved out of the leader's assignment, as long as members have it.
func (g *Group) withhold(x *kind.Step) {
	r := g.Live
	if r == nil || !r.Held {
		return
	}
	left := make([][]byte, 0, g.Members.Len())
	for m := g.Members.First; m != nil; m = m.Next {
		b, ok := withoutMoved(r, m.Assigned)
		if !ok {
			g.endReset(x, "the assignment of "+m.Who().Member+" cannot be changed")
			return
		}
		left = append(left, b)
	}
	for m := g.Members.First; m != nil; m = m.Next {
		m.Assigned, left = left[0], left[1:]
	}
}

// withoutMoved is an assignment without what is moved.
func withoutMoved(r *kind.LiveReset, assigned []byte) ([]byte, bool) {
	if len(assigned) == 0 {
		return assigned, true
	}
	a, ok := subscription.ParseAssignment(assigned)
	if !ok || len(a.UserData) > 0 {
		return nil, false
	}
	for i := range a.Topics {
		t := &a.Topics[i]
		t.Partitions = slices.DeleteFunc(t.Partitions, func(p int32) bool {
			return r.Has(subscription.TopicPartition{Topic: t.Topic, Partition: p})
		})
	}
	a.Topics = slices.DeleteFunc(a.Topics, func(t kmsg.ConsumerMemberAssignmentTopic) bool { return len(t.Partitions) == 0 })
	return a.AppendTo(nil), true
}

// storeGeneration stores a generation that was formed, and with it the offsets of a reset, if
// no one has its partitions any more: as one batch, or else a successor would know the one
// without the other.
func (g *Group) storeGeneration(x *kind.Step, r *schema.GroupRecord) {
	live := g.Live
	if live == nil || live.Held {
		g.store(x, r)
		if live != nil {
			live.Withheld = true
		}
		return
	}
	offsets := live.Records(x, &g.Base)
	records := append(slices.Concat([]machine.Record{r}, g.UnsettledTombstones()), offsets...)
	if x.MaxBatch > 0 && (&machine.Batch{Records: records, Whole: true}).Size() > x.MaxBatch {
		g.store(x, r)
		g.endReset(x, "the group and the offsets do not fit into one record batch; reset fewer partitions at a time")
		return
	}
	x.WriteWhole(records)
	g.stored(x, r)
	live.Applied(x, g)
	g.Live = nil
}

// endReset gives a reset up, which has moved nothing.
func (g *Group) endReset(x *kind.Step, why string) {
	if g.Live != nil {
		g.Live.Dropped(x, g, why)
		g.Live = nil
	}
}

// resetFired gives up a reset that takes too long. What was withheld is assigned again.
func (g *Group) resetFired(x *kind.Step, e machine.TimerFired) {
	r := g.Live
	if r == nil || r.Seq != e.Seq {
		return
	}
	g.endReset(x, fmt.Sprintf("members have not let go of the partitions within %s", kind.ResetPatience))
	if g.State == Stable {
		g.PrepareRebalance(x, journal.Trigger{Kind: journal.TriggerReset, By: &r.By})
	}
}

// EndReset gives a reset up because the group becomes one of another kind.
func (g *Group) EndReset(x *kind.Step) { g.endReset(x, "the group went over to another protocol") }
