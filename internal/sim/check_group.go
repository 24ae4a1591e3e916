package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// stepped is one group's part of a step, while it is checked.
type stepped struct {
	c       *coordinator
	v       *view
	why     cause
	wants   *verdict
	after   kmsg.DescribeGroupsResponseGroup
	before  string // the state
	gone    map[*request]int16
	quiet   bool // a static member came back without a rebalance
	started bool // a join phase began
	formed  bool // a generation was
	settled bool // the leader's assignment came
	learned bool // what the first answer of the generation says
	ended   bool // the group no longer exists
	replies []held
	stale   []stale // who is told that another has its place
	vacant  []place // of static members that are gone
}

// stale is a static member's former id.
type stale struct{ instance, member string }

// reconcile brings a view up to date and compares it with the group.
func (c *coordinator) reconcile(v *view, why cause, wants *verdict, e *entry) {
	st := &stepped{c: c, v: v, why: why, wants: wants, after: c.probe(v.id), before: v.state, gone: map[*request]int16{}}
	for _, h := range e.replies {
		if h.request.ask.group == v.id {
			st.replies = append(st.replies, h)
		}
	}
	st.hearSeat()
	st.intend()
	st.depart()
	st.advance(e)
	st.answer()
	st.exist(e)
	st.checkJournal(e)
	if v.exists {
		st.compare()
		c.checkParked(v)
		c.checkTimes(v)
	}
	if len(e.records) > 0 {
		c.probeOffsets(v.id)
	}
}

// intend applies what the request itself asks for.
func (st *stepped) intend() {
	v, s, now := st.v, st.wants.seat, st.c.w.Now
	q := st.why.request
	if q != nil && q.ask.group == v.id && !v.exists && q.ask.key == kmsg.JoinGroup.Int16() && q.ask.member == "" {
		v.state = stateEmpty
		st.before = stateEmpty
	}
	for _, id := range st.wants.forget {
		delete(v.pending, id)
	}
	switch st.wants.act {
	case actPend:
		r := st.replies[0].msg.(*kmsg.JoinGroupResponse)
		m := q.msg.(*kmsg.JoinGroupRequest)
		v.pending[r.MemberID] = now + time.Duration(m.SessionTimeoutMillis)*time.Millisecond
	case actAdd:
		s = &seat{id: st.newID(), instance: q.ask.instance, isNew: true}
		s.hear(now)
		s.take(q)
		v.another = v.another || v.state == statePreparing && v.initial
		if len(v.seats) == 0 {
			v.protocolType = q.msg.(*kmsg.JoinGroupRequest).ProtocolType
		}
		v.seats = append(v.seats, s)
	case actReplace:
		if s.join != nil || s.sync != nil {
			st.stale = append(st.stale, stale{*s.instance, s.id})
		}
		st.supersede(s, codeFencedInstance)
		id := st.newID()
		if v.leader == s.id {
			v.leader = id
		}
		s.id, s.isNew = id, false
		s.hear(now)
		s.take(q)
		if v.state == stateStable {
			st.replaceStable(s)
		}
	case actRejoin:
		if s.join != nil {
			st.gone[s.join] = codeRebalanceInProgress
		}
		s.take(q)
	case actSync:
		if s.sync != nil {
			st.gone[s.sync] = codeRebalanceInProgress
		}
		s.synced = true
		if v.state == stateCompleting {
			s.sync = q
			st.lead(s)
		}
	case actTouch, actExtend:
		s.hear(now)
	}
}

// take notes what a join says of its member.
func (s *seat) take(q *request) {
	m := q.msg.(*kmsg.JoinGroupRequest)
	s.join = q
	s.session = time.Duration(m.SessionTimeoutMillis) * time.Millisecond
	s.rebalance = time.Duration(m.RebalanceTimeoutMillis) * time.Millisecond
	if m.Version == 0 {
		s.rebalance = s.session
	}
	s.protocols = nil
	for _, p := range m.Protocols {
		s.protocols = append(s.protocols, kmsg.JoinGroupRequestProtocol{Name: p.Name, Metadata: slices.Clone(p.Metadata)})
	}
}

