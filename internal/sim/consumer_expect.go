package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/machine"
)

// consumerView is what the checker believes of a consumer group beyond its records.
type consumerView struct {
	topics   *topics
	roster   *roster                  // with what is not durable yet
	heard    map[string]time.Duration // when a member was
	revoking map[string]time.Duration // since when a member has been told to let go of something
	greeted  map[string]bool          // members of which a heartbeat was taken since the load
	rewants  map[string]bool          // members that have subscribed to something else since the load
	joinBy   map[string]time.Duration // when a member of the classic protocol must have joined again
	syncBy   map[string]time.Duration // when it must have asked for what it has
	jumps    bool                     // it was loaded, and has had no other epoch since: the next leaps
}

func newConsumerView(t *topics) *consumerView {
	return &consumerView{
		topics: t, roster: newRoster(), heard: map[string]time.Duration{}, revoking: map[string]time.Duration{}, greeted: map[string]bool{}, rewants: map[string]bool{},
		joinBy: map[string]time.Duration{}, syncBy: map[string]time.Duration{},
	}
}

// hasConsumers says that there is a consumer group, be it empty, and not only
// offsets.
func (v *view) hasConsumers() bool { return v.consumerView != nil && !v.roster.isGone() }

// consumer returns a member, nil if there is none.
func (v *view) consumer(id string) *rosterMember {
	if !v.hasConsumers() {
		return nil
	}
	if m, ok := v.roster.members[id]; ok {
		return &m
	}
	return nil
}

// loadConsumers derives the views of consumer groups from their records.
func (c *coordinator) loadConsumers() {
	for id, r := range c.w.log.rosters {
		if r.isGone() {
			continue
		}
		v := c.view(id)
		v.exists, v.roster, v.state, v.protocolType, v.jumps = true, r.clone(), r.state(), consumerType, true
		for member := range r.members {
			v.heard[member], v.revoking[member] = c.w.Now, c.w.Now
		}
		if v.state != stateStable && v.state != stateEmpty {
			c.w.Count("consumer group loaded while it is " + v.state)
		}
	}
}

// expectBeat has Kafka's checks in Kafka's order.
func (c *coordinator) expectBeat(v *view, m *kmsg.ConsumerGroupHeartbeatRequest) verdict {
	code := c.beatCode(v, m)
	out := verdict{codes: []int16{code}, parks: code == 0 && m.MemberEpoch >= 0 && c.config.Consumer.AtOnce > 0}
	if isMixed(v.id) && code == 0 && !v.hasConsumers() {
		if out.becomes = typeConsumer; v.isRunning() && c.w.plan.maxBatch > 0 {
			out.or = codeGroupNotFound
		}
	}
	return out
}

func (c *coordinator) beatCode(v *view, m *kmsg.ConsumerGroupHeartbeatRequest) int16 {
	joins, leaves := m.MemberEpoch == 0, m.MemberEpoch < 0
	if !v.hasConsumers() {
		switch {
		case joins && v.isRunning():
			return c.upgradeCode(v, m)
		case joins:
			return 0
		}
		return codeGroupNotFound
	}
	known, isKnown := v.roster.members[m.MemberID]
	full := !isKnown && !leaves && len(v.roster.members) >= c.config.Consumer.MaxSize
	if m.InstanceID != nil {
		id := v.roster.static(*m.InstanceID)
		holder := v.roster.members[id]
		left := id != "" && (holder.epoch() == -2 || holder.isClassic())
		switch {
		case joins && left:
			return 0
		case full:
			return codeMaxSize
		case id == "" && !joins:
			return codeUnknownMember
		case id == "" || id == m.MemberID:
		case joins:
			return codeUnreleased
		default:
			return codeFencedInstance
		}
	}
	switch {
	case full:
		return codeMaxSize
	case !isKnown && !joins:
		return codeUnknownMember
	case !isKnown || leaves || joins:
		return 0
	}
	if code := known.epochCode(m); code != 0 || !known.isAhead(m) || v.greeted[m.MemberID] {
		return code
	}
	return codeFencedEpoch
}

