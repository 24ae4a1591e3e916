package sim

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
)

// promises is what clients have been told over all coordinators, by answers
// that left a broker.
type promises struct {
	w      *world
	acked  map[offsetKey]uint64 // step of the last commit that was acknowledged
	synced map[generation]*told
	newest map[generation]int32 // of a group's life: the newest generation anybody was told to have synced
	left   map[string]bool      // members whose leave was acknowledged
	gave   map[membership]*coordinator
	held   map[string]map[part]string // of consumer groups: who was told to have a partition, and has not let go of it
	coming map[string]map[part]string // likewise of groups that become consumer groups, which may not be stored yet
	said   map[memberOf]saying        // what a member has said last of what it has
	gone   map[memberOf]uint64        // the step that removed a member
	epochs map[memberOf]int32         // the last that a member was told
}

// membership is a member's of one generation.
type membership struct {
	group, member string
	number        int32
}

// given checks that no member is given the number of a generation twice: if it has
// missed the second, it would go on as if it were the first. Not even a log that
// has lost its tail excuses that.
func (p *promises) given(c *coordinator, v *view) {
	if v.former = c; isMixed(v.id) {
		return // No one is told of it before the group is stored as a classic one: see formedTwice.
	}
	for _, s := range v.seats {
		m := membership{v.id, s.id, v.generation}
		if other := p.gave[m]; other != nil && other != c {
			p.w.Violated("%s: %s was in another generation %d before", v, short(s.id), v.generation)
		}
		p.gave[m] = c
	}
}

// generation names one of a group, across groups of the same id.
type generation struct {
	group  string
	life   int
	number int32
}

// told is what members were told of one generation.
type told struct {
	assigned map[string]string // identity to assignment
	owner    map[topicPartition]string
}

func newPromises(w *world) *promises {
	return &promises{w: w, acked: map[offsetKey]uint64{}, synced: map[generation]*told{}, newest: map[generation]int32{}, left: map[string]bool{}, gave: map[membership]*coordinator{},
		held: map[string]map[part]string{}, coming: map[string]map[part]string{}, said: map[memberOf]saying{}, gone: map[memberOf]uint64{}, epochs: map[memberOf]int32{}}
}

// released checks an answer that leaves a broker.
func (p *promises) released(c *coordinator, h *held) {
	switch r := h.msg.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode == 0 && h.stable && !h.mixed && !c.zombie {
			p.known(h, r.MemberID)
		}
		if r.ErrorCode == 0 && h.former != nil {
			p.formedTwice(h, r)
		}
	case *kmsg.SyncGroupResponse:
		switch {
		case r.ErrorCode != 0:
		case h.mixed:
			p.mixedSynced(c, h, r)
		default:
			p.assigned(c, h, r.MemberAssignment)
		}
	case *kmsg.OffsetCommitResponse:
		p.commitAcked(h, r)
	case *kmsg.ConsumerGroupHeartbeatResponse:
		p.beatAnswered(c, h, r)
	case *kmsg.LeaveGroupResponse:
		if !c.zombie {
			p.leaveAcked(h.request.msg.(*kmsg.LeaveGroupRequest), r)
		}
	}
}

// leaveAcked notes whose leave was acknowledged. Nothing may bring that member back.
func (p *promises) leaveAcked(m *kmsg.LeaveGroupRequest, r *kmsg.LeaveGroupResponse) {
	if m.Version < 3 {
		if r.ErrorCode == 0 {
			p.left[m.MemberID] = true
		}
		return
	}
	for _, e := range r.Members {
		if e.ErrorCode == 0 && e.MemberID != "" {
			p.left[e.MemberID] = true
		}
	}
}

// forget takes back what was promised since a state of the log to which it has
// fallen back. All groups begin another life: numbers may be given out again.
func (p *promises) forget(l *offsetsLog, ended map[string]int) {
	for k := range p.acked {
		p.acked[k] = min(p.acked[k], l.offsets.byKey[k].seq)
	}
	clear(p.left)
	clear(p.held)
	clear(p.epochs)
	l.ended = maps.Clone(ended)
	for i := range p.w.plan.groups {
		l.ended[p.w.plan.groups[i].id]++
	}
	for g := range p.newest {
		l.ended[g.group] = max(l.ended[g.group], g.life+1)
	}
}