// supersede notes how what a member has parked must be answered.
func (st *stepped) supersede(s *seat, code int16) {
	if s.join != nil {
		st.gone[s.join] = code
	}
	if s.sync != nil {
		st.gone[s.sync] = code
	}
	s.join, s.sync = nil, nil
}

// newID finds the id that a member was given in this step.
func (st *stepped) newID() string {
	if st.why.request.ask.member != "" {
		return st.why.request.ask.member
	}
	for _, m := range st.after.Members {
		if st.v.seat(m.MemberID) == nil {
			return m.MemberID
		}
	}
	st.c.w.Violated("%s: %s did not become a member", st.v, st.why.request)
	return ""
}

// replaceStable is the return of a static member to a Stable group: no one else
// notices, unless another protocol must be selected.
func (st *stepped) replaceStable(s *seat) {
	winners := st.v.winners()
	quiet := slices.ContainsFunc(st.replies, func(h held) bool { return h.request == st.why.request }) && st.after.State == stateStable
	stays := slices.Contains(winners, st.v.protocol)
	if quiet && !stays || !quiet && stays && len(winners) == 1 {
		st.c.w.Violated("%s: a static member comes back, quietly %t, though the protocols are %v", st.v, quiet, winners)
	}
	if quiet {
		s.join, st.quiet = nil, true
		st.c.w.Count("static member replaced quietly")
		st.c.w.moment(momentReplaced)
	} else {
		st.wants.starts = true
		st.c.w.Count("static member replaced with a rebalance")
	}
}

// lead takes the assignment if the member leads.
func (st *stepped) lead(s *seat) {
	if st.v.leader != s.id {
		return
	}
	st.settled = true
	st.c.w.moment(momentAssigned)
	m := st.why.request.msg.(*kmsg.SyncGroupRequest)
	st.c.w.strange[st.v.id] = st.v.isStrange(m)
	for _, s := range st.v.seats {
		s.assigned = nil
		for _, a := range m.GroupAssignment {
			if a.MemberID == s.id {
				s.assigned = a.MemberAssignment
			}
		}
	}
}

// isStrange says that an assignment was made for another generation of the same
// number: a number is given out again if the coordinator was lost before the
// generation was stored, and the old one's leader may have sent its assignment
// from a connection that it gave up since. Kafka takes it, and so do we: members
// that are not in it get nothing.
func (v *view) isStrange(m *kmsg.SyncGroupRequest) bool {
	unknown := slices.ContainsFunc(m.GroupAssignment, func(a kmsg.SyncGroupRequestGroupAssignment) bool { return v.seat(a.MemberID) == nil })
	return unknown && slices.ContainsFunc(v.seats, func(s *seat) bool {
		return !slices.ContainsFunc(m.GroupAssignment, func(a kmsg.SyncGroupRequestGroupAssignment) bool { return a.MemberID == s.id })
	})
}

// depart removes members that must be gone.
func (st *stepped) depart() {
	for _, s := range st.wants.leaving {
		i := slices.Index(st.v.seats, s)
		if i < 0 {
			continue
		}
		st.supersede(s, codeUnknownMember)
		st.v.seats = slices.Delete(st.v.seats, i, i+1)
		st.c.w.Count("member gone by " + string(st.wants.act))
		if s.isNew && st.wants.act == actExpire {
			st.c.w.Count("new member expired in JoinGroup")
		}
		if s.instance != nil {
			st.vacant = append(st.vacant, place{st.v.id, *s.instance})
			st.c.w.Count("static member gone by " + string(st.wants.act))
		}
	}
	if len(st.wants.forget) > 0 && st.wants.act == actExpire {
		st.c.w.Count("pending member expired")
	}
}

