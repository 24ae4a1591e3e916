package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// newBeaten begins to check a step of a group that is a consumer group after it, or was
// one before.
func (c *coordinator) newBeaten(v *view, why cause, wants *verdict, e *entry) *beaten {
	b := &beaten{c: c, v: v, why: why, before: v.roster, heir: map[string]string{}}
	v.converted = false
	b.after = v.roster.clone()
	if wants.becomes == typeConsumer {
		b.disband(e)
	}
	cut := len(e.originals)
	if isMixed(v.id) {
		b.down, cut = downgradeIn(v.id, e.originals)
	}
	for _, r := range e.originals[:cut] {
		if consumerGroupOf(r) == v.id {
			b.after.apply(r, e.seq)
		}
		if r, ok := r.(*schema.GroupRecord); ok && r.Group == v.id {
			v.record = r.Value != nil
		}
	}
	if b.up {
		b.checkWholeUpgrade(e)
	}
	if b.down == nil {
		return b
	}
	// Whose leaving is the reason is left out with the rest.
	for _, id := range wants.forget {
		delete(b.after.members, id)
	}
	if q := why.request; q != nil && q.ask.key == kmsg.ConsumerGroupHeartbeat.Int16() {
		delete(b.after.members, q.ask.member)
	}
	return b
}

// downgradeIn finds where records begin to make a classic group of a consumer group: at
// the tombstones before a record of the classic group.
func downgradeIn(id string, records []machine.Record) (*schema.GroupRecord, int) {
	for i, r := range records {
		to, ok := r.(*schema.GroupRecord)
		if !ok || to.Group != id || to.Value == nil {
			continue
		}
		cut := i
		for cut > 0 && consumerGroupOf(records[cut-1]) == id && isTombstone(records[cut-1]) {
			cut--
		}
		return to, cut
	}
	return nil, len(records)
}

func isTombstone(r machine.Record) bool {
	_, value := r.Encode()
	return value == nil
}

// disband is the end of a classic group that goes on as a consumer group: who waits to
// join has joined, who waits for its assignment is told to join again, and its members have
// what they were assigned last.
func (b *beaten) disband(e *entry) {
	v, c := b.v, b.c
	syncBy := map[string]time.Duration{}
	for _, s := range v.seats {
		for _, q := range []*request{s.join, s.sync} {
			if q == nil {
				continue
			}
			i := slices.IndexFunc(e.replies, func(h held) bool { return h.request == q })
			switch {
			case i >= 0 && q == s.join && !b.isReplaced(s):
				b.checkJoined(s, e.replies[i].msg.(*kmsg.JoinGroupResponse))
				syncBy[s.id] = c.w.Now + s.rebalance
			case i < 0 || codeOf(e.replies[i].msg) != codeRebalanceInProgress:
				c.w.Violated("%s: it becomes a consumer group, and %s is not told to join again", v, q)
			}
		}
	}
	b.before, b.after = newRoster(), newRoster()
	if v.isRunning() {
		b.before = v.asRoster()
		b.up = true
		c.w.Count("online upgrade in state " + v.state)
		c.w.moment(momentUpgraded)
	} else if v.record {
		c.w.Count("offline upgrade")
	}
	e.upgraded = c.w.promises.upgrades(v.id, b.before)
	fresh := c.newView(v.id, v.life+1)
	fresh.exists, fresh.record = v.exists, v.record
	for _, s := range v.seats { // There is nothing that was lost of them.
		fresh.greeted[s.id] = true
	}
	fresh.syncBy = syncBy
	*v = *fresh
	c.forgetFenced(v.id)
}

// isReplaced says whether the newcomer takes the place of a member of the classic group.
func (b *beaten) isReplaced(s *seat) bool {
	m, ok := b.why.request.msg.(*kmsg.ConsumerGroupHeartbeatRequest)
	return ok && (m.MemberID == s.id || m.InstanceID != nil && s.instance != nil && *m.InstanceID == *s.instance)
}

