package lag

import (
	"cmp"
	"math"
	"time"
)

// group is what is kept of a group.
type group struct {
	*behind
	name        string
	members     int32
	uncommitted int32  // Partitions that it has, and has not committed.
	pass        uint32 // dropped if it is no group any more.
	seenAt      tick
}

// behind is what is kept of a group that has committed.
type behind struct {
	GroupLag
	positions []*position // In order of topic and partition.
	meter     meter
	ring      *groupRing
	deaths    map[*position]*deaths // Of partitions in which someone died; nil without.
}

// nothing is what is known of groups that have never committed. There may be very many,
// so they share it.
var nothing = &behind{GroupLag: GroupLag{Rates: Rates{Known: true}, CatchUp: CaughtUp, Margin: math.Inf(1), OvertakenIn: math.Inf(1)}}

// own gives a group a place of its own for what is known of it.
func (t *Tracker) own(g *group) {
	if g.behind == nothing {
		own := *nothing
		g.behind = &own
		t.bytes += behindSize
	}
}

// lag is how far a group is behind.
func (g *group) lag() GroupLag {
	out := g.GroupLag
	out.Name, out.Members, out.Uncommitted = g.name, int(g.members), int(g.uncommitted)
	return out
}

// dropped stands for the pass of a group that was dropped: who still knows it looks for
// another one.
const dropped = math.MaxUint32 - 1

// position is what is kept of a group and a partition that it has committed.
type position struct {
	log       *log
	ring      *partitionRing
	committed int64
	lag       int64
	first     int64 // When the first unread record was appended, in milliseconds since 1970.
	progress
	outside     tick // When the group had no members, and went on. 0 for never.
	known       bool // The lag is.
	approximate bool // The lag is.
	dated       bool // The time is; if not, it was then or earlier.
	verdict     Verdict
}

// left says whether there is something to read.
func (p *position) left() bool { return p.lagging != 0 }

// age is how old the first unread record is, in milliseconds.
func (p *position) age(nowMillis int64) int64 {
	if p.lag == 0 || !p.left() {
		return 0
	}
	return max(nowMillis-p.first, 0)
}

// readOutside says whether someone who is no member goes on reading, at the pace that is usual.
func (p *position) readOutside(now tick) bool {
	return p.outside != 0 && now-p.outside < p.patience()
}

// Group takes in a group.
func (t *Tracker) Group(facts Group) {
	facts.Positions = inOrder(facts.Positions)
	g := t.groups[facts.Name]
	first := g == nil
	if first {
		g = &group{behind: nothing, name: facts.Name}
		t.groups[facts.Name] = g
		t.all = append(t.all, g)
		t.unsorted = true
		t.bytes += groupSize + int64(len(facts.Name))
	}
	empty := g.members == 0 && facts.Members == 0
	if first {
		g.seenAt = t.now
	}
	t.see(g)
	g.members, g.uncommitted = int32(facts.Members), uncommitted(facts.Positions)
	if g.behind == nothing && int(g.uncommitted) == len(facts.Positions) {
		return
	}
	t.own(g)
	before := g.Lag
	g.GroupLag = GroupLag{}
	t.match(g, facts.Positions)
	i := 0
	for j := range facts.Positions {
		f := &facts.Positions[j]
		if f.Committed < 0 {
			continue
		}
		if p := g.positions[i]; t.observe(g, p, f) == advanced && empty {
			p.outside = t.now // The last commit of a member that left is not, since it was there a pass ago.
		}
		i++
	}
	for j := range facts.Deaths {
		t.died(g, &facts.Deaths[j])
	}
	t.summarize(g)
	if !first && before != g.Lag {
		t.groupMoved(g, t.now)
	}
	t.drawGroup(g)
}

// see notes that a group was seen. If passes before this one have not seen it, no one knows
// that it stood still in that time, nor whether what it reads next was trimmed.
func (t *Tracker) see(g *group) {
	if g.pass+1 != t.pass {
		for _, p := range g.positions {
			p.dated = false
		}
	}
	if gap := t.before - min(g.seenAt, t.before); gap > 2*step {
		for _, p := range g.positions {
			p.missed(gap)
		}
	}
	g.pass, g.seenAt = t.pass, t.now
}

// uncommitted counts the partitions without a committed offset.
func uncommitted(facts []Position) (n int32) {
	for i := range facts {
		if facts[i].Committed < 0 {
			n++
		}
	}
	return n
}

// drawGroup adds to the ring of a group.
func (t *Tracker) drawGroup(g *group) {
	if g.ring != nil && !g.Unknown { // What is a part of it only would look like less lag.
		g.ring.add(t.now, g.Lag, int64(g.Seconds*1000))
	}
}

// match makes the positions of a group those that have a committed offset.
func (t *Tracker) match(g *group, facts []Position) {
	same, i := true, 0
	for j := range facts {
		if f := &facts[j]; f.Committed >= 0 {
			same = same && i < len(g.positions) && g.positions[i].is(f)
			i++
		}
	}
	if same && i == len(g.positions) {
		return
	}
	before := g.positions
	t.bytes -= int64(cap(before)) * placeSize
	g.positions = make([]*position, 0, i)
	for j := range facts {
		f := &facts[j]
		if f.Committed < 0 {
			continue
		}
		for len(before) > 0 && before[0].compare(f) < 0 {
			t.dropPosition(g, before[0])
			before = before[1:]
		}
		if len(before) > 0 && before[0].is(f) {
			g.positions, before = append(g.positions, before[0]), before[1:]
			continue
		}
		g.positions = append(g.positions, t.newPosition(f))
	}
	for _, p := range before {
		t.dropPosition(g, p)
	}
	t.bytes += int64(cap(g.positions)) * placeSize
}

func (p *position) compare(f *Position) int {
	return cmp.Or(cmp.Compare(p.log.Topic, f.Topic), cmp.Compare(p.log.Partition, f.Partition))
}

func (p *position) is(f *Position) bool {
	return p.log.Partition == f.Partition && p.log.Topic == f.Topic
}

func (t *Tracker) newPosition(f *Position) *position {
	p := &position{}
	t.read(p, t.log(f.Topic, f.Partition))
	t.bytes += positionSize
	return p
}

// read makes a position one of a log, which has a table from then on.
func (t *Tracker) read(p *position, l *log) {
	p.log = l
	l.users++
	if l.users == 1 {
		t.note(l)
	}
}

func (t *Tracker) dropPosition(g *group, p *position) {
	t.forgive(g, p)
	t.dropPartitionRing(p)
	t.bytes -= positionSize
	p.log.users--
	if p.log.users == 0 && !p.log.dropped {
		p.log.table = table{}
		t.recount(p.log)
	}
}

func (t *Tracker) dropGroup(g *group) {
	if g.pass == dropped {
		return
	}
	for _, p := range g.positions {
		t.dropPosition(g, p)
	}
	t.dropGroupRing(g)
	g.pass = dropped
	delete(t.groups, g.name)
	t.bytes -= groupSize + int64(len(g.name)) + int64(cap(g.positions))*placeSize
	if g.behind != nothing {
		t.bytes -= behindSize
	}
}

// Forget drops a group that was deleted: another of its name has no part in its past. It
// stays in the list until End, which looks at all groups once, however many were deleted.
func (t *Tracker) Forget(name string) {
	if g := t.groups[name]; g != nil {
		t.dropGroup(g)
	}
}

// ago is how long ago something was: negative for never.
func (t *Tracker) ago(at time.Time) time.Duration {
	if at.IsZero() {
		return -1
	}
	return max(t.time(t.now).Sub(at), 0)
}
