package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
)

// What members of the classic protocol do in a consumer group.
const (
	actMixedJoin act = "mixed join"
	actMixedSync act = "mixed sync"
	actMixedBeat act = "mixed heartbeat"
)

// isOfConsumers says whether a group is one of the consumer protocol now, or never was
// anything else.
func (v *view) isOfConsumers() bool {
	return v.consumerView != nil && (isConsumers(v.id) || !v.roster.isGone())
}

// isRunning says whether a classic group is not empty. One whose members are gone again
// before its initial delay is over is not, as with Kafka.
func (v *view) isRunning() bool { return v.state != stateEmpty && v.state != "" }

// upgradeCode says whether someone of the consumer protocol may join a classic group
// that has members.
func (c *coordinator) upgradeCode(v *view, m *kmsg.ConsumerGroupHeartbeatRequest) int16 {
	policy := c.config.Consumer.Migration
	if policy != group.MigrateBoth && policy != group.MigrateUpgrade || len(v.seats) > c.config.Consumer.MaxSize || v.protocolType != consumerType {
		return codeGroupNotFound
	}
	owner := map[topicPartition]bool{}
	for _, s := range v.seats {
		for _, tp := range parseAssignment(s.assigned) {
			if owner[tp] {
				return codeGroupNotFound
			}
			owner[tp] = true
		}
	}
	if m.InstanceID != nil && v.static(*m.InstanceID) != nil { // It takes that one's place.
		return 0
	}
	if len(v.seats) >= c.config.Consumer.MaxSize {
		return codeMaxSize
	}
	return 0
}

// expectMixedJoin has Kafka's checks in Kafka's order. An empty group becomes a classic
// one.
func (c *coordinator) expectMixedJoin(v *view, m *kmsg.JoinGroupRequest) verdict {
	r := v.roster
	if len(r.members) == 0 {
		if m.MemberID != "" {
			return refused(codeUnknownMember)
		}
		v.state, v.protocolType, v.generation = stateEmpty, "", 0
		out := c.expectJoin(v, m)
		out.becomes = typeClassic
		return out
	}
	var holder string
	if m.InstanceID != nil {
		holder = r.static(*m.InstanceID)
	}
	_, known := r.members[m.MemberID]
	switch {
	case c.config.Consumer.Migration == group.MigrateNever:
		return refused(codeInconsistentProtocol)
	case !known && !(m.MemberID == "" && holder != "") && len(r.members) >= c.config.Consumer.MaxSize:
		return refused(codeMaxSize)
	case m.ProtocolType != consumerType || !r.shares(m.Protocols):
		return refused(codeInconsistentProtocol)
	case m.MemberID == "" && m.InstanceID == nil && m.Version >= 4:
		return refused(codeMemberIDRequired)
	case m.MemberID != "" && m.InstanceID != nil && holder == "":
		return refused(codeUnknownMember)
	case m.MemberID != "" && m.InstanceID != nil && holder != m.MemberID:
		return refused(codeFencedInstance)
	}
	return verdict{act: actMixedJoin, codes: []int16{0}, parks: true}
}

// shares says whether all members of the classic protocol have one of these.
func (r *roster) shares(protocols []kmsg.JoinGroupRequestProtocol) bool {
	return slices.ContainsFunc(protocols, func(p kmsg.JoinGroupRequestProtocol) bool {
		for _, m := range r.members {
			if m.isClassic() && !m.supports(p.Name) {
				return false
			}
		}
		return true
	})
}

func (m *rosterMember) isClassic() bool { return m.says != nil && m.says.Classic != nil }

func (m *rosterMember) supports(protocol string) bool {
	return slices.ContainsFunc(m.says.Classic.Protocols, func(p schema.ClassicProtocol) bool { return p.Name == protocol })
}

// findMixed is the rule by which a member of the classic protocol shows who it is.
func (r *roster) findMixed(id string, instance *string, generation int32) (rosterMember, int16) {
	if instance != nil {
		holder := r.static(*instance)
		if holder != "" && holder != id {
			return rosterMember{}, codeFencedInstance
		}
		id = holder
	}
	m := r.members[id]
	switch {
	case !m.isClassic():
		return m, codeUnknownMember
	case generation != m.epoch():
		return m, codeIllegalGeneration
	}
	return m, 0
}

func expectMixedSync(v *view, q *kmsg.SyncGroupRequest) verdict {
	m, code := v.roster.findMixed(q.MemberID, q.InstanceID, q.Generation)
	switch {
	case code != 0:
		return refused(code)
	case q.Version >= 5 && (*q.ProtocolType != consumerType || !m.supports(*q.Protocol)):
		return refused(codeInconsistentProtocol)
	case v.roster.target > m.epoch() && m.state() != memberUnrevoked:
		return verdict{act: actMixedSync, codes: []int16{codeRebalanceInProgress}}
	}
	return verdict{act: actMixedSync, codes: []int16{0}}
}

// expectMixedBeat leaves open whether the member must join again: the heartbeat itself
// may be why there is another target.
func expectMixedBeat(v *view, q *kmsg.HeartbeatRequest) verdict {
	if _, code := v.roster.findMixed(q.MemberID, q.InstanceID, q.Generation); code != 0 {
		return refused(code)
	}
	return verdict{act: actMixedBeat, codes: []int16{0}}
}

// foresee completes what the rules say of a step by what else it has done.
func (c *coordinator) foresee(why cause, wants *verdict, e *entry) {
	if why.request == nil {
		return
	}
	if wants.act == actMixedBeat {
		v := c.view(why.request.ask.group)
		if v.mustJoin(v.roster.after(v.id, e), c.w, why.request.ask.member) {
			wants.codes[0] = codeRebalanceInProgress
		}
	}
	i := slices.IndexFunc(e.replies, func(h held) bool { return h.request == why.request })
	if wants.or != 0 && i >= 0 && codeOf(e.replies[i].msg) == wants.or {
		*wants = refused(wants.or)
		c.w.Count("group too large to go over")
	}
}

// after is the roster with a step's records.
func (r *roster) after(id string, e *entry) *roster {
	out := r.clone()
	for _, rec := range e.originals {
		if consumerGroupOf(rec) == id {
			out.apply(rec, e.seq)
		}
	}
	return out
}

// mustJoin says whether a member of the classic protocol is told to join again: its
// target is newer, it has to let go of something, or what it waits for is free.
func (v *view) mustJoin(r *roster, w *world, id string) bool {
	m := r.members[id]
	switch {
	case m.epoch() < r.target || m.state() == memberUnrevoked:
		return true
	case m.state() != memberUnreleased:
		return false
	}
	return !slices.ContainsFunc(r.wanted(&m, w.topics.image), func(p part) bool {
		_, mine := m.since(p)
		return !mine && v.isTaken(r, p, id)
	})
}

// isTaken says whether someone else has a partition, or may have it: nothing was heard
// of it since the load.
func (v *view) isTaken(r *roster, p part, id string) bool {
	for other := range r.members {
		o := r.members[other]
		if _, has := o.since(p); other != id && (has || !v.greeted[other] && o.epoch() != -2) {
			return true
		}
	}
	return false
}

// sessionOf is how long a member may be silent.
func (c *coordinator) sessionOf(m *rosterMember) time.Duration {
	if m.isClassic() {
		return time.Duration(m.says.Classic.SessionTimeoutMillis) * time.Millisecond
	}
	return c.config.Consumer.Session
}

func (m *rosterMember) rebalance() time.Duration {
	return time.Duration(m.says.RebalanceTimeoutMillis) * time.Millisecond
}
