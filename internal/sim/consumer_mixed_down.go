package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// actDowngrade is that a consumer group becomes a classic one: its members join again.
const actDowngrade act = "downgrade"

// checkDirection checks that the group becomes a classic one when it must, and not
// otherwise: no one is left who uses the consumer protocol, the policy lets it, and the
// others can be a classic group.
func (b *beaten) checkDirection(wants *verdict) {
	w := b.c.w
	if !isMixed(b.v.id) {
		return
	}
	_, loads := b.why.event.(machine.Loaded)
	may := b.mayBeClassic()
	must := may && !loads && (wants.act == actMixedJoin || len(b.gone) > len(b.heir)) && w.plan.maxBatch == 0
	switch {
	case b.down != nil && !may:
		w.Violated("%s: it becomes a classic group, and may not", b.v.id)
	case b.down == nil && must:
		w.Violated("%s: nobody uses the consumer protocol any more, and it stays a consumer group", b.v.id)
	}
}

func (b *beaten) mayBeClassic() bool {
	policy := b.c.config.Consumer.Migration
	n := len(b.after.members)
	if policy != group.MigrateBoth && policy != group.MigrateDowngrade || n == 0 || n > b.c.config.MaxSize {
		return false
	}
	var first *rosterMember
	for _, id := range b.after.ids() {
		m := b.after.members[id]
		if !m.isClassic() {
			return false
		}
		first = &m
	}
	return slices.ContainsFunc(first.says.Classic.Protocols, func(p schema.ClassicProtocol) bool {
		return b.after.shares([]kmsg.JoinGroupRequestProtocol{{Name: p.Name}})
	})
}

// becomeClassic is the end of a consumer group that goes on as a classic one. Everybody
// has what they had; the offsets are compared as after every step.
func (b *beaten) becomeClassic(wants *verdict, e *entry) {
	v, c, w := b.v, b.c, b.c.w
	meta := b.down.Value
	b.checkDown()
	w.moment(momentDowngraded)
	fresh := c.newView(v.id, v.life)
	fresh.exists, fresh.converted, fresh.state = true, true, stateStable
	fresh.generation, fresh.protocolType, fresh.since = meta.Generation, meta.ProtocolType, meta.CurrentStateTimestamp
	fresh.protocol, fresh.leader, fresh.leaps = *meta.Protocol, *meta.Leader, v.jumps
	for i := range meta.Members {
		fresh.seats = append(fresh.seats, b.seatOf(&meta.Members[i]))
	}
	*v = *fresh
	c.forgetFenced(v.id)
	if !slices.Contains(v.winners(), v.protocol) {
		w.Violated("%s: it becomes a classic group with a protocol that is not one of %v", v, v.winners())
	}
	quiet := b.isQuiet()
	if b.checkWhole(e, !quiet); quiet {
		b.quietly()
		return
	}
	next := verdict{act: actDowngrade, starts: true, codes: wants.codes}
	if b.classic {
		next.act, next.seat, next.parks = actRejoin, v.seat(b.actor), true
	}
	w.Count("online downgrade")
	c.reconcile(v, b.why, &next, e)
	v.converted = true
}

// inOneBatch says whether records are stored together or not at all.
func (e *entry) inOneBatch(from, to int) bool {
	return !slices.ContainsFunc(e.ends, func(end int) bool { return from < end && end <= to })
}

// checkWhole checks that a group goes over in one batch: its end as what it was, its
// beginning as what it is, and that it rebalances, if it does.
func (b *beaten) checkWhole(e *entry, rebalances bool) {
	i := slices.Index(e.originals, machine.Record(b.down))
	_, cut := downgradeIn(b.v.id, e.originals)
	if rebalances {
		if i++; i == len(e.originals) {
			b.c.w.Violated("%s: it becomes a classic group, and it is not stored that it rebalances", b.v.id)
		}
		if r, ok := e.originals[i].(*schema.RebalanceRecord); !ok || r.Value == nil || r.Value.Generation != b.down.Value.Generation {
			b.c.w.Violated("%s: it becomes a classic group, and it is not stored that it rebalances", b.v.id)
		}
	}
	if !e.inOneBatch(cut, i) {
		b.c.w.Violated("%s: a part of it may become a classic group", b.v.id)
	}
}

// checkWholeUpgrade is the same of a classic group that becomes a consumer group.
func (b *beaten) checkWholeUpgrade(e *entry) {
	first, last := -1, -1
	for i, r := range e.originals {
		if r, ok := r.(*schema.GroupRecord); ok && r.Group == b.v.id {
			first = i
		}
		if r, ok := r.(*schema.ConsumerCurrentRecord); ok && r.Group == b.v.id && r.Value != nil && r.Value.Epoch == r.Value.Previous && r.Value.Epoch > 0 {
			last = i
		}
	}
	if first >= 0 && last >= 0 && !e.inOneBatch(first, last) {
		b.c.w.Violated("%s: a part of it may become a consumer group", b.v.id)
	}
}

// seatOf is a member as a classic group knows it.
func (b *beaten) seatOf(e *schema.GroupMember) *seat {
	m := b.after.members[e.MemberID]
	s := &seat{
		id: e.MemberID, instance: e.InstanceID, assigned: e.Assignment, heard: b.c.w.Now, synced: true,
		session:   time.Duration(e.SessionTimeoutMillis) * time.Millisecond,
		rebalance: time.Duration(e.RebalanceTimeoutMillis) * time.Millisecond,
	}
	for _, p := range m.says.Classic.Protocols {
		s.protocols = append(s.protocols, kmsg.JoinGroupRequestProtocol{Name: p.Name, Metadata: p.Metadata})
	}
	return s
}

