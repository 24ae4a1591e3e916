package group

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// A heartbeat that has a run of the assignor begin elsewhere waits for what comes of
// it: that does not take long, and its client need not wait for its next heartbeat to
// learn of it. What the heartbeat says its client has was true when it was sent. So it
// waits only as long as nothing else is heard of its member.

// parkBeat has a heartbeat wait for the assignor.
func (x *step) parkBeat(g *consumerGroup, mem *consumerMember, b beat) {
	x.touchConsumer(g, mem)
	g.run.parked = &b
}

// takeParked returns the heartbeat of a member that waits, which does not any more;
// nil if none does.
func (c *consumerGroup) takeParked(mem *consumerMember) *beat {
	if c == nil || c.run == nil || c.run.parked == nil || c.run.parked.member != mem.id {
		return nil
	}
	b := c.run.parked
	c.run.parked = nil
	return b
}

// unpark tells who waits that its member is one no more.
func (x *step) unpark(g *consumerGroup, mem *consumerMember, err *consumerError) {
	if b := g.takeParked(mem); b != nil {
		x.beatError(b.id, b.version, err)
	}
}

// overtakeBeat answers a heartbeat that waits when the member's next one comes, as one
// that changes nothing: its client has not waited for the answer. One that joins is told
// of no partitions: it is in no epoch yet in which it could have any. It says whether the
// member subscribes to other topics since that one, which the next must see to.
func (x *step) overtakeBeat(g *consumerGroup, mem *consumerMember) (unsubscribed bool) {
	b := g.takeParked(mem)
	if b == nil {
		return false
	}
	x.tell(g, mem, *b, b.full && mem.now().epoch > epochJoin)
	return b.unsubscribed
}

// dropRun forgets a run of the assignor, whose result nobody needs.
func (x *step) dropRun(c *consumerGroup) {
	if r := c.run; r != nil {
		delete(x.tasks, r.id)
		c.run = nil
		if r.parked != nil {
			x.beatError(r.parked.id, r.parked.version, refused(kerr.UnknownMemberID, "The group is empty."))
		}
	}
}

// What a topic and a partition take at most in the record of what a member has: the
// topic its id, and the lengths of two lists; the partition its number and the epoch in
// which it was given. A topic may be there twice, among what is assigned and what is to
// be let go of.
const (
	maxTopicBytes = 2 * 40
	partBytes     = 8
	maxNowBytes   = 36 // beyond those
)

// fitsHeld says whether it can be stored that a member has these partitions, and also,
// for each, that it is to let go of it. A member never has more than what it was to
// have once, so what fits as a target fits for good.
func (x *step) fitsHeld(group, member string, list []part) bool {
	if x.maxBatch <= 0 {
		return true
	}
	n := machine.RecordOverhead + (&schema.ConsumerCurrentRecord{Group: group, Member: member}).Size() + maxNowBytes
	for i, p := range list {
		if n += partBytes; i == 0 || p.topic != list[i-1].topic {
			n += maxTopicBytes
		}
	}
	return n <= x.maxBatch
}
