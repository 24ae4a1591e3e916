package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// answer checks the answers to parked requests, and what joins are told.
func (st *stepped) answer() {
	v, w := st.v, st.c.w
	for _, h := range st.replies {
		code := codeOf(h.msg)
		if want, ok := st.gone[h.request]; ok {
			if code != want {
				w.Violated("%s: %s is answered with %d, should be with %d", v, h.request, code, want)
			}
			delete(st.gone, h.request)
			w.Count("parked request answered by an error")
			continue
		}
		switch r := h.msg.(type) {
		case *kmsg.JoinGroupResponse:
			st.answerJoin(h.request, r)
		case *kmsg.SyncGroupResponse:
			st.answerSync(h.request, r)
		}
	}
	for q := range st.gone {
		w.Violated("%s: %s will never be answered", v, q)
	}
}

func (st *stepped) answerJoin(q *request, r *kmsg.JoinGroupResponse) {
	v, w := st.v, st.c.w
	if r.ErrorCode != 0 {
		if q != st.why.request {
			w.Violated("%s: %s is answered with %d for no reason", v, q, r.ErrorCode)
		}
		return
	}
	s := v.seat(r.MemberID)
	switch {
	case s == nil:
		w.Violated("%s: %s is told to be member %s", v, q, short(r.MemberID))
	case s.join == q && !st.formed:
		w.Violated("%s: %s is answered though no generation was formed", v, q)
	case s.join != q && q != st.why.request:
		w.Violated("%s: %s is answered, but was not parked", v, q)
	case r.Generation != v.generation:
		w.Violated("%s: %s is told generation %d", v, q, r.Generation)
	}
	if st.formed && s.join == q {
		s.join = nil
		st.learn(r)
	}
	st.checkTold(s, q, r)
}

// learn takes leader and protocol from the first answer of a generation; all
// others must agree with it.
func (st *stepped) learn(r *kmsg.JoinGroupResponse) {
	v, w := st.v, st.c.w
	if st.learned {
		return
	}
	st.learned = true
	leader := v.seat(r.LeaderID)
	if leader == nil {
		w.Violated("%s: leader %s is not a member", v, short(r.LeaderID))
	}
	if old := v.seat(v.leader); old != nil && old != leader && !st.kept(old) {
		w.Violated("%s: %s leads now, though %s has joined", v, short(r.LeaderID), short(old.id))
	}
	if st.kept(leader) {
		w.Violated("%s: leader %s has not joined", v, short(r.LeaderID))
	}
	v.leader = r.LeaderID
	if winners := v.winners(); !slices.Contains(winners, *r.Protocol) {
		w.Violated("%s: protocol %q is selected, not one of %v", v, *r.Protocol, winners)
	}
	v.protocol = *r.Protocol
}

// kept says that a member came into this generation without having joined.
func (st *stepped) kept(s *seat) bool {
	return !slices.ContainsFunc(st.replies, func(h held) bool {
		r, ok := h.msg.(*kmsg.JoinGroupResponse)
		return ok && r.ErrorCode == 0 && r.MemberID == s.id
	})
}

// checkTold checks what a member is told of its generation.
func (st *stepped) checkTold(s *seat, q *request, r *kmsg.JoinGroupResponse) {
	v, w := st.v, st.c.w
	if *r.Protocol != v.protocol || r.Version >= 7 && *r.ProtocolType != v.protocolType {
		w.Violated("%s: %s is told protocol %q", v, q, *r.Protocol)
	}
	// A static leader that came back without a rebalance must not assign: it is
	// told so, or in old versions that its old self leads.
	quiet := st.wants.act == actReplace && q == st.why.request && !st.formed
	if quiet && r.Version < 9 {
		if len(r.Members) > 0 || v.leader == s.id && v.seat(r.LeaderID) != nil {
			w.Violated("%s: %s would assign", v, q)
		}
		return
	}
	if r.LeaderID != v.leader {
		w.Violated("%s: %s is told that %s leads", v, q, short(r.LeaderID))
	}
	if skip := quiet && v.leader == s.id; r.SkipAssignment != skip {
		w.Violated("%s: %s is told to skip the assignment %t", v, q, r.SkipAssignment)
	}
	if v.leader != s.id {
		if len(r.Members) > 0 {
			w.Violated("%s: %s does not lead, but is told the members", v, q)
		}
		return
	}
	if len(r.Members) != len(v.seats) {
		w.Violated("%s: the leader is told of %d members", v, len(r.Members))
	}
	for _, m := range r.Members {
		s := v.seat(m.MemberID)
		if s == nil {
			w.Violated("%s: the leader is told of %s", v, short(m.MemberID))
		}
		i := slices.IndexFunc(s.protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return p.Name == v.protocol })
		if string(s.protocols[i].Metadata) != string(m.ProtocolMetadata) {
			w.Violated("%s: the leader is told other metadata of %s", v, short(m.MemberID))
		}
	}
}

func (st *stepped) answerSync(q *request, r *kmsg.SyncGroupResponse) {
	v, w := st.v, st.c.w
	if r.ErrorCode != 0 {
		if q != st.why.request {
			w.Violated("%s: %s is answered with %d for no reason", v, q, r.ErrorCode)
		}
		return
	}
	s := v.seat(q.ask.member)
	if s == nil || s.sync != q && q != st.why.request {
		w.Violated("%s: %s is answered, but was not parked", v, q)
	}
	st.c.checkSync(v, s, q, r)
	if s.sync == q {
		s.sync = nil
		s.hear(w.Now)
	}
}
