package sim

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/machine"
)

// act is what a request or timer must do to its group.
type act string

const (
	actNone    act = ""
	actPend    act = "pend"    // a member id is given out
	actAdd     act = "add"     // a new member
	actReplace act = "replace" // a static member comes back
	actRejoin  act = "rejoin"  // a member joins again, parked
	actCurrent act = "current" // a member is told of the current generation
	actRefuse  act = "refuse"  // there is no room
	actSync    act = "sync"    // a member asks for its assignment
	actTouch   act = "touch"   // a member is heard of
	actLeave   act = "leave"   // members leave
	actExpire  act = "expire"  // a member or pending one is not heard of any more
	actExtend  act = "extend"  // a parked member's session goes on
	actJoined  act = "joined"  // the join phase ends
	actWait    act = "wait"    // the initial delay is extended
	actSynced  act = "synced"  // the sync phase ends
	actSweep   act = "sweep"
)

// verdict is what the rules say of an event, found before the shard sees it.
type verdict struct {
	act     act
	seat    *seat   // whose it is
	leaving []*seat // who must be gone after it
	forget  []string
	codes   []int16 // errors in the answer, in its order
	parks   bool    // the answer may come later, and then without error
	starts  bool    // a rebalance must start if none is under way
	doomed  []string
	asks    bool     // a transaction coordinator must be asked
	groups  []string // that a marker, or an answer, is about
	start   int64    // of the transaction that offsets are part of
	lost    bool     // a transaction must be aborted whose end was lost
	ends    bool     // a marker must be written
	maybe   bool     // it may be
	becomes string   // what kind of group it is with this, "" if what it was
	or      int16    // the error that it may be refused with instead, 0 for none
}

func refused(code int16) verdict { return verdict{codes: []int16{code}} }

// expect applies the rules to an event.
func (c *coordinator) expect(why cause) verdict {
	switch e := why.event.(type) {
	case machine.Request:
		return c.expectRequest(why.request)
	case machine.TimerFired:
		return c.expectTimer(e.Key, why.current)
	case machine.Sent:
		if why.asked != nil {
			return c.expectAnswered(why.asked, e)
		}
	}
	return verdict{}
}

func (c *coordinator) expectRequest(q *request) verdict {
	v := &view{}
	if q.ask.group != "" {
		v = c.view(q.ask.group)
	}
	switch m := q.msg.(type) {
	case *kmsg.JoinGroupRequest:
		if v.hasConsumers() {
			return c.expectMixedJoin(v, m)
		}
		return c.expectJoin(v, m)
	case *kmsg.SyncGroupRequest:
		if v.hasConsumers() {
			return expectMixedSync(v, m)
		}
		return expectSync(v, m)
	case *kmsg.HeartbeatRequest:
		if v.hasConsumers() {
			return expectMixedBeat(v, m)
		}
		return expectHeartbeat(v, m)
	case *kmsg.LeaveGroupRequest:
		if v.hasConsumers() {
			return expectConsumersLeave(v, m)
		}
		return expectLeave(v, m)
	case *kmsg.OffsetCommitRequest:
		return c.expectCommit(v, m)
	case *kmsg.TxnOffsetCommitRequest:
		return c.expectTxnCommit(m)
	case *kmsg.WriteTxnMarkersRequest:
		return c.expectMarker(m)
	case *kmsg.OffsetDeleteRequest:
		return expectOffsetDelete(v, m)
	case *kmsg.DeleteGroupsRequest:
		return c.expectDeleteGroups(m)
	case *kmsg.DescribeGroupsRequest:
		var out verdict
		for _, id := range m.Groups {
			out.codes = append(out.codes, 0)
			if v := c.view(id); m.Version >= 6 && (!v.exists || v.hasConsumers()) {
				out.codes[len(out.codes)-1] = codeGroupNotFound
			}
		}
		return out
	case *kmsg.OffsetFetchRequest:
		return c.expectFetch(m)
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return c.expectBeat(v, m)
	case *kmsg.ConsumerGroupDescribeRequest:
		return c.expectConsumerDescribe(m)
	}
	return refused(0)
}