// advance finds out whether a generation was formed, and in which state the
// group must be.
func (st *stepped) advance(e *entry) {
	v, now := st.v, st.c.w.Now
	starts := st.wants.starts && (len(st.wants.leaving) > 0 || st.wants.act != actLeave && st.wants.act != actSynced)
	if _, ok := st.why.event.(machine.Loaded); ok {
		switch {
		case v.resumes:
			starts = true
			st.c.w.Count("loaded in the middle of a rebalance")
		case len(v.seats) > st.c.config.MaxSize:
			starts = true
			st.c.w.Count("loaded with more members than allowed")
		}
	}
	if starts && v.state != statePreparing {
		st.prepare()
	}
	generation := v.generation
	for _, h := range st.replies {
		if r, ok := h.msg.(*kmsg.JoinGroupResponse); ok && r.ErrorCode == 0 {
			generation = max(generation, r.Generation)
		}
	}
	for _, r := range e.originals {
		if r, ok := r.(*schema.GroupRecord); ok && r.Group == v.id && r.Value != nil {
			generation = max(generation, r.Value.Generation)
		}
	}
	if generation != v.generation {
		st.form(generation)
		return
	}
	switch {
	case v.state != statePreparing:
	case v.allJoined() && (!v.initial || st.wants.act == actExpire):
		st.c.w.Violated("%s: everybody is there, but no generation is formed", v)
	case st.wants.act == actJoined:
		if v.parkedJoins() > 0 || len(v.seats) == 0 {
			st.c.w.Violated("%s: the time to join is over, but no generation is formed", v)
		}
		st.c.w.Count("nobody but static members, who are waited for")
		v.prepared, v.joinLimit, v.initial = now, v.longestRebalance(), false
	case st.wants.act == actWait:
		st.c.w.Count("initial delay extended")
		next := min(st.c.config.InitialDelay, v.remaining)
		v.remaining = max(v.remaining-v.delay, 0)
		v.prepared, v.delay, v.another = now, next, false
	}
	if st.settled {
		v.state, v.since, v.loads = stateStable, st.c.w.millis(), 0
	}
}

// prepare begins a join phase: members that wait for an assignment are told to join
// again.
func (st *stepped) prepare() {
	v, now := st.v, st.c.w.Now
	st.started = true
	for _, s := range v.seats {
		if s.sync != nil {
			st.gone[s.sync] = codeRebalanceInProgress
			s.sync = nil
			s.hear(now)
		}
	}
	v.initial = v.state == stateEmpty
	v.state, v.prepared, v.joinLimit = statePreparing, now, v.patience(v.longestRebalance())
	v.delay, v.another = st.c.config.InitialDelay, false
	v.remaining = max(v.joinLimit-v.delay, 0)
	if st.wants.act != actNone {
		st.c.w.Count("rebalance started by " + string(st.wants.act))
	}
}

// generationBlock is how many numbers a leap passes over at most: after a load the
// first generation is in the next block.
const generationBlock = 1 << 14

