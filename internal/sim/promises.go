package sim

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// promises is what clients have been told over all coordinators, by answers
// that left a broker.
type promises struct {
	w      *world
	acked  map[offsetKey]uint64 // step of the last commit that was acknowledged
	synced map[generation]*told
	newest map[generation]int32 // of a group's life: the newest generation anybody was told to have synced
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
	return &promises{w: w, acked: map[offsetKey]uint64{}, synced: map[generation]*told{}, newest: map[generation]int32{}}
}

// released checks an answer that leaves a broker.
func (p *promises) released(c *coordinator, h *held) {
	switch r := h.msg.(type) {
	case *kmsg.JoinGroupResponse:
		if r.ErrorCode == 0 && h.stable && !c.zombie {
			p.known(h, r.MemberID)
		}
	case *kmsg.SyncGroupResponse:
		if r.ErrorCode == 0 {
			p.assigned(c, h, r.MemberAssignment)
		}
	case *kmsg.OffsetCommitResponse:
		p.commitAcked(h.request, r)
	}
}

// known checks that a member that is told to be one of a Stable group is that
// also for whoever loads the group next.
func (p *promises) known(h *held, member string) {
	meta := p.w.log.groups[h.request.ask.group]
	if meta == nil || !slices.ContainsFunc(meta.Members, func(m kmsg.GroupMetadataValueMember) bool { return m.MemberID == member }) {
		p.w.violated("%s is answered, but member %s is not durable", h.request, short(member))
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
		w.count("generation synced")
	}
	who := a.identity()
	if before, ok := t.assigned[who]; ok && before != string(assignment) {
		w.violated("%s in generation %+v is told %v, and was told %v", who, g, parseAssignment(assignment), parseAssignment([]byte(before)))
	}
	t.assigned[who] = string(assignment)
	for _, tp := range parseAssignment(assignment) {
		if other, ok := t.owner[tp]; ok && other != who {
			w.violated("%v belongs to %s and to %s in generation %+v", tp, other, who, g)
		}
		t.owner[tp] = who
	}
	if c.zombie {
		return
	}
	p.known(h, a.member)
	life := generation{group: a.group, life: h.life}
	if a.generation < p.newest[life] {
		w.violated("%s is told generation %d after somebody was told %d", who, a.generation, p.newest[life])
	}
	p.newest[life] = a.generation
}

// commitAcked checks that an acknowledged commit is the last in the log.
func (p *promises) commitAcked(q *request, r *kmsg.OffsetCommitResponse) {
	m := q.msg.(*kmsg.OffsetCommitRequest)
	for i, t := range r.Topics {
		for j, part := range t.Partitions {
			if part.ErrorCode != 0 {
				continue
			}
			k := offsetKey{m.Group, t.Topic, part.Partition}
			stored, ok := p.w.log.offsets.get(k)
			if !ok || stored.at != m.Topics[i].Partitions[j].Offset {
				p.w.violated("%s is acknowledged, but offset %v is %+v", q, k, stored)
			}
			p.acked[k] = stored.seq
			p.w.count("commit acknowledged")
		}
	}
}

// checkLoaded checks that a coordinator that has loaded knows all commits that
// were acknowledged.
func (p *promises) checkLoaded(c *coordinator) {
	for k, seq := range p.acked {
		if p.w.log.offsets.byKey[k].seq < seq {
			p.w.violated("the commit of %v that was acknowledged is lost", k)
		}
	}
	for _, v := range c.sortedViews() {
		c.probeOffsets(v.id)
	}
}
