package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// beaten is a consumer group's part of a step, while it is checked.
type beaten struct {
	c             *coordinator
	v             *view
	why           cause
	before, after *roster
	request       *kmsg.ConsumerGroupHeartbeatRequest  // that is answered without an error, or leaves
	answer        *kmsg.ConsumerGroupHeartbeatResponse // to it
	actor         string                               // whose it is
	q             *kmsg.ConsumerGroupHeartbeatRequest  // that came with this step, if one did and was taken
	overtakes     bool                                 // the next heartbeat came before the answer to one that waited
	gone          []string                             // members that are no more
	heir          map[string]string                    // of a static member that has left: who took its place
	classic       bool                                 // the actor uses the classic protocol
	up            bool                                 // it was a classic group with members before
	down          *schema.GroupRecord                  // it is a classic group after it, nil if not
}

// The invariants of the consumer protocol. Violations name them by number.
//
//	 1  no partition is in what two members have, or have yet to let go of
//	 2  what a member has was in a target of its own
//	 3  member epoch ≤ target epoch ≤ group epoch, and none goes back
//	 4  what a member is told to have is durable
//	 5  nothing is given to a member before its owner has said that it has let go of it, or was fenced
//	 6  a stable member has what of its target it subscribes to
//	 7  who has to let go has a timer
//	 8  there is one member of an instance id
//	 9  a target is what the assignor says of its input, and a partition of all that is subscribed to
//	10  a commit of an epoch before a partition was given is not stored (see consumerCommitCode)
//	11  left alone, the group is soon Stable (see unsettledConsumers)
//	12  what was stored, compacted or not, says what the shard knows (see record and replay)

// checkConsumers holds a step against the rules of the consumer protocol.
func (c *coordinator) checkConsumers(v *view, why cause, wants *verdict, e *entry) {
	b := c.newBeaten(v, why, wants, e)
	b.countPatterns(e)
	b.findActor(wants, e)
	b.checkGone(wants)
	b.checkHeirs(e)
	b.checkDirection(wants)
	b.checkHolders()
	b.checkEpochs()
	b.checkReleases()
	b.checkGrants()
	b.checkInstances()
	b.checkTargets()
	b.checkSparing(e)
	b.checkAnswer()
	b.checkNothing(wants)
	b.note()
	if b.request != nil && !c.void {
		now := b.after.members[b.actor]
		c.w.promises.letGo(b.request, &now)
	}
	v.roster = b.after
	b.noteClassic(wants, e)
	if b.down != nil {
		b.becomeClassic(wants, e)
		return
	}
	b.exist(wants, e)
	if len(e.records) > 0 {
		c.probeOffsets(v.id)
		b.describe()
	}
}

// findActor finds whose heartbeat is acted upon: the one that came, or one that has
// waited for the assignor.
func (b *beaten) findActor(wants *verdict, e *entry) {
	if q := b.why.request; q != nil && q.ask.group == b.v.id && len(wants.codes) == 1 && wants.codes[0] == 0 {
		if m, ok := q.msg.(*kmsg.ConsumerGroupHeartbeatRequest); ok {
			b.q, b.actor = m, m.MemberID
		}
		if m, ok := q.msg.(*kmsg.JoinGroupRequest); ok && wants.act == actMixedJoin {
			b.joinAsBeat(m, e)
		}
	}
	for i := range e.replies {
		h := &e.replies[i]
		m, ok := h.request.msg.(*kmsg.ConsumerGroupHeartbeatRequest)
		if !ok || m.Group != b.v.id {
			continue
		}
		r := h.msg.(*kmsg.ConsumerGroupHeartbeatResponse)
		if h.request != b.why.request {
			b.c.w.Count("heartbeat answered after it had waited")
		}
		_, done := b.why.event.(machine.TaskDone)
		switch {
		case r.ErrorCode != 0:
		case h.request == b.why.request || done:
			b.request, b.answer, b.actor = m, r, m.MemberID
		default:
			h.old, b.overtakes = true, true
			b.c.w.Count("heartbeat overtaken by the next")
		}
		if r.ErrorCode != 0 && h.request != b.why.request && r.ErrorCode != codeUnknownMember && r.ErrorCode != codeFencedEpoch {
			b.c.w.Violated("%s: %s has waited, and is told %d", b.v.id, h.request, r.ErrorCode)
		}
	}
	if b.q != nil && b.q.MemberEpoch >= 0 || b.request != nil && b.request.MemberEpoch >= 0 {
		b.v.heard[b.actor], b.v.greeted[b.actor] = b.c.w.Now, true
		b.c.hears(b.v.id, b.actor)
	}
	if b.q != nil && b.q.MemberEpoch == -2 && b.c.hears(b.v.id, b.actor) {
		b.v.heard[b.actor] = b.c.w.Now
	}
}