// expectJoin has Kafka's checks in Kafka's order. Clients of the simulator send
// no empty group ids and no session timeouts out of bounds.
func (c *coordinator) expectJoin(v *view, m *kmsg.JoinGroupRequest) verdict {
	if !v.exists && m.MemberID != "" {
		return refused(codeUnknownMember)
	}
	known := v.seat(m.MemberID)
	full := false
	switch v.state {
	case statePreparing:
		full = (known == nil || known.join == nil) && v.parkedJoins() >= c.config.MaxSize
	case stateCompleting, stateStable:
		full = known == nil && len(v.seats) >= c.config.MaxSize
	}
	if full {
		out := verdict{act: actRefuse, codes: []int16{codeMaxSize}, forget: []string{m.MemberID}}
		if known != nil {
			out.leaving = []*seat{known}
		}
		return out
	}
	if len(v.seats) > 0 {
		common := slices.ContainsFunc(m.Protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return v.supported(p.Name) })
		if m.ProtocolType != v.protocolType || !common {
			return refused(codeInconsistentProtocol)
		}
	}
	if m.MemberID == "" {
		switch {
		case m.InstanceID != nil && v.static(*m.InstanceID) != nil:
			s := v.static(*m.InstanceID)
			return verdict{act: actReplace, seat: s, codes: []int16{0}, parks: true, starts: v.state == stateCompleting}
		case m.InstanceID != nil || m.Version < 4:
			return verdict{act: actAdd, codes: []int16{0}, parks: true, starts: true}
		}
		return verdict{act: actPend, codes: []int16{codeMemberIDRequired}}
	}
	if _, ok := v.pending[m.MemberID]; ok && m.InstanceID == nil {
		return verdict{act: actAdd, codes: []int16{0}, parks: true, starts: true, forget: []string{m.MemberID}}
	}
	s, code := v.find(m.MemberID, m.InstanceID)
	if code != 0 {
		return refused(code)
	}
	changed := !sameProtocols(s.protocols, m.Protocols)
	if v.state == statePreparing || changed || v.state == stateStable && v.leader == s.id {
		return verdict{act: actRejoin, seat: s, codes: []int16{0}, parks: true, starts: true}
	}
	return verdict{act: actCurrent, seat: s, codes: []int16{0}}
}

func sameProtocols(a, b []kmsg.JoinGroupRequestProtocol) bool {
	return slices.EqualFunc(a, b, func(a, b kmsg.JoinGroupRequestProtocol) bool {
		return a.Name == b.Name && bytes.Equal(a.Metadata, b.Metadata)
	})
}

func expectSync(v *view, m *kmsg.SyncGroupRequest) verdict {
	if !v.exists {
		return refused(codeUnknownMember)
	}
	s, code := v.find(m.MemberID, m.InstanceID)
	switch {
	case code != 0:
		return refused(code)
	case m.Generation != v.generation:
		return refused(codeIllegalGeneration)
	case m.Version >= 5 && v.protocol != "" && (*m.ProtocolType != v.protocolType || *m.Protocol != v.protocol):
		return refused(codeInconsistentProtocol)
	case v.state == statePreparing:
		return refused(codeRebalanceInProgress)
	}
	return verdict{act: actSync, seat: s, codes: []int16{0}, parks: v.state == stateCompleting}
}

func expectHeartbeat(v *view, m *kmsg.HeartbeatRequest) verdict {
	if !v.exists {
		return refused(codeUnknownMember)
	}
	s, code := v.find(m.MemberID, m.InstanceID)
	switch {
	case code != 0:
		return refused(code)
	case m.Generation != v.generation:
		return refused(codeIllegalGeneration)
	case v.state == statePreparing:
		return verdict{act: actTouch, seat: s, codes: []int16{codeRebalanceInProgress}}
	}
	return verdict{act: actTouch, seat: s, codes: []int16{0}}
}