// isAhead says whether a client has something that its member has not, in the epoch in
// which it is: the log has lost that.
func (m *rosterMember) isAhead(q *kmsg.ConsumerGroupHeartbeatRequest) bool {
	for _, t := range q.Topics {
		for _, n := range t.Partitions {
			if _, has := m.since(part{t.TopicID, n}); !has && q.MemberEpoch == m.epoch() {
				return true
			}
		}
	}
	return false
}

// epochCode says whether a member may go on from the epoch that it names.
func (m *rosterMember) epochCode(q *kmsg.ConsumerGroupHeartbeatRequest) int16 {
	if q.MemberEpoch == m.epoch() {
		return 0
	}
	if m.current == nil || q.MemberEpoch > m.epoch() || q.MemberEpoch != m.current.Previous || q.Topics == nil {
		return codeFencedEpoch
	}
	for _, t := range q.Topics {
		for _, n := range t.Partitions {
			if _, ok := m.assigned[part{t.TopicID, n}]; !ok {
				return codeFencedEpoch
			}
		}
	}
	return 0
}

// expectConsumersLeave says what becomes of a LeaveGroup by which an administrator
// removes members of a consumer group.
func expectConsumersLeave(v *view, m *kmsg.LeaveGroupRequest) verdict {
	out, members := verdict{act: actLeave}, m.Members
	if m.Version < 3 {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID}}
	} else {
		out.codes = append(out.codes, 0)
	}
	for _, e := range members {
		id, code := e.MemberID, int16(0)
		if e.InstanceID != nil {
			id = v.roster.static(*e.InstanceID)
			if slices.Contains(out.forget, id) {
				id = ""
			}
		}
		_, known := v.roster.members[id]
		switch {
		case e.InstanceID != nil && id != "" && e.MemberID != "" && e.MemberID != id:
			code = codeFencedInstance
		case !known || slices.Contains(out.forget, id):
			code = codeUnknownMember
		default:
			out.forget = append(out.forget, id)
		}
		out.codes = append(out.codes, code)
	}
	return out
}

func (c *coordinator) expectFetch(m *kmsg.OffsetFetchRequest) verdict {
	out := verdict{codes: make([]int16, len(m.Groups))}
	for i, g := range m.Groups {
		v := c.view(g.Group)
		if !v.hasConsumers() || g.MemberID == nil && g.MemberEpoch < 0 {
			continue
		}
		switch member, ok := v.roster.members[*g.MemberID]; {
		case !ok:
			out.codes[i] = codeUnknownMember
		case member.epoch() != g.MemberEpoch && member.isClassic():
			out.codes[i] = codeIllegalGeneration
		case member.epoch() != g.MemberEpoch:
			out.codes[i] = codeStaleEpoch
		}
	}
	return out
}

func (c *coordinator) expectConsumerDescribe(m *kmsg.ConsumerGroupDescribeRequest) verdict {
	var out verdict
	for _, id := range m.Groups {
		code := int16(0)
		if !c.view(id).hasConsumers() {
			code = codeGroupNotFound
		}
		out.codes = append(out.codes, code)
	}
	return out
}

// consumerCommitCode says whether a commit to a consumer group is in order: of the
// member's epoch, or of an older one for what it has had since (KIP-1251).
func consumerCommitCode(v *view, m *kmsg.OffsetCommitRequest) int16 {
	member, ok := v.roster.members[m.MemberID]
	switch {
	case m.Generation < 0 && len(v.roster.members) == 0:
		return 0
	case !ok:
		return codeUnknownMember
	case m.Version < 9 && !member.isClassic():
		return codeUnsupported
	}
	var list []topicPartition
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			list = append(list, topicPartition{t.Topic, p.Partition})
		}
	}
	switch {
	case v.inOrder(&member, list, m.Generation):
		return 0
	case member.isClassic():
		return codeIllegalGeneration
	}
	return codeStaleEpoch
}

// consumerTxnCode is the same for offsets in a transaction.
func consumerTxnCode(v *view, m *kmsg.TxnOffsetCommitRequest) int16 {
	member, ok := v.roster.members[m.MemberID]
	switch {
	case m.Generation < 0 && (len(v.roster.members) == 0 || m.MemberID == "" && m.InstanceID == nil):
		return 0
	case !ok:
		return codeUnknownMember
	}
	var list []topicPartition
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			list = append(list, topicPartition{t.Topic, p.Partition})
		}
	}
	if !v.inOrder(&member, list, m.Generation) {
		return codeIllegalGeneration
	}
	return 0
}

