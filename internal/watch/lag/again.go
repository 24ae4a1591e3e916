package lag

// Most groups are in most passes as they were in the one before: no one joins, no one
// commits, nothing is produced. To look at such a group costs more than all that is done
// with what was seen, so whoever hands in facts asks first whether they are needed:
//
//	Quiet: what can be said of the group follows from what is kept of it and from the logs;
//	       if its coordinator says that it is as it was, Again stands for Group
//	Loud:  its facts are needed, and Group takes them
//
// What is said of a group is the same on both ways; a test compares them.

// Quiet is how quiet a group is.
type Quiet uint8

// How quiet a group is.
const (
	Loud    Quiet = iota // Its facts are needed.
	Moving               // What is kept of it will do, but logs or time move what is said of it.
	Resting              // What was said of it stands.
)

// Kept is what a tracker keeps of a group. It may be held between passes: one that was
// dropped is Loud.
type Kept struct{ g *group }

// Keep returns what is kept of a group, nothing if there is none.
func (t *Tracker) Keep(name string) Kept { return Kept{t.groups[name]} }

// Lag is how far the group is behind, as of when it was last taken in.
func (k Kept) Lag() GroupLag { return k.g.lag() }

// Quiet says how much need be known of a group that has not changed since the last pass.
// It is asked after the logs have been handed in.
func (t *Tracker) Quiet(k Kept) Quiet {
	g := k.g
	if g == nil || g.pass+1 != t.pass {
		return Loud
	}
	out := Resting
	if (g.Rates != Rates{Known: true}) {
		out = Moving
	}
	for _, p := range g.positions {
		if p.log.moved != t.pass && p.rests() && p.log.pass == t.pass {
			continue
		}
		if out = Moving; !t.quiet(g, p) {
			return Loud
		}
	}
	return out
}

// rests says that a group has read all of a partition: then nothing of it changes with
// time.
func (p *position) rests() bool {
	return p.known && !p.left() && !p.approximate && p.verdict == Fine && p.lagging == 0 && p.changed != 0 && !p.log.Offline && !p.log.dropped
}

// quiet says whether what there is to say of a position follows from what is kept of it.
// Of one that may be stuck it matters who fetches; where offsets are not dense, records
// must be counted; and what has no time yet is looked for.
func (t *Tracker) quiet(g *group, p *position) bool {
	l := p.log
	if !p.known || p.changed == 0 || l.dropped || l.Offline || l.pass != t.pass || l.TimeBits > 0 {
		return false
	}
	return g.members == 0 || p.lagging == 0 || t.now-max(p.changed, p.lagging) < p.patience()
}

// Again takes in a group that is as it was in the last pass, and is not Loud.
func (t *Tracker) Again(k Kept, q Quiet) {
	g := k.g
	t.see(g)
	if q == Resting {
		t.drawResting(g)
		return
	}
	before := g.Lag
	g.GroupLag = GroupLag{}
	for _, p := range g.positions {
		facts := Position{Topic: p.log.Topic, Partition: p.log.Partition, Committed: p.committed}
		if p.log.TimeBits > 0 { // It rests, or would be Loud: what was counted stands.
			facts.Behind = &Count{p.lag, p.approximate}
		}
		t.observe(g, p, &facts)
	}
	t.summarize(g)
	if before != g.Lag {
		t.groupMoved(g, t.now)
	}
	t.drawGroup(g)
}

// drawResting adds to the rings of a group that has read everything. Those of partitions have
// a point a minute.
func (t *Tracker) drawResting(g *group) {
	t.drawGroup(g)
	if !t.newMinute {
		return
	}
	for _, p := range g.positions {
		t.draw(p, stayed)
	}
}
