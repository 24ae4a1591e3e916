package consumer

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/metadata"
)

// maxWaiting is how many of those who wait for a member the journal names.
const maxWaiting = 3

// differences is how what members have differs from what they are to have.
type differences struct {
	image      *metadata.Image
	before     *modern.Topics // the topics before they changed, nil if they have not
	partitions int            // that are in the target
	moves      []journal.Move
	moveN      int
	shares     []share
	revoking   []*revoking
	byMember   map[*Member]*revoking
}

// share is how much a member has and is to have.
type share struct {
	mem           *Member
	before, after int
}

// revoking is a member that has what others are to have.
type revoking struct {
	mem   *Member
	parts []Partition
	partN int
	fors  []*Member
	forN  int
	last  *Member
}

// differences compares what members have, or have yet to let go of, with the target. A
// partition of a topic that is not assigned is no one's after that; nil is that the
// topics are not known.
func (g *Group) differences(x *kind.Step, assigned map[metadata.TopicID]bool) *differences {
	d := &differences{image: x.Image, before: g.Account.TopicsBefore, byMember: map[*Member]*revoking{}}
	for _, mem := range g.Members {
		now := mem.Now()
		has := len(now.Assigned) + len(now.Pending)
		d.partitions += len(mem.Target)
		if has != len(mem.Target) {
			d.shares = append(d.shares, share{mem, has, len(mem.Target)})
		} else if len(now.Pending) == 0 && slices.EqualFunc(now.Assigned, mem.Target, func(a Held, b Partition) bool { return a.Part == b }) {
			continue
		}
		for _, p := range mem.Target {
			if owner := g.Owners[p]; owner != mem {
				d.move(p, owner, mem)
			}
		}
		for _, list := range [][]Held{now.Assigned, now.Pending} {
			for _, p := range list {
				if assigned != nil && !assigned[p.Part.Topic] {
					d.move(p.Part, mem, nil)
				}
			}
		}
	}
	return d
}

// move notes that a partition is to change hands. Either may be no one.
func (d *differences) move(p Partition, from, to *Member) {
	if d.moveN++; len(d.moves) < kind.MaxMoves {
		m := journal.Move{Topic: d.topic(p.Topic), Partition: p.Number}
		if from != nil {
			m.From = from.Name()
		}
		if to != nil {
			m.To = to.Name()
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

func (r *revoking) add(p Partition) {
	if r.partN++; len(r.parts) < kind.MaxNames {
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
	if name, ok := d.before.Name(id); ok {
		return name
	}
	return id.String()
}

// byTopic lists partitions by topic.
func (d *differences) byTopic(list []Partition) []journal.Parts {
	var out []journal.Parts
	for i, p := range list {
		if i == 0 || p.Topic != list[i-1].Topic {
			out = append(out, journal.Parts{Topic: d.topic(p.Topic)})
		}
		last := &out[len(out)-1]
		last.Partitions = append(last.Partitions, p.Number)
	}
	return out
}

// revokes lists who must let go of what for whom, the most first.
func (d *differences) revokes() ([]journal.Revoke, int) {
	slices.SortStableFunc(d.revoking, func(a, b *revoking) int { return cmp.Compare(b.partN, a.partN) })
	var out []journal.Revoke
	for _, r := range d.revoking[:min(len(d.revoking), kind.MaxTriggers)] {
		out = append(out, d.revoke(r))
	}
	return out, len(d.revoking)
}

func (d *differences) revoke(r *revoking) journal.Revoke {
	slices.SortFunc(r.parts, modern.Compare[Partition])
	e := journal.Revoke{Who: modern.Who(r.mem), Parts: d.byTopic(r.parts), PartN: r.partN, ForN: r.forN}
	e.Timeout = time.Duration(r.mem.Metadata.RebalanceTimeoutMillis) * time.Millisecond
	for _, m := range r.fors {
		e.For = append(e.For, modern.Who(m))
	}
	return e
}

// sharesOf lists who is to have more or less, the largest differences first.
func (d *differences) sharesOf() (out []journal.Share) {
	sort.SliceStable(d.shares, func(i, j int) bool { return d.shares[i].differs() > d.shares[j].differs() })
	for _, s := range d.shares[:min(len(d.shares), kind.MaxTriggers)] {
		out = append(out, journal.Share{Who: modern.Who(s.mem), Before: s.before, After: s.after})
	}
	return out
}

func (s share) differs() int { return max(s.after-s.before, s.before-s.after) }

// NoteTarget tells what a new target takes from whom and gives to whom, compared with
// what members have.
func (g *Group) NoteTarget(x *kind.Step, made modern.Job[Partition]) {
	topics := made.(*job).in.Topics
	assigned := make(map[metadata.TopicID]bool, len(topics))
	for _, t := range topics {
		assigned[t.ID] = true
	}
	d := g.differences(x, assigned)
	sort.SliceStable(d.moves, func(i, j int) bool {
		a, b := &d.moves[i], &d.moves[j]
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition)) < 0
	})
	e := g.Entry(x, journal.KindTarget)
	e.Protocol = made.Assignor()
	if last := g.Account.Assignor; last != e.Protocol {
		e.ProtocolBefore = last
	}
	e.Moves, e.MoveN, e.PartitionN = d.moves, d.moveN, d.partitions
	e.Shares, e.ShareN = d.sharesOf(), len(d.shares)
	e.Revokes, e.RevokeN = d.revokes()
	x.Out.Notes = append(x.Out.Notes, &e)
}

// Revokes lists who must let go of what.
func (g *Group) Revokes(x *kind.Step) ([]journal.Revoke, int) { return g.differences(x, nil).revokes() }

// Unrevoked is what a member has not let go of though it was told to, and who waits for
// that.
func (g *Group) Unrevoked(x *kind.Step, mem *Member) *journal.Revoke {
	d, r := &differences{image: x.Image}, &revoking{mem: mem}
	pending := mem.Now().Pending
	for _, p := range pending {
		r.add(p.Part)
	}
	for _, m := range g.Members {
		if m.Now().State == modern.Unreleased && slices.ContainsFunc(r.parts, m.isTarget) {
			if r.forN++; len(r.fors) < maxWaiting {
				r.fors = append(r.fors, m)
			}
		}
	}
	e := d.revoke(r)
	e.Held = x.Now.Sub(mem.Since)
	return &e
}

// isTarget says whether a partition is in the member's target.
func (mem *Member) isTarget(p Partition) bool {
	_, ok := slices.BinarySearchFunc(mem.Target, p, modern.Compare[Partition])
	return ok
}