// checkGone checks that no one is a member no more without a reason: it left, was
// not heard of for its session timeout, has not let go in its rebalance timeout, or
// another took its place.
func (b *beaten) checkGone(wants *verdict) {
	w, v := b.c.w, b.v
	for _, id := range b.before.ids() {
		if _, ok := b.after.members[id]; ok {
			continue
		}
		m := b.before.members[id]
		b.gone = append(b.gone, id)
		leaves := b.q != nil && b.q.MemberEpoch == -1 && b.actor == id
		expires := (wants.act == actExpire || wants.act == actRevoke || wants.act == actLeave) && slices.Contains(wants.forget, id)
		takes := b.q != nil && b.q.MemberEpoch == 0 && (m.epoch() == -2 || m.isClassic() || b.classic) && b.q.InstanceID != nil && m.says.Instance != nil && *b.q.InstanceID == *m.says.Instance
		_, loads := b.why.event.(machine.Loaded)
		switch {
		case takes:
			b.heir[b.actor] = id
			w.Count("static member taken over")
			w.moment(momentReplaced)
		case leaves:
			w.Count("consumer gone by leave")
		case expires && wants.act == actLeave:
			w.Count("consumer removed by an administrator")
		case expires && wants.act == actRevoke:
			w.Count("fenced by the rebalance timeout")
			w.moment(momentFencing)
		case expires:
			w.Count("fenced by the session timeout")
			w.moment(momentFencing)
		case loads && (m.says == nil || b.holdsTwice(id)):
			w.Count("leftover of a member removed by a load")
		default:
			w.Violated("%s: %s is a member no more, for no reason", v.id, id)
		}
		if !takes && b.down == nil && b.after.hasEpoch && b.after.epoch <= b.before.epoch && !(loads && m.says == nil) {
			w.Violated("%s: %s is a member no more, and the group has no other epoch than %d", v.id, id, b.after.epoch)
		}
		delete(v.heard, id)
		delete(v.revoking, id)
	}
	for _, id := range wants.forget {
		if _, ok := b.after.members[id]; ok {
			w.Violated("%s: the time of %s is over (%s), and it is still a member", v.id, id, wants.act)
		}
	}
	if b.q != nil && b.q.MemberEpoch == -1 && len(b.gone) != 1 {
		w.Violated("%s: %s has left, and is still a member", v.id, b.actor)
	}
}

// holdsTwice says whether a member has something that another has too.
func (b *beaten) holdsTwice(id string) bool {
	mine := b.before.members[id]
	for _, other := range b.before.ids() {
		o := b.before.members[other]
		for _, set := range []map[part]int32{mine.assigned, mine.pending} {
			for p := range set {
				if _, has := o.since(p); has && other != id {
					return true
				}
			}
		}
	}
	return false
}

// checkHolders: no partition is in what two members have or have yet to let go of.
func (b *beaten) checkHolders() {
	holder := map[part]string{}
	for _, id := range b.after.ids() {
		m := b.after.members[id]
		for _, set := range []map[part]int32{m.assigned, m.pending} {
			for _, p := range partsThat(set, func(p part) bool { return holder[p] != "" }) {
				b.c.w.Violated("%s: partition %v is %s's and %s's (1)", b.v.id, p, holder[p], id)
			}
			for p := range set {
				holder[p] = id
			}
		}
	}
}

// checkEpochs: member ≤ target ≤ group, and none goes back.
func (b *beaten) checkEpochs() {
	w, v := b.c.w, b.v
	if b.after.target > b.after.epoch || b.after.hasEpoch && (b.after.epoch < b.before.epoch || b.after.target < b.before.target) {
		w.Violated("%s: the group comes from epoch %d with target %d to %d with %d (3)", v.id, b.before.epoch, b.before.target, b.after.epoch, b.after.target)
	}
	for _, id := range b.after.ids() {
		now, was := b.after.members[id], b.before.members[id]
		if now.epoch() > b.after.target || now.epoch() < was.epoch() && now.epoch() != -2 {
			w.Violated("%s: %s comes from epoch %d to %d, the target is %d (3)", v.id, id, was.epoch(), now.epoch(), b.after.target)
		}
	}
}