// inOrder says whether a member may commit offsets of these in an epoch.
func (v *view) inOrder(m *rosterMember, list []topicPartition, epoch int32) bool {
	return epoch == m.epoch() || v.hadAll(m, list, epoch)
}

// hadAll says whether a member has had all of these since an epoch, or longer.
func (v *view) hadAll(m *rosterMember, list []topicPartition, epoch int32) bool {
	if epoch < 0 || epoch > m.epoch() {
		return false
	}
	for _, tp := range list {
		t := v.topics.image.Topic(tp.topic)
		if t == nil {
			return false
		}
		if since, ok := m.since(part{t.ID, tp.partition}); !ok || since > epoch {
			return false
		}
	}
	return true
}

// holdsNamed says whether a member has a partition.
func (v *view) holdsNamed(w *world, member, topic string, n int32) bool {
	t := w.topics.image.Topic(topic)
	m, ok := v.roster.members[member]
	if t == nil || !ok {
		return false
	}
	_, ok = m.since(part{t.ID, n})
	return ok
}

// expectConsumerTimer says whom a timer that has not been replaced takes away.
func (c *coordinator) expectConsumerTimer(v *view, key machine.TimerKey) verdict {
	m, ok := v.roster.members[key.Member]
	switch {
	case !ok:
	case key.Kind == group.TimerSession && c.w.Now >= v.heard[key.Member]+c.sessionOf(&m):
		return verdict{act: actExpire, forget: []string{key.Member}}
	case key.Kind == group.TimerJoin || key.Kind == group.TimerSync:
		until := v.joinBy
		if key.Kind == group.TimerSync {
			until = v.syncBy
		}
		at, ok := until[key.Member]
		if !ok {
			c.w.Violated("%s: %s has a timer that nobody should have armed: %v", v, key.Member, key)
		}
		c.checkEarly(v, key, at)
		c.w.Count("fenced because it has not come to " + key.Kind)
		return verdict{act: actExpire, forget: []string{key.Member}}
	case key.Kind == group.TimerRevoke:
		if m.state() != memberUnrevoked {
			c.w.Violated("%s: %s has a timer to let go of nothing", v, key.Member)
		}
		c.checkEarly(v, key, v.revoking[key.Member]+time.Duration(m.says.RebalanceTimeoutMillis)*time.Millisecond)
		return verdict{act: actRevoke, forget: []string{key.Member}}
	}
	return verdict{}
}

// actRevoke is the end of the time in which a member must have let go.
const actRevoke act = "revoke"

// consumerTimers lists the timers that there must be.
func (v *view) consumerTimers() (out []machine.TimerKey) {
	if v.consumerView == nil {
		return nil
	}
	for _, id := range v.roster.ids() {
		m := v.roster.members[id]
		out = append(out, machine.TimerKey{Kind: group.TimerSession, ID: v.id, Member: id})
		if m.state() == memberUnrevoked && !m.isClassic() {
			out = append(out, machine.TimerKey{Kind: group.TimerRevoke, ID: v.id, Member: id})
		}
		if _, ok := v.joinBy[id]; ok {
			out = append(out, machine.TimerKey{Kind: group.TimerJoin, ID: v.id, Member: id})
		}
		if _, ok := v.syncBy[id]; ok {
			out = append(out, machine.TimerKey{Kind: group.TimerSync, ID: v.id, Member: id})
		}
	}
	return out
}

// leaveRequests has everybody leave.
func (v *view) leaveRequests() (out []kmsg.Request) {
	if v.consumerView == nil {
		return nil
	}
	for _, id := range v.roster.ids() {
		if isMixed(v.id) {
			m := kmsg.NewPtrLeaveGroupRequest()
			m.Version, m.Group, m.MemberID = 2, v.id, id
			out = append(out, m)
			continue
		}
		m := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		m.Version, m.Group, m.MemberID, m.MemberEpoch, m.RebalanceTimeoutMillis = 1, v.id, id, -1, -1
		m.InstanceID = v.roster.members[id].says.Instance
		out = append(out, m)
	}
	return out
}