// checkJoined checks what a member is told whose join waited when the group went over: it
// is where it was, and goes by its own first protocol.
func (b *beaten) checkJoined(s *seat, r *kmsg.JoinGroupResponse) {
	if r.ErrorCode != 0 || r.Generation != max(b.v.generation, 1) || r.MemberID != s.id || r.LeaderID != "" || len(r.Members) > 0 || r.SkipAssignment ||
		r.Protocol == nil || *r.Protocol != s.protocols[0].Name {
		b.c.w.Violated("%s: it becomes a consumer group, and %s is told %+v", b.v, short(s.id), r)
	}
	b.c.w.Count("join answered when its group was upgraded")
}

// forgetFenced forgets who was told that another has its place: so does the group.
func (c *coordinator) forgetFenced(id string) {
	for p := range c.fenced {
		if p.group == id {
			delete(c.fenced, p)
		}
	}
}

// asRoster is the consumer group that a classic one becomes: everybody is stable in the
// epoch that is its generation, with what it was assigned last.
func (v *view) asRoster() *roster {
	r := newRoster()
	r.epoch, r.hasEpoch, r.hasTarget = max(v.generation, 1), true, true
	r.target = r.epoch
	for _, s := range v.seats {
		m := rosterMember{
			says: &schema.ConsumerMember{
				Instance: s.instance, RebalanceTimeoutMillis: int32(s.rebalance.Milliseconds()),
				Classic: &schema.ClassicMember{SessionTimeoutMillis: int32(s.session.Milliseconds())},
			},
			current: &schema.ConsumerCurrent{Epoch: r.epoch, Previous: r.epoch},
			target:  map[part]bool{}, assigned: map[part]int32{}, stored: true,
		}
		i := max(slices.IndexFunc(s.protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return p.Name == v.protocol }), 0)
		m.says.Topics = slices.Sorted(slices.Values(parseSubscription(s.protocols[i].Metadata).Topics))
		for _, p := range v.topics.parts(parseAssignment(s.assigned)) {
			m.target[p], m.assigned[p] = true, r.epoch
		}
		r.members[s.id] = m
	}
	return r
}

// parts finds partitions by the names of their topics, of those that exist.
func (t *topics) parts(list []topicPartition) []part {
	var out []part
	for _, tp := range list {
		if topic := t.image.Topic(tp.topic); topic != nil {
			out = append(out, part{topic.ID, tp.partition})
		}
	}
	slices.SortFunc(out, compareParts)
	return slices.Compact(out)
}

// joinAsBeat takes a join of the classic protocol for the heartbeat that it stands for.
func (b *beaten) joinAsBeat(m *kmsg.JoinGroupRequest, e *entry) {
	b.classic = true
	b.actor = m.MemberID
	i := slices.IndexFunc(e.replies, func(h held) bool { return h.request == b.why.request })
	switch {
	case i >= 0:
		r := e.replies[i].msg.(*kmsg.JoinGroupResponse)
		id := r.MemberID
		b.actor = id
		b.answer = &kmsg.ConsumerGroupHeartbeatResponse{MemberID: &id, MemberEpoch: r.Generation, HeartbeatIntervalMillis: int32(b.c.config.Consumer.Heartbeat.Milliseconds())}
		b.checkTold(r)
	case b.down == nil:
		b.c.w.Violated("%s: %s waits, and there is nothing to wait for", b.v.id, b.why.request)
	case m.MemberID == "" && m.InstanceID != nil:
		b.actor = b.after.static(*m.InstanceID)
	case m.MemberID == "":
		for _, id := range b.after.ids() {
			if _, ok := b.before.members[id]; !ok {
				b.actor = id
			}
		}
	}
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	was := b.before.members[b.actor]
	beat.Group, beat.MemberID, beat.InstanceID, beat.MemberEpoch = m.Group, b.actor, m.InstanceID, was.epoch()
	s := parseSubscription(m.Protocols[0].Metadata)
	var owned []topicPartition
	for _, t := range s.OwnedPartitions {
		for _, p := range t.Partitions {
			owned = append(owned, topicPartition{t.Topic, p})
		}
	}
	beat.RebalanceTimeoutMillis, beat.SubscribedTopicNames, beat.Topics = m.RebalanceTimeoutMillis, s.Topics, ownedTopics(b.c.w.topics.parts(owned))
	b.q, b.request = beat, beat
}

