package lag

import "slices"

// A record that kills whoever reads it shows in where members were when they died: one after
// the other had the partition, with the same offset committed and something to read behind
// it. Nothing is kept of partitions in which no one died, and what is kept goes as soon as
// the group gets on there, or has nothing left to read.

const (
	// suspectAfter deaths of different members within suspectWithin make a suspect.
	suspectAfter  = 3
	suspectWithin = 60 * minute
	// maxSuspects is how many partitions a Suspicion names.
	maxSuspects = 20
)

// Death is that a member is gone which had a partition.
type Death struct {
	Who       uint64 // The member: Who of its id.
	Topic     string
	Partition int32
	Committed int64 // What was committed of it then.
}

// Suspect is a partition with a record that may kill who reads it.
type Suspect struct {
	Topic     string
	Partition int32
	Committed int64
	End       int64
	Deaths    int
}

// Suspicion is the partitions of a group that have become suspects. The list may be shorter
// than the count.
type Suspicion struct {
	Group      string
	Partitions []Suspect
	N          int
}

// deaths is who died at the committed offset of a partition.
type deaths struct {
	who     [suspectAfter]uint64 // The last of them, by a hash of their ids.
	at      [suspectAfter]tick
	first   tick
	count   uint32
	suspect bool
	told    bool // It was part of a Suspicion.
}

// note notes that someone died. Who died twice was told of twice.
func (d *deaths) note(who uint64, now tick) {
	if slices.Contains(d.who[:min(d.count, suspectAfter)], who) {
		return
	}
	if d.count == 0 {
		d.first = now
	}
	i := d.count % suspectAfter
	d.who[i], d.at[i] = who, now
	d.count++
	d.suspect = d.suspect || d.count >= suspectAfter && now-d.at[d.count%suspectAfter] <= suspectWithin
}

// stale says that the last death was too long ago to be one of several. A suspect stays one.
func (d *deaths) stale(now tick) bool {
	return d != nil && !d.suspect && now-d.at[(d.count-1)%suspectAfter] > suspectWithin
}

// suspects is how many died, 0 if that is no suspect.
func (d *deaths) suspects() int {
	if d == nil || !d.suspect {
		return 0
	}
	return int(d.count)
}

// Who makes a number of a member's id, which may be long. It is FNV-1a, the same in each run.
func Who(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	return h
}

// died notes a death in a partition that has lag, if the group has not got on since. A reader
// that an open transaction holds back has nothing to die of.
func (t *Tracker) died(g *group, d *Death) {
	i, found := slices.BinarySearchFunc(g.positions, &Position{Topic: d.Topic, Partition: d.Partition}, (*position).compare)
	if !found {
		return
	}
	p := g.positions[i]
	if p.lagging == 0 || p.committed != d.Committed || p.heldBack() {
		return
	}
	of := g.deaths[p]
	if of == nil {
		if !t.room(deathsSize, false, t.now) {
			return
		}
		if g.deaths == nil {
			g.deaths = map[*position]*deaths{}
		}
		of = &deaths{}
		g.deaths[p] = of
		t.bytes += deathsSize
	}
	of.note(d.Who, t.now)
}

// heldBack says that who reads committed records only has read all that there is.
func (p *position) heldBack() bool {
	return p.log.LastStable >= 0 && Next(p.committed, p.log.Bounds) >= p.log.LastStable
}

// forgive forgets who died in a partition.
func (t *Tracker) forgive(g *group, p *position) {
	if g.deaths[p] == nil {
		return
	}
	t.bytes -= deathsSize
	if delete(g.deaths, p); len(g.deaths) == 0 {
		g.deaths = nil // Of a map that was large the table would stay.
	}
}

// blame says whether it is records that members die of. If they die in several partitions,
// and the group has got on in none since the first did, it is rather what they run: a deploy.
func (t *Tracker) blame(g *group, suspects int) {
	first, moved := t.now, tick(0)
	for _, p := range g.positions {
		moved = max(moved, p.changed)
		if d := g.deaths[p]; d.suspects() > 0 {
			first = min(first, d.first)
		}
	}
	if g.Dying = suspects > 1 && moved <= first; g.Dying {
		return
	}
	g.Poison = int32(suspects)
	s := Suspicion{Group: g.name}
	for _, p := range g.positions {
		d := g.deaths[p]
		if d.suspects() == 0 || d.told {
			continue
		}
		d.told = true
		if s.N++; len(s.Partitions) < maxSuspects {
			s.Partitions = append(s.Partitions, Suspect{p.log.Topic, p.log.Partition, p.committed, p.log.End, d.suspects()})
		}
	}
	if s.N > 0 {
		t.suspected = append(t.suspected, s)
	}
}

// Suspected returns what has become suspect since it was last asked; each is told once.
func (t *Tracker) Suspected() []Suspicion {
	out := t.suspected
	t.suspected = nil
	return out
}