// owns says whether a member was told an assignment of this life of its group. If
// it was not, it goes by one of a generation of the same number that the log has
// lost, and knows no better.
func (p *promises) owns(group string, life int, number int32, who string) bool {
	t := p.synced[generation{group, life, number}]
	if t == nil {
		return false
	}
	_, ok := t.assigned[who]
	return ok
}

// known checks that a member that is told it belongs to a Stable group still does
// after the next load of the group.
func (p *promises) known(h *held, member string) {
	id := h.request.ask.group
	if p.w.log.written[id] > h.seq {
		return // What was stored since may say otherwise.
	}
	meta := p.w.log.groups[id]
	if meta == nil || !slices.ContainsFunc(meta.Members, func(m schema.GroupMember) bool { return m.MemberID == member }) {
		p.w.Violated("%s is answered, but member %s is not durable", h.request, short(member))
	}
}

// assigned checks that a generation has one assignment, and a partition in it
// one owner, also if two brokers believe that they lead.
func (p *promises) assigned(c *coordinator, h *held, assignment []byte) {
	w, a := p.w, h.request.ask
	g := generation{a.group, h.life, a.generation}
	t := p.synced[g]
	if t == nil {
		t = &told{assigned: map[string]string{}, owner: map[topicPartition]string{}}
		p.synced[g] = t
		w.Count("generation synced")
	}
	who := a.identity()
	if before, ok := t.assigned[who]; ok && before != string(assignment) {
		w.Violated("%s in generation %+v is told %v, and was told %v", who, g, parseAssignment(assignment), parseAssignment([]byte(before)))
	}
	t.assigned[who] = string(assignment)
	for _, tp := range parseAssignment(assignment) {
		if other, ok := t.owner[tp]; ok && other != who {
			w.Violated("%v belongs to %s and to %s in generation %+v", tp, other, who, g)
		}
		t.owner[tp] = who
	}
	if c.zombie {
		return
	}
	p.known(h, a.member)
	life := generation{group: a.group, life: h.life}
	if a.generation < p.newest[life] {
		w.Violated("%s is told generation %d after somebody was told %d", who, a.generation, p.newest[life])
	}
	p.newest[life] = a.generation
}

// commitAcked checks that an acknowledged commit is the last in the log, or that
// there is a later one.
func (p *promises) commitAcked(h *held, r *kmsg.OffsetCommitResponse) {
	q := h.request
	m := q.msg.(*kmsg.OffsetCommitRequest)
	for i, t := range r.Topics {
		for j, part := range t.Partitions {
			if part.ErrorCode != 0 {
				continue
			}
			k := offsetKey{m.Group, t.Topic, part.Partition}
			stored := p.w.log.offsets.byKey[k]
			if stored.seq < h.seq || stored.seq == h.seq && (stored.gone || stored.at != m.Topics[i].Partitions[j].Offset) {
				p.w.Violated("%s is acknowledged, but offset %v is %+v", q, k, stored)
			}
			p.acked[k] = stored.seq
			p.w.Count("commit acknowledged")
		}
	}
}

// checkLoaded checks that a coordinator that has loaded knows all commits that
// were acknowledged.
func (p *promises) checkLoaded(c *coordinator) {
	for k, seq := range p.acked {
		if p.w.log.offsets.byKey[k].seq < seq {
			p.w.Violated("the commit of %v that was acknowledged is lost", k)
		}
	}
	for _, v := range c.sortedViews() {
		c.probeOffsets(v.id)
		for _, s := range v.seats {
			if p.left[s.id] && !isMixed(v.id) { // There, a join that comes late makes it a member again.
				p.w.Violated("%s: %s is back, though its leave was acknowledged", v, short(s.id))
			}
		}
	}
}