// isQuiet says whether a consumer group becomes a classic one by a join that changes
// nothing else for anybody. Who joins must be able to lead without assigning anything.
func (b *beaten) isQuiet() bool {
	return b.classic && b.after.epoch == b.before.epoch && b.after.state() == stateStable && b.why.request.msg.GetVersion() >= 9
}

// quietly is a static member of the classic protocol that has replaced the last one of
// the consumer protocol, when nothing else changes for anybody.
func (b *beaten) quietly() {
	v, c := b.v, b.c
	v.life++
	v.record, v.recordTime = true, v.since
	if after := c.probe(v.id); after.State != stateStable || b.answer == nil || b.answer.MemberEpoch != v.generation {
		c.w.Violated("%s: nothing changes but its kind, and it is %s", v, after.State)
	}
	c.w.Count("online downgrade without a rebalance")
}

// checkDown checks that the classic group has the members of the consumer group, with
// what they had or had yet to let go of, and a generation that is none of before.
func (b *beaten) checkDown() {
	w, meta := b.c.w, b.down.Value
	if len(meta.Members) != len(b.after.members) || meta.Generation < b.after.epoch {
		w.Violated("%s: it becomes a classic group in generation %d with %d members, was one in epoch %d with %d", b.v.id, meta.Generation, len(meta.Members), b.after.epoch, len(b.after.members))
	}
	for i := range meta.Members {
		e := &meta.Members[i]
		m, ok := b.after.members[e.MemberID]
		if !ok || !sameText(e.InstanceID, m.says.Instance) || e.SessionTimeoutMillis != m.says.Classic.SessionTimeoutMillis || e.RebalanceTimeoutMillis != m.says.RebalanceTimeoutMillis {
			w.Violated("%s: it becomes a classic group, and %s is another", b.v.id, short(e.MemberID))
		}
		want := w.namedParts(append(sortedParts(m.assigned), sortedParts(m.pending)...))
		got := parseAssignment(e.Assignment)
		slices.SortFunc(got, comparePartitions)
		if !slices.Equal(got, want) {
			w.Violated("%s: it becomes a classic group, and %s has %v, had %v", b.v.id, short(e.MemberID), got, want)
		}
	}
}

// upgrades is what members of a classic group have that becomes a consumer group. That
// counts once it is stored: if it never is, neither did they have it. Who lets go of
// something until then has let go of it.
func (p *promises) upgrades(id string, r *roster) map[string]map[part]string {
	held := map[part]string{}
	for member, m := range r.members {
		for tp := range m.assigned {
			held[tp] = member
		}
	}
	p.coming[id] = held
	return map[string]map[part]string{id: held}
}

// upgraded notes that it is stored that a group has become a consumer group.
func (p *promises) upgraded(e *entry, id string) {
	if held, ok := e.upgraded[id]; ok {
		p.held[id] = held
		delete(e.upgraded, id)
	}
}

// mixedSynced checks what a member of the classic protocol is told to have in a consumer
// group, as beatAnswered does (4, 5).
func (p *promises) mixedSynced(c *coordinator, h *held, r *kmsg.SyncGroupResponse) {
	w, a := p.w, h.request.ask
	who := memberOf{a.group, a.member}
	if c.zombie || p.gone[who] > h.seq || w.log.written8(who) > h.seq {
		return
	}
	var m rosterMember
	if all := w.log.rosters[a.group]; all != nil {
		m = all.members[a.member]
	}
	told := w.topics.parts(parseAssignment(r.MemberAssignment))
	if m.says == nil || m.epoch() != a.generation {
		w.Violated("%s is answered, durable is epoch %d (4)", h.request, m.epoch())
	}
	for _, tp := range told {
		if _, ok := m.assigned[tp]; !ok {
			continue // Its topic is another since.
		}
		p.tell(who, tp, h.seq)
	}
}

// formedTwice is what given checks, of groups that go over: it is too early there, since
// no one is told of a generation before it is stored that the group is a classic one.
func (p *promises) formedTwice(h *held, r *kmsg.JoinGroupResponse) {
	m := membership{h.request.ask.group, r.MemberID, r.Generation}
	if other := p.gave[m]; other != nil && other != h.former {
		p.w.Violated("%s: %s was told of another generation %d before", m.group, short(m.member), m.number)
	}
	p.gave[m] = h.former
}

// tell notes that a member is told by a step to have a partition, which no one else may
// have. If the answer took so long to be let out that its client has said meanwhile that
// it does not have it, no one waits for that answer any more.
func (p *promises) tell(who memberOf, tp part, seq uint64) {
	if last := p.said[who]; seq < last.seq && last.lacks(tp) {
		p.w.Count("told of a partition after it had let go of it")
		return
	}
	if p.held[who.group] == nil {
		p.held[who.group] = map[part]string{}
	}
	if other, ok := p.held[who.group][tp]; ok && other != who.member {
		p.w.Violated("%s: %s is told to have %v, and %s was and has not let go of it (5)", who.group, who.member, tp, other)
	}
	p.held[who.group][tp] = who.member
}
