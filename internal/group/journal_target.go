package group

import (
	"cmp"
	"slices"
	"time"

	"muster/internal/journal"
	"muster/internal/metadata"
)

// maxWaiting is how many of those who wait for a member the journal names.
const maxWaiting = 3

// differences is how what members have differs from what they are to have.
type differences struct {
	image      *metadata.Image
	before     *look // the topics before they changed, nil if they have not
	partitions int   // that are in the target
	moves      []journal.Move
	moveN      int
	shares     []share
	revoking   []*revoking
	byMember   map[*consumerMember]*revoking
}

// share is how much a member has and is to have.
type share struct {
	mem           *consumerMember
	before, after int
}

// revoking is a member that has what others are to have.
type revoking struct {
	mem   *consumerMember
	parts []part
	partN int
	fors  []*consumerMember
	forN  int
	last  *consumerMember
}

// differences compares what members have, or have yet to let go of, with the target. A
// partition of a topic that is not assigned is nobody's after that; nil is that the
// topics are not known.
func (g *consumerGroup) differences(x *step, assigned map[metadata.TopicID]bool) *differences {
	d := &differences{image: x.image, before: g.story.before, byMember: map[*consumerMember]*revoking{}}
	for _, mem := range g.members {
		now := mem.now()
		has := len(now.assigned) + len(now.pending)
		d.partitions += len(mem.target)
		if has != len(mem.target) {
			d.shares = append(d.shares, share{mem, has, len(mem.target)})
		} else if len(now.pending) == 0 && slices.EqualFunc(now.assigned, mem.target, func(a heldPart, b part) bool { return a.part == b }) {
			continue
		}
		for _, p := range mem.target {
			if owner := g.owners[p]; owner != mem {
				d.move(p, owner, mem)
			}
		}
		for _, list := range [][]heldPart{now.assigned, now.pending} {
			for _, p := range list {
				if assigned != nil && !assigned[p.topic] {
					d.move(p.part, mem, nil)
				}
			}
		}
	}
	return d
}

// move notes that a partition is to change hands. Either may be nobody.
func (d *differences) move(p part, from, to *consumerMember) {
	if d.moveN++; len(d.moves) < maxMoves {
		m := journal.Move{Topic: d.topic(p.topic), Partition: p.n}
		if from != nil {
			m.From = from.name()
		}
		if to != nil {
			m.To = to.name()
		}
		d.moves = append(d.moves, m)
	}
	if from == nil || to == nil {
		return
	}
	r := d.byMember[from]
	if r == nil {
		r = &revoking{mem: from}
		d.byMember[from] = r
		d.revoking = append(d.revoking, r)
	}
	r.add(p)
	if r.last != to { // Members come one after the other.
		r.last = to
		if r.forN++; len(r.fors) < maxWaiting {
			r.fors = append(r.fors, to)
		}
	}
}

func (r *revoking) add(p part) {
	if r.partN++; len(r.parts) < maxNames {
		r.parts = append(r.parts, p)
	}
}

// topic is the name of a topic, or its id if it is gone.
func (d *differences) topic(id metadata.TopicID) string {
	if d.image != nil {
		if t := d.image.TopicByID(id); t != nil {
			return t.Name
		}
	}
	if name, ok := d.before.name(id); ok {
		return name
	}
	return id.String()
}

// told lists partitions by topic.
func (d *differences) told(list []part) []journal.Parts {
	var out []journal.Parts
	for i, p := range list {
		if i == 0 || p.topic != list[i-1].topic {
			out = append(out, journal.Parts{Topic: d.topic(p.topic)})
		}
		last := &out[len(out)-1]
		last.Partitions = append(last.Partitions, p.n)
	}
	return out
}

// revokes lists who must let go of what for whom, the most first.
func (d *differences) revokes() ([]journal.Revoke, int) {
	slices.SortStableFunc(d.revoking, func(a, b *revoking) int { return cmp.Compare(b.partN, a.partN) })
	var out []journal.Revoke
	for _, r := range d.revoking[:min(len(d.revoking), maxTriggers)] {
		out = append(out, d.revoke(r))
	}
	return out, len(d.revoking)
}

func (d *differences) revoke(r *revoking) journal.Revoke {
	slices.SortFunc(r.parts, compareParts)
	e := journal.Revoke{Who: r.mem.who(), Parts: d.told(r.parts), PartN: r.partN, ForN: r.forN}
	e.Timeout = time.Duration(r.mem.says.RebalanceTimeoutMillis) * time.Millisecond
	for _, m := range r.fors {
		e.For = append(e.For, m.who())
	}
	return e
}

// sharesOf lists who is to have more or less, the largest differences first.
func (d *differences) sharesOf() (out []journal.Share) {
	slices.SortStableFunc(d.shares, func(a, b share) int { return cmp.Compare(b.differs(), a.differs()) })
	for _, s := range d.shares[:min(len(d.shares), maxTriggers)] {
		out = append(out, journal.Share{Who: s.mem.who(), Before: s.before, After: s.after})
	}
	return out
}

func (s share) differs() int { return max(s.after-s.before, s.before-s.after) }

// noteTarget tells what a new target takes from whom and gives to whom, compared with
// what members have.
func (g *consumerGroup) noteTarget(x *step, r *run) {
	assigned := make(map[metadata.TopicID]bool, len(r.in.Topics))
	for _, t := range r.in.Topics {
		assigned[t.ID] = true
	}
	d := g.differences(x, assigned)
	slices.SortStableFunc(d.moves, func(a, b journal.Move) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	e := g.entry(x, journal.KindTarget)
	e.Protocol = r.assignor
	if g.story.assignor != r.assignor {
		e.ProtocolBefore = g.story.assignor
	}
	e.Moves, e.MoveN, e.PartitionN = d.moves, d.moveN, d.partitions
	e.Shares, e.ShareN = d.sharesOf(), len(d.shares)
	e.Revokes, e.RevokeN = d.revokes()
	g.story.assignor = r.assignor
	if u := g.story.under; u != nil {
		u.targeted, u.next = x.now, 0
	}
	x.out.Notes = append(x.out.Notes, &e)
}

// noteTooLarge tells that a target cannot be stored.
func (g *consumerGroup) noteTooLarge(x *step, r *run, mem *consumerMember) {
	e := g.entry(x, journal.KindTarget)
	e.Protocol = r.assignor
	because(&e, []journal.Trigger{{Kind: journal.TriggerTooLarge, Who: mem.who(), MaxBytes: x.maxBatch}})
	x.out.Notes = append(x.out.Notes, &e)
}

// unrevoked is what a member has not let go of though it was told to, and who waits for
// that.
func (g *consumerGroup) unrevoked(x *step, mem *consumerMember) *journal.Revoke {
	d, r := &differences{image: x.image}, &revoking{mem: mem}
	pending := mem.now().pending
	for _, p := range pending {
		r.add(p.part)
	}
	for _, m := range g.members {
		if m.now().state == memberUnreleased && slices.ContainsFunc(r.parts, m.isToHave) {
			if r.forN++; len(r.fors) < maxWaiting {
				r.fors = append(r.fors, m)
			}
		}
	}
	e := d.revoke(r)
	e.Held = x.now.Sub(mem.told)
	return &e
}

// isToHave says whether a partition is in the member's target.
func (mem *consumerMember) isToHave(p part) bool {
	_, ok := slices.BinarySearchFunc(mem.target, p, compareParts)
	return ok
}
