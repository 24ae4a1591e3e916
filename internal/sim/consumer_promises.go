package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// memberOf is a member of a group.
type memberOf struct{ group, member string }

// beatAnswered checks an answer to a heartbeat that leaves a broker, from where the
// clients see it: what a member is told to have is durable (4), and no one else was
// told to have it who has not let go of it or been fenced since (5).
func (p *promises) beatAnswered(c *coordinator, h *held, r *kmsg.ConsumerGroupHeartbeatResponse) {
	w := p.w
	m := h.request.msg.(*kmsg.ConsumerGroupHeartbeatRequest)
	if r.ErrorCode != 0 || m.MemberEpoch < 0 || c.zombie || h.old {
		return
	}
	who := memberOf{m.Group, m.MemberID}
	if p.gone[who] > h.seq || w.log.written8(who) > h.seq {
		return // It is no member any more, or has got on since.
	}
	p.checkDurable(h, r)
	if r.MemberEpoch < p.epochs[who] {
		w.Violated("%s: %s is told epoch %d after %d (3)", who.group, who.member, r.MemberEpoch, p.epochs[who])
	}
	p.epochs[who] = r.MemberEpoch
	if r.Assignment == nil {
		return
	}
	for _, tp := range answeredParts(r.Assignment) {
		p.tell(who, tp, h.seq)
	}
}

// checkDurable checks that what a member is told is what the log says.
func (p *promises) checkDurable(h *held, r *kmsg.ConsumerGroupHeartbeatResponse) {
	var m rosterMember
	if all := p.w.log.rosters[h.request.ask.group]; all != nil {
		m = all.members[h.request.ask.member]
	}
	switch {
	case m.says == nil:
		p.w.Violated("%s is answered, and its member is not durable (4)", h.request)
	case m.epoch() != r.MemberEpoch:
		p.w.Violated("%s is told epoch %d, durable is %d (4)", h.request, r.MemberEpoch, m.epoch())
	case r.Assignment != nil && !slices.Equal(answeredParts(r.Assignment), sortedParts(m.assigned)):
		p.w.Violated("%s is told to have %v, durable is %v (4)", h.request, answeredParts(r.Assignment), sortedParts(m.assigned))
	}
}

// written8 is the step that has last written where a member has got to.
func (l *offsetsLog) written8(who memberOf) uint64 {
	if l.rosters[who.group] == nil {
		return 0
	}
	return l.rosters[who.group].members[who.member].written
}

// stored notes that a record of a consumer group is durable: who is a member no more
// has nothing.
func (p *promises) stored(r machine.Record, seq uint64) {
	if r, ok := r.(*schema.ConsumerMemberRecord); ok && r.Value == nil {
		who := memberOf{r.Group, r.Member}
		p.gone[who] = seq
		delete(p.epochs, who)
		for tp, member := range p.held[r.Group] {
			if member == r.Member {
				delete(p.held[r.Group], tp)
			}
		}
	}
}

// saying is what a client has said last with a heartbeat that was taken.
type saying struct {
	seq uint64 // of the step
	m   *kmsg.ConsumerGroupHeartbeatRequest
	now *rosterMember // its member after it
}

// lacks says whether the client does not have a partition any more, and is not told
// again that it has.
func (s *saying) lacks(tp part) bool {
	return s.m.MemberEpoch < 0 || !owns(s.m, tp) && !holdsPart(s.now.assigned, tp)
}

// letGo notes what a client has let go of, as it says with a heartbeat that is
// taken.
func (p *promises) letGo(m *kmsg.ConsumerGroupHeartbeatRequest, now *rosterMember) {
	if m.Topics == nil && m.MemberEpoch > 0 {
		return
	}
	last := saying{p.w.steps, m, now}
	p.said[memberOf{m.Group, m.MemberID}] = last
	for _, held := range []map[part]string{p.held[m.Group], p.coming[m.Group]} {
		for tp, member := range held {
			if member == m.MemberID && last.lacks(tp) {
				delete(held, tp)
			}
		}
	}
}

func describeBeat(r *kmsg.ConsumerGroupHeartbeatResponse) string {
	s := fmt.Sprintf(" epoch %d", r.MemberEpoch)
	if r.Assignment != nil {
		s += " " + describeParts(answeredParts(r.Assignment))
	}
	return s
}

func describeParts(list []part) string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%d:%d", p.topic[15], p.n))
	}
	return "[" + strings.Join(out, " ") + "]"
}

func describeHeld(list []schema.OwnedPartitions) string {
	return describeParts(sortedParts(heldOf(list)))
}

func describeConsumerRecord(r machine.Record) string {
	switch r := r.(type) {
	case *schema.ConsumerEpochRecord:
		return fmt.Sprintf("%s epoch %+v", r.Group, r.Value)
	case *schema.ConsumerTargetEpochRecord:
		return fmt.Sprintf("%s target epoch %+v", r.Group, r.Value)
	case *schema.ConsumerMemberRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s member %s gone", r.Group, r.Member)
		}
		return fmt.Sprintf("%s member %s wants %v", r.Group, r.Member, r.Value.Topics)
	case *schema.ConsumerTargetRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s target of %s gone", r.Group, r.Member)
		}
		return fmt.Sprintf("%s target of %s %s", r.Group, r.Member, describeParts(sortedParts(partsOf(r.Value.Assigned))))
	case *schema.ConsumerCurrentRecord:
		if r.Value == nil {
			return fmt.Sprintf("%s %s is nowhere", r.Group, r.Member)
		}
		return fmt.Sprintf("%s %s in epoch %d after %d, state %d, has %s, lets go of %s", r.Group, r.Member, r.Value.Epoch, r.Value.Previous, r.Value.State, describeHeld(r.Value.Assigned), describeHeld(r.Value.Pending))
	case *schema.ConsumerRegexRecord:
		return fmt.Sprintf("%s regex %s %+v", r.Group, r.Regex, r.Value)
	}
	return fmt.Sprintf("%T", r)
}