// checkTold checks what a member of the classic protocol is told when it joins: no one
// leads, and it goes by its own first protocol. If the group becomes a classic one without
// a rebalance, it leads: no one else would see that topics change.
func (b *beaten) checkTold(r *kmsg.JoinGroupResponse) {
	m := b.after.members[r.MemberID]
	switch {
	case !m.isClassic():
		b.c.w.Violated("%s: %s has joined, and is no member of the classic protocol", b.v.id, short(r.MemberID))
	case b.down == nil && (r.LeaderID != "" || len(r.Members) > 0 || r.SkipAssignment || r.Protocol == nil || *r.Protocol != m.says.Classic.Protocols[0].Name):
		b.c.w.Violated("%s: %s is told %+v", b.v.id, short(r.MemberID), r)
	case b.down != nil && b.isQuiet() && (r.LeaderID != r.MemberID || *b.down.Value.Leader != r.MemberID || len(r.Members) != len(b.after.members) || !r.SkipAssignment):
		b.c.w.Violated("%s: %s is not told that it leads: %+v", b.v.id, short(r.MemberID), r)
	}
}

// noteClassic notes what members of the classic protocol are waited for with, and checks
// what they are told to have.
func (b *beaten) noteClassic(wants *verdict, e *entry) {
	v, w := b.v, b.c.w
	v.jumps = v.jumps && b.after.epoch == b.before.epoch
	for _, id := range b.gone {
		delete(v.joinBy, id)
		delete(v.syncBy, id)
	}
	if b.why.request == nil || len(wants.codes) == 0 {
		return
	}
	id, code := b.why.request.ask.member, wants.codes[0]
	m := b.after.members[id]
	switch {
	case wants.act == actMixedJoin:
		m := b.after.members[b.actor]
		delete(v.joinBy, b.actor)
		v.heard[b.actor], v.syncBy[b.actor] = w.Now, w.Now+m.rebalance()
		b.c.hears(v.id, b.actor)
		w.Count("member of the classic protocol joins a consumer group")
	case wants.act != actMixedSync && wants.act != actMixedBeat:
		return
	case code == codeRebalanceInProgress:
		if _, ok := v.joinBy[id]; !ok {
			v.joinBy[id] = w.Now + m.rebalance()
		}
	case wants.act == actMixedSync:
		delete(v.syncBy, id)
		i := slices.IndexFunc(e.replies, func(h held) bool { return h.request == b.why.request })
		got := parseAssignment(e.replies[i].msg.(*kmsg.SyncGroupResponse).MemberAssignment)
		slices.SortFunc(got, comparePartitions)
		if want := w.namedParts(sortedParts(m.assigned)); !slices.Equal(got, want) {
			w.Violated("%s: %s is told to have %v, has %v", v.id, short(id), got, want)
		}
		w.Count("member of the classic protocol is told what it has")
	}
	if wants.act == actMixedBeat || code == 0 {
		v.heard[id], v.greeted[id] = w.Now, true
		b.c.hears(v.id, id)
	}
}

// checkForgotten checks that nothing is left of a consumer group that becomes a classic
// one, and that a classic group has no records of another.
func (c *coordinator) checkForgotten(v *view, e *entry) {
	v.converted = false
	if v.consumerView == nil {
		return
	}
	was := v.roster.isGone()
	if r := v.roster.after(v.id, e); !r.isGone() {
		c.w.Violated("%s: it is a classic group, and has records of a consumer group", v)
	}
	if !was {
		v.since, v.recordTime = -1, -1
		c.w.Count("offline downgrade")
		c.forgetFenced(v.id)
		v.consumerView = newConsumerView(&c.w.topics)
	}
}
