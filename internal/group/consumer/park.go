package consumer

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// A heartbeat that has a run of the assignor begin elsewhere waits for what comes of
// it: that does not take long, and its client need not wait for its next heartbeat to
// learn of it. What the heartbeat says its client has was true when it was sent. So it
// waits only as long as nothing else is heard of its member.

// parkHeartbeat has a heartbeat wait for the assignor.
func (g *Group) parkHeartbeat(x *kind.Step, mem *Member, b PendingHeartbeat) {
	g.touch(x, mem)
	g.Run.Parked = &b
}

// takeParked returns the heartbeat of a member that waits, which does not any more;
// nil if none does.
func (g *Group) takeParked(mem *Member) *PendingHeartbeat {
	if g == nil || g.Run == nil || g.Run.Parked == nil || g.Run.Parked.Member != mem.ID {
		return nil
	}
	b := g.Run.Parked
	g.Run.Parked = nil
	return b
}

// unpark tells who waits that its member is one no more.
func (g *Group) unpark(x *kind.Step, mem *Member, err *protocolError) {
	if b := g.takeParked(mem); b != nil {
		replyError(x, b.id, b.version, err)
	}
}

// answerOvertaken answers a heartbeat that waits when the member's next one comes, as one
// that changes nothing: its client has not waited for the answer. One that joins is told
// of no partitions: it is in no epoch yet in which it could have any. It says whether the
// member subscribes to other topics since that one, which the next must see to.
func (g *Group) answerOvertaken(x *kind.Step, mem *Member) (unsubscribed bool) {
	b := g.takeParked(mem)
	if b == nil {
		return false
	}
	g.respond(x, mem, *b, b.full && mem.Now().Epoch > modern.EpochJoin)
	return b.unsubscribed
}

// cancelRun forgets a run of the assignor, whose result no one needs.
func (g *Group) cancelRun(x *kind.Step) {
	if r := g.Run; r != nil {
		delete(x.Tasks, r.id)
		g.Run = nil
		if r.Parked != nil {
			replyError(x, r.Parked.id, r.Parked.version, refused(kerr.UnknownMemberID, "The group is empty."))
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
func fitsHeld(x *kind.Step, group, member string, list []modern.Partition) bool {
	if x.MaxBatch <= 0 {
		return true
	}
	n := machine.RecordOverhead + (&schema.ConsumerCurrentRecord{Group: group, Member: member}).Size() + maxNowBytes
	for i, p := range list {
		if n += partBytes; i == 0 || p.Topic != list[i-1].Topic {
			n += maxTopicBytes
		}
	}
	return n <= x.MaxBatch
}