// checkReleases: what a member had it has still, or has to let go of, unless it has
// said that it has let go: by a list that omits it, or by joining anew. Who says
// nothing of what it has still has it.
func (b *beaten) checkReleases() {
	w := b.c.w
	for _, id := range b.before.ids() {
		was, now := b.before.members[id], b.after.members[id]
		if slices.Contains(b.gone, id) {
			continue
		}
		left := b.q != nil && b.q.MemberEpoch == -2 && b.actor == id
		for _, set := range []map[part]int32{was.assigned, was.pending} {
			for _, p := range partsThat(set, func(p part) bool { _, has := now.since(p); return !has }) {
				switch {
				case left && !holdsPart(was.assigned, p):
				case id != b.actor || b.request == nil:
					w.Violated("%s: %s has %v no more, and has said nothing (5)", b.v.id, id, p)
				case b.request.MemberEpoch != 0 && (b.request.Topics == nil || owns(b.request, p)):
					w.Violated("%s: %s has %v no more, and has not let go of it (5)", b.v.id, id, p)
				}
				w.moment(momentReleased)
				w.Count("partition let go of")
			}
		}
	}
}

// owns says whether a heartbeat says that its client has a partition.
func owns(m *kmsg.ConsumerGroupHeartbeatRequest, p part) bool {
	return slices.ContainsFunc(m.Topics, func(t kmsg.ConsumerGroupHeartbeatRequestTopic) bool {
		return t.TopicID == p.topic && slices.Contains(t.Partitions, p.n)
	})
}

// checkGrants: what a member is given is in its target, no one else has it, and it is
// its own from the target's epoch on.
func (b *beaten) checkGrants() {
	w := b.c.w
	for _, id := range b.after.ids() {
		now, was := b.after.members[id], b.before.members[id]
		if old, ok := b.heir[id]; ok {
			was = b.before.members[old]
		}
		for _, p := range partsThat(now.assigned, func(p part) bool { return !holdsPart(was.assigned, p) }) {
			switch {
			case !now.target[p]:
				w.Violated("%s: %s is given %v, which it is not to have (2)", b.v.id, id, p)
			case id != b.actor:
				w.Violated("%s: %s is given %v with a heartbeat of %s", b.v.id, id, p, b.actor)
			case now.assigned[p] != b.after.target:
				w.Violated("%s: %s is given %v in epoch %d, which counts from %d", b.v.id, id, p, b.after.target, now.assigned[p])
			}
			if _, mine := was.pending[p]; mine {
				w.Count("partition given back while it was let go of")
			}
			for _, other := range b.before.ids() {
				o := b.before.members[other]
				if _, has := o.since(p); has && other != id && other != b.heir[id] {
					w.Violated("%s: %s is given %v, which is %s's (5)", b.v.id, id, p, other)
				}
			}
			w.Count("partition given")
			w.moment(momentGranted)
		}
	}
}

// checkInstances: there is one member of an instance id.
func (b *beaten) checkInstances() {
	seen := map[string]string{}
	for _, id := range b.after.ids() {
		says := b.after.members[id].says
		if says == nil {
			b.c.w.Violated("%s: %s is there and has not joined", b.v.id, id)
		}
		if says.Instance == nil {
			continue
		}
		if other, ok := seen[*says.Instance]; ok {
			b.c.w.Violated("%s: %s and %s are instance %s (8)", b.v.id, other, id, *says.Instance)
		}
		seen[*says.Instance] = id
	}
}

// checkNothing checks that what must not change anything does not: timers that were
// replaced, and requests that are refused. Whoever leaves for a while changes nothing
// for the others.
func (b *beaten) checkNothing(wants *verdict) {
	w, v := b.c.w, b.v
	same := b.before.epoch == b.after.epoch && b.before.target == b.after.target && len(b.before.members) == len(b.after.members)
	switch {
	case b.q != nil && b.q.MemberEpoch == -2:
		if m := b.after.members[b.actor]; m.epoch() != -2 || !same || len(m.pending) > 0 {
			w.Violated("%s: %s has left for a while, and the group is another", v.id, b.actor)
		}
		w.Count("static member left for a while")
	case b.why.timer != nil && wants.act == actNone && b.why.timer.Kind != group.TimerSweep && !same:
		w.Violated("%s: a timer that is over has effects", v.id)
	case b.why.request != nil && b.q == nil && b.why.request.ask.key == kmsg.ConsumerGroupHeartbeat.Int16() && !same:
		w.Violated("%s: %s is refused, and has effects", v.id, b.why.request)
	}
}

