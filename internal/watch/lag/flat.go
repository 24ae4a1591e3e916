package lag

// Groups whose lag has not changed since they are watched have no ring, for the sake of
// memory: there may be very many. Their past is known all the same: the lag was what it
// is, and what is not read became older.

// Past is History, and what follows from the lag of now for a group that has none.
func (t *Tracker) Past(name string, level int) []Point {
	g := t.groups[name]
	if g == nil || g.ring != nil || level < 0 || level >= levels {
		return t.History(name, level)
	}
	return t.flat(g, level)
}

// PartitionPast is PartitionHistory in the same way.
func (t *Tracker) PartitionPast(name, topic string, partition int32) []PartitionPoint {
	g := t.groups[name]
	if g == nil {
		return nil
	}
	for _, p := range g.positions {
		if p.log.Partition == partition && p.log.Topic == topic && p.ring == nil {
			return t.flatPartition(g, p)
		}
	}
	return t.PartitionHistory(name, topic, partition)
}

// standing is since when the lag of a group is what it is, by its committed offsets and
// the ends of its logs; false if that is not known.
func (t *Tracker) standing(g *group) (since tick, known bool) {
	for _, p := range g.positions {
		since = max(since, p.changed, p.log.table.standing())
	}
	return since, len(g.positions) > 0 && !g.Unknown && t.seen(g)
}

// standing is when a log was first seen to end where it ends.
func (t *table) standing() tick {
	i := len(t.points) - 1
	if i < 0 {
		return 0
	}
	for i > 0 && t.points[i-1].end() == t.points[i].end() {
		i--
	}
	return t.points[i].at
}

// ageAt is how old the first unread record was at a time, in seconds.
func (t *Tracker) ageAt(p *position, at tick) float64 {
	return float64(p.age(t.millis(at))) / 1000
}

// flat is the history of a group that has no ring.
func (t *Tracker) flat(g *group, level int) []Point {
	since, known := t.standing(g)
	if !known {
		return nil
	}
	var out []Point
	t.slots(since, levelStep[level], levelPoints, func(begin, end tick) {
		one := Point{At: t.time(begin), Lag: g.Lag}
		for _, p := range g.positions {
			one.Seconds = max(one.Seconds, t.ageAt(p, end))
		}
		out = append(out, one)
	})
	return out
}

// flatPartition is where a group without a ring was in a partition.
func (t *Tracker) flatPartition(g *group, p *position) []PartitionPoint {
	if !p.known || !t.seen(g) {
		return nil
	}
	var out []PartitionPoint
	t.slots(p.changed, minute, partitionPoints, func(begin, _ tick) {
		out = append(out, PartitionPoint{t.time(begin), p.committed, t.ageAt(p, max(begin, p.changed))})
	})
	return out
}

// slots calls f with the begin and the end of each step since a time, as far as rings go
// back.
func (t *Tracker) slots(since, step tick, most uint32, f func(begin, end tick)) {
	last := t.now / step
	for s := max(since/step, last-min(last, tick(most-1))); s <= last; s++ {
		f(s*step, min((s+1)*step, t.now))
	}
}