// form begins a new generation.
func (st *stepped) form(generation int32) {
	v, w, now := st.v, st.c.w, st.c.w.Now
	switch {
	case !v.leaps && generation != v.generation+1, v.leaps && generation/generationBlock != v.generation/generationBlock+1:
		w.Violated("%s: generation %d comes next", v, generation)
	case v.state != statePreparing:
		w.Violated("%s: generation %d is formed without a join phase", v, generation)
	case st.wants.act == actJoined:
		if slices.ContainsFunc(v.seats, func(s *seat) bool { return s.join == nil }) || len(st.wants.leaving) > 0 {
			w.Count("join phase ended by its timer")
		}
	case !v.allJoined() || v.initial && st.wants.act != actExpire:
		w.Violated("%s: generation %d is formed too early", v, generation)
	}
	if len(v.pending) > 0 {
		w.Count("generation formed with pending members")
	}
	v.generation, v.formed, v.syncLimit, v.initial = generation, now, v.longestRebalance(), false
	v.resumes, v.leaps = false, false
	st.formed = true
	w.Count("generation formed")
	w.moment(momentFormed)
	v.state = stateCompleting
	if len(v.seats) == 0 {
		v.state, v.leader, v.protocol, v.since, v.loads = stateEmpty, "", "", w.millis(), 0
		w.Count("group became empty")
		return
	}
	joined := 0
	w.promises.given(st.c, v)
	for _, s := range v.seats {
		s.isNew, s.synced = false, false
		s.hear(now)
		if s.join != nil {
			joined++
		} else {
			w.Count("static member kept without a join")
		}
	}
	if joined == 0 {
		w.Violated("%s: generation %d is formed though nobody has joined", v, generation)
	}
}

// exist decides whether the group still exists.
func (st *stepped) exist(e *entry) {
	v, w := st.v, st.c.w
	for _, r := range e.originals {
		r, ok := r.(*schema.GroupRecord)
		if !ok || r.Group != v.id {
			continue
		}
		if r.Value != nil && !v.record && isMixed(v.id) {
			v.life++ // As the log counts it.
		}
		if v.record = r.Value != nil; v.record {
			v.recordTime = r.Value.CurrentStateTimestamp
			if v.recordTime != v.since {
				w.Violated("%s: the record says that it is %s since %d, it is since %d", v, v.state, v.recordTime, v.since)
			}
		}
	}
	hasOffsets := st.c.offsets.has(v.id) || st.c.offsets.waits(v.id)
	exists := v.record || hasOffsets
	if st.wants.act == actSweep && exists && !hasOffsets && v.state == stateEmpty && len(v.pending) == 0 {
		w.Violated("%s: a sweep leaves it, though it has no members and no offsets", v)
	}
	if exists != (st.after.ErrorCode == 0) {
		w.Violated("%s: it exists %t, should be %t", v, !exists, exists)
	}
	switch {
	case exists && !v.exists && v.state == "":
		v.state = stateEmpty
	case !exists && v.exists:
		if len(v.seats) > 0 || v.state != stateEmpty {
			w.Violated("%s: it vanished", v)
		}
		w.Count("group gone")
		e.ended = append(e.ended, v.id)
		st.ended = true
		st.c.checkParked(v)
		*v = *st.c.newView(v.id, v.life+1)
	}
	v.exists = exists
}

// compare holds the view against what the group says of itself.
func (st *stepped) compare() {
	v, w := st.v, st.c.w
	if st.after.State != v.state {
		w.Violated("%s: it is %s, was %s before", v, st.after.State, st.before)
	}
	if len(st.after.Members) != len(v.seats) {
		w.Violated("%s: it has members %s", v, memberIDs(st.after.Members))
	}
	for _, m := range st.after.Members {
		s := v.seat(m.MemberID)
		switch {
		case s == nil:
			w.Violated("%s: %s is a member", v, short(m.MemberID))
		case (s.instance == nil) != (m.InstanceID == nil), s.instance != nil && *s.instance != *m.InstanceID:
			w.Violated("%s: %s has another instance id", v, short(m.MemberID))
		case v.state == stateStable && string(m.MemberAssignment) != string(s.assigned):
			w.Violated("%s: %s is assigned %v, should be %v", v, short(m.MemberID), parseAssignment(m.MemberAssignment), parseAssignment(s.assigned))
		}
	}
	if st.after.ProtocolType != v.protocolType {
		w.Violated("%s: its protocol type is %q, was %q", v, st.after.ProtocolType, v.protocolType)
	}
}

func memberIDs(members []kmsg.DescribeGroupsResponseGroupMember) string {
	var out []string
	for _, m := range members {
		out = append(out, short(m.MemberID))
	}
	return fmt.Sprint(out)
}