func expectLeave(v *view, m *kmsg.LeaveGroupRequest) verdict {
	members := m.Members
	out := verdict{act: actLeave}
	if m.Version < 3 {
		members = []kmsg.LeaveGroupRequestMember{{MemberID: m.MemberID}}
	} else {
		out.codes = append(out.codes, 0)
	}
	for _, e := range members {
		if _, ok := v.pending[e.MemberID]; ok && e.InstanceID == nil && !slices.Contains(out.forget, e.MemberID) {
			out.forget = append(out.forget, e.MemberID)
			out.codes = append(out.codes, 0)
			continue
		}
		id := e.MemberID
		if id == "" && e.InstanceID != nil && v.static(*e.InstanceID) != nil {
			id = v.static(*e.InstanceID).id
		}
		s, code := v.find(id, e.InstanceID)
		if s != nil && slices.Contains(out.leaving, s) ||
			e.InstanceID != nil && slices.Contains(out.leaving, v.static(*e.InstanceID)) {
			s, code = nil, codeUnknownMember
		}
		if s != nil {
			out.leaving = append(out.leaving, s)
			out.starts = true
		}
		out.codes = append(out.codes, code)
	}
	return out
}

// expectTimer says what a timer does. One that is not armed any more does
// nothing, except that a sweep is always in order.
func (c *coordinator) expectTimer(key machine.TimerKey, current bool) verdict {
	if key.Kind == group.TimerSweep {
		return verdict{act: actSweep}
	}
	if key.Kind == group.TimerAsk {
		return verdict{}
	}
	now, v := c.w.Now, c.view(key.ID)
	switch {
	case !current:
		return verdict{}
	case v.isOfConsumers():
		return c.expectConsumerTimer(v, key)
	case key.Kind == group.TimerSession:
		if until, ok := v.pending[key.Member]; ok {
			c.checkEarly(v, key, until)
			return verdict{act: actExpire, forget: []string{key.Member}}
		}
		s := v.seat(key.Member)
		switch {
		case s == nil || now < s.heard+s.patience():
			return verdict{}
		case !s.isNew && (s.join != nil || s.sync != nil):
			return verdict{act: actExtend, seat: s}
		}
		return verdict{act: actExpire, leaving: []*seat{s}, starts: true}
	case key.Kind == group.TimerJoin && v.state == statePreparing:
		limit := v.joinLimit
		if v.initial {
			limit = v.delay
		}
		c.checkEarly(v, key, v.prepared+limit)
		if v.initial && v.another && v.remaining > 0 {
			return verdict{act: actWait}
		}
		out := verdict{act: actJoined}
		for _, s := range v.seats {
			if s.join == nil && s.instance == nil {
				out.leaving = append(out.leaving, s)
			}
		}
		return out
	case key.Kind == group.TimerSync:
		c.checkEarly(v, key, v.formed+v.syncLimit)
		out := verdict{act: actSynced, starts: true}
		for _, s := range v.seats {
			if !s.synced {
				out.leaving = append(out.leaving, s)
			}
		}
		return out
	}
	return verdict{}
}

// checkEarly checks that a timer does not fire before its time.
func (c *coordinator) checkEarly(v *view, key machine.TimerKey, until time.Duration) {
	if c.w.Now < until {
		c.w.Violated("%s: timer %v fires %s too early", v, key, until-c.w.Now)
	}
}

// newMemberPatience is how long a new member may be parked in JoinGroup.
const newMemberPatience = 5 * time.Minute

func (s *seat) patience() time.Duration {
	switch {
	case s.isNew:
		return newMemberPatience
	case s.limit > 0:
		return s.limit
	}
	return s.session
}

// hear notes that a member was heard of.
func (s *seat) hear(now time.Duration) { s.heard, s.limit = now, 0 }
