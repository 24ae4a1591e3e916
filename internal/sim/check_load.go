package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// successor is a broker that would load a group from its record alone. What it
// does not know is lost in the next crash, which may come long after, or never in
// this run: so it is asked as soon as the record is written.
type successor struct {
	c     *coordinator
	v     *view
	shard *group.Shard
	timer map[machine.TimerKey]time.Time
	ids   machine.RequestID
}

// checkSuccessors checks the records of groups with members that a step writes.
func (c *coordinator) checkSuccessors(e *entry) {
	for i, r := range e.originals {
		if r, ok := r.(*schema.GroupRecord); ok && r.Value != nil && len(r.Value.Members) > 0 && !c.view(r.Group).converted {
			s := &successor{c: c, v: c.view(r.Group), timer: map[machine.TimerKey]time.Time{}}
			s.load(e.records[i])
			s.check()
		}
	}
}

func (s *successor) load(r stored) {
	cfg := s.c.config
	cfg.MaxSize = group.DefaultConfig().MaxSize
	s.shard = group.NewShard(cfg)
	s.shard.Replay(r.replayed(s.c.w))
	s.step(machine.Loaded{})
}

func (s *successor) step(e machine.Event) machine.Effects {
	fx := s.shard.Step(machine.Input{Now: s.c.w.Clock(), Event: e})
	if err := s.shard.CheckInvariants(); err != nil {
		s.c.w.Violated("invariant, after a load: %v", err)
	}
	for _, t := range fx.Timers {
		if s.timer[t.Key] = t.At; t.Cancel {
			delete(s.timer, t.Key)
		}
	}
	return fx
}

// ask returns the answer to a request, nil if it is parked.
func (s *successor) ask(msg kmsg.Request) (kmsg.Response, machine.Effects) {
	s.ids++
	fx := s.step(machine.Request{ID: s.ids, ClientID: "successor", Host: "10.0.0.9", Msg: msg})
	for _, r := range fx.Replies {
		if r.ID == s.ids {
			return r.Msg, fx
		}
	}
	return nil, fx
}

func (s *successor) check() {
	v, w := s.v, s.c.w
	for _, m := range v.seats {
		at, ok := s.timer[machine.TimerKey{Kind: group.TimerSession, ID: v.id, Member: m.id}]
		if want := w.Clock().Add(min(m.session, returnTime+m.session/silenceParts)); !ok || at.Before(want) || at.Sub(want) >= time.Millisecond { // Silence is counted in milliseconds.
			w.Violated("%s: after a load the session of %s is looked at at %s, should be %s", v, short(m.id), at, want)
		}
		s.checkMember(m)
	}
	// Last, since it starts a rebalance.
	if leader := v.seat(v.leader); leader != nil {
		s.checkLeader(leader)
	}
}

// checkMember checks that a member can go on as if nothing had happened.
func (s *successor) checkMember(m *seat) {
	v, w := s.v, s.c.w
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.InstanceID, sync.Generation = 5, v.id, m.id, m.instance, v.generation
	sync.ProtocolType, sync.Protocol = &v.protocolType, &v.protocol
	resp, _ := s.ask(sync)
	if r, ok := resp.(*kmsg.SyncGroupResponse); !ok || r.ErrorCode != 0 || string(r.MemberAssignment) != string(m.assigned) {
		w.Violated("%s: after a load %s syncs, and is told %+v", v, short(m.id), resp)
	}
	if m.instance != nil {
		beat := kmsg.NewPtrHeartbeatRequest()
		beat.Version, beat.Group, beat.MemberID, beat.InstanceID, beat.Generation = 4, v.id, m.id+"-stale", m.instance, v.generation
		if resp, _ := s.ask(beat); codeOf(resp) != codeFencedInstance {
			w.Violated("%s: after a load a stale %s is told %d", v, short(m.id), codeOf(resp))
		}
	}
	if m.id == v.leader {
		return
	}
	resp, fx := s.ask(s.rejoin(m))
	r, ok := resp.(*kmsg.JoinGroupResponse)
	if !ok || r.ErrorCode != 0 || r.Generation != v.generation || r.LeaderID != v.leader || *r.Protocol != v.protocol || *r.ProtocolType != v.protocolType {
		w.Violated("%s: after a load %s joins as before, and is told %+v", v, short(m.id), resp)
	}
	if len(fx.Batches)+len(fx.Notes) > 0 {
		w.Violated("%s: after a load %s joins as before, and changes the group", v, short(m.id))
	}
}

// rejoin is a join of a member with what the record says of it.
func (s *successor) rejoin(m *seat) *kmsg.JoinGroupRequest {
	i := slices.IndexFunc(m.protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return p.Name == s.v.protocol })
	req := kmsg.NewPtrJoinGroupRequest()
	req.Version, req.Group, req.MemberID, req.InstanceID, req.ProtocolType = 9, s.v.id, m.id, m.instance, s.v.protocolType
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = int32(m.session.Milliseconds()), int32(m.rebalance.Milliseconds())
	req.Protocols = m.protocols[i : i+1]
	return req
}

// checkLeader checks that the leader leads: it joins, and the others are waited
// for as long as they have asked for.
func (s *successor) checkLeader(leader *seat) {
	v, w := s.v, s.c.w
	resp, _ := s.ask(s.rejoin(leader))
	if len(v.seats) == 1 {
		if r, ok := resp.(*kmsg.JoinGroupResponse); !ok || r.ErrorCode != 0 || r.Generation <= v.generation || r.LeaderID != v.leader {
			w.Violated("%s: after a load its only member joins, and is told %+v", v, resp)
		}
		return
	}
	if resp != nil {
		w.Violated("%s: after a load the leader joins, and is told %+v", v, resp)
	}
	at, want := s.timer[machine.TimerKey{Kind: group.TimerJoin, ID: v.id}], w.Clock().Add(v.longestRebalance())
	if !at.Equal(want) {
		w.Violated("%s: after a load the join phase ends at %s, should be %s", v, at, want)
	}
}