// note notes since when members have had to let go, and what is worth counting.
func (b *beaten) note() {
	w := b.c.w
	for _, id := range b.after.ids() {
		now, was := b.after.members[id], b.before.members[id]
		if was.says == nil || !slices.Equal(was.says.Topics, now.says.Topics) || !sameText(was.says.Regex, now.says.Regex) {
			b.v.rewants[id] = true
		}
		if now.current == was.current {
			continue
		}
		b.v.revoking[id] = w.Now
		if _, ok := b.v.heard[id]; !ok {
			b.v.heard[id] = w.Now
		}
		if now.state() == memberUnrevoked {
			w.Count("member has to let go")
			w.moment(momentRevoking)
		}
		if now.state() == memberUnreleased {
			w.Count("member waits for others to let go")
		}
	}
	if b.request == nil || b.q == nil {
		return
	}
	was := b.before.members[b.actor]
	if b.q.MemberEpoch > 0 && b.q.MemberEpoch < was.epoch() {
		w.Count("heartbeat of the previous epoch after a lost answer")
	}
	if b.q.MemberEpoch == 0 && was.current != nil && was.epoch() > 0 {
		w.Count("member joins again in state " + []string{"stable", "unrevoked", "unreleased"}[was.state()])
	}
	if was.state() == memberUnrevoked && b.before.epoch != b.after.epoch {
		w.Count("target moves while a member lets go")
	}
}

// exist decides whether the group still exists, and in which state.
func (b *beaten) exist(wants *verdict, e *entry) {
	v, c := b.v, b.c
	hasOffsets := c.offsets.has(v.id) || c.offsets.waits(v.id)
	exists := v.record || hasOffsets || !b.after.isGone()
	v.state, v.protocolType = stateEmpty, ""
	if !b.after.isGone() {
		v.state, v.protocolType = b.after.state(), consumerType
	}
	if wants.act == actSweep && exists && !hasOffsets && v.state == stateEmpty {
		c.w.Violated("%s: a sweep leaves it, though it has no members and no offsets", v.id)
	}
	if v.exists && !exists {
		c.w.Count("consumer group gone")
		e.ended = append(e.ended, v.id)
		*v = *c.newView(v.id, v.life+1)
	}
	v.exists = exists
}

// describe compares what the group says of itself with its records.
func (b *beaten) describe() {
	c, v := b.c, b.v
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Version, req.Groups = 1, []string{v.id}
	fx := c.shard.Step(machine.Input{Now: c.w.Clock(), Image: c.w.topics.image, Event: machine.Request{ID: 1 << 62, Msg: req}})
	g := fx.Replies[0].Msg.(*kmsg.ConsumerGroupDescribeResponse).Groups[0]
	if !v.hasConsumers() {
		if g.ErrorCode != codeGroupNotFound {
			c.w.Violated("%s: it is there, and should not", v.id)
		}
		return
	}
	r := v.roster
	if g.State != v.state || g.Epoch != r.epoch || g.AssignmentEpoch != r.target || len(g.Members) != len(r.members) {
		c.w.Violated("%s: it says that it is %s in epoch %d with target %d and %d members, should be %s, %d, %d, %d", v.id, g.State, g.Epoch, g.AssignmentEpoch, len(g.Members), v.state, r.epoch, r.target, len(r.members))
	}
	for _, m := range g.Members {
		if member := r.members[m.MemberID]; member.says == nil || member.epoch() != m.MemberEpoch {
			c.w.Violated("%s: it says that %s is in epoch %d", v.id, m.MemberID, m.MemberEpoch)
		}
	}
}

// checkConsumerTimers: who has to let go of something has a timer for that, and
// everybody one to be heard of (7).
func (c *coordinator) checkConsumerTimers(why cause) {
	if len(c.w.plan.consumers) == 0 {
		return
	}
	for _, v := range c.touched(why) {
		if !v.isOfConsumers() {
			continue
		}
		want := v.consumerTimers()
		for _, k := range want {
			t, ok := c.timers[k]
			m := v.roster.members[k.Member]
			if limit := c.w.Clock().Add(time.Duration(m.says.RebalanceTimeoutMillis) * time.Millisecond); !ok || k.Kind == group.TimerRevoke && t.At.After(limit) {
				c.w.Violated("%s: there is no timer %v, or too late (7)", v.id, k)
			}
		}
		for k := range c.timers {
			if k.ID == v.id && !slices.Contains(want, k) {
				c.w.Violated("%s: timer %v is left over", v.id, k)
			}
		}
	}
}
