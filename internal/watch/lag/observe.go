package lag

// observe takes in where a group is in a partition that it has committed, and says what
// became of the committed offset, if the log is known.
func (t *Tracker) observe(g *group, p *position, f *Position) movement {
	if p.log.dropped {
		p.log.users--
		t.read(p, t.log(f.Topic, f.Partition))
		p.changed, p.dated = 0, false
	}
	l := p.log
	if l.pass != t.pass || l.Offline {
		if l.pass != t.pass || f.Committed != p.committed {
			t.forgive(g, p)
		}
		// Without a log there is no such topic any more, and nothing to read.
		p.known, p.lag, p.verdict = false, 0, Fine
		p.missed(t.now - t.before)
		if l.began == t.pass {
			p.changed = 0 // What was committed before was of another log.
		}
		p.unseen(f.Committed, t.now)
		g.Unknown = g.Unknown || l.pass == t.pass
		return stayed
	}
	g.Total.Partitions++
	g.Sparse = g.Sparse || l.TimeBits > 0
	c, known := l.behind(f.Committed, f.Behind)
	moved := p.movement(f.Committed, t.pass)
	t.count(g, p, f, c, known)
	next := Next(f.Committed, l.Bounds)
	left := next < l.End-int64(l.Tail) && (c.Records > 0 || !known)
	if moved != stayed || !left || g.deaths[p].stale(t.now) {
		t.forgive(g, p)
	}
	if moved != stayed || !left || next != f.Committed && l.trimmed == t.pass {
		p.dated = false
	}
	p.committed, p.lag, p.known, p.approximate = f.Committed, c.Records, known, c.Approximate
	if left && !p.dated {
		p.first, p.dated = t.appended(l, l.beyondHole(next))
	}
	if !known {
		g.Unknown, p.lag = true, 0
	} else {
		g.add(c)
	}
	p.observe(t.now, moved, left)
	t.draw(p, moved)
	p.verdict = p.judge(reading{
		now: t.now, members: g.members > 0, held: p.heldBack(),
		owner: f.Owner, fetched: t.ago(f.Fetched), committed: t.ago(f.CommittedAt),
	})
	return moved
}

// missed takes in that no one could look for a while: that time does not count as one in
// which the group stood still.
func (p *position) missed(gap tick) {
	if p.lagging != 0 {
		p.lagging = max(p.changed, p.lagging) + gap
	}
}

// unseen takes in a committed offset of a partition that no one can look at. How much was
// consumed is not known then, but when the group last moved is.
func (p *position) unseen(committed int64, now tick) {
	if committed != p.committed {
		p.dated = false
	}
	if p.changed != 0 && committed != p.committed {
		p.changed = now
		if committed < p.committed {
			p.rewound = now
		}
	}
	p.committed = committed
}

// movement says what became of the committed offset since the last pass.
func (p *position) movement(committed int64, pass uint32) movement {
	switch {
	case p.changed == 0 || p.log.began == pass:
		return appeared
	case committed > p.committed:
		return advanced
	case committed < p.committed:
		return wentBack
	}
	return stayed
}

// count counts what was produced and consumed since the last pass. What was deleted
// unread was not consumed. Where offsets are not dense, what was consumed is what was
// produced, less what the lag has grown by. No one may know how many were produced there:
// then it is at least what the lag has grown by, so that what is consumed beyond what is
// produced is right, by which it is told whether the group catches up. To what was
// approximate there is no difference. Nor is anything counted after a pass that could not look
// at the partition: what was produced meanwhile would count, and what was consumed would not.
func (t *Tracker) count(g *group, p *position, f *Position, c Count, known bool) {
	if p.changed == 0 || p.log.began == t.pass || !p.known {
		return
	}
	var consumed int64
	produced := p.log.grown
	switch {
	case f.Committed < p.committed:
	case p.log.TimeBits == 0:
		consumed = min(f.Committed, p.log.End) - max(p.committed, p.log.Start)
	case known && !p.approximate:
		consumed = produced - (c.Records - p.lag)
		produced += max(-consumed, 0)
	}
	if f.Committed > p.committed {
		g.consumed = sum(g.consumed, max(consumed, 0))
	}
	g.produced = sum(g.produced, produced)
}

// draw adds to the ring of a partition.
func (t *Tracker) draw(p *position, m movement) {
	if m == advanced || m == wentBack {
		t.partitionMoved(p, t.now)
	}
	if p.ring != nil {
		p.ring.add(t.now, p.committed, p.age(t.nowMillis))
	}
}

// pace says how a group gets on in a partition, over five minutes. Where nothing is
// known of the past but that it has not moved for so long, it stands still.
func (t *Tracker) pace(p *position) pace {
	out := pace{
		lag: p.lag, records: p.log.End - p.log.Start, age: float64(p.age(t.nowMillis)) / 1000, aging: 1,
		noGrowth: p.log.TimeBits > 0,
	}
	committed, since := p.committed, rateTime
	if p.ring != nil {
		if then, age, ago, ok := p.ring.at(t.now, rateTime); ok && ago > 0 {
			committed, since = then, ago
			out.aging = min((out.age-float64(age)/1000)/(float64(ago)/float64(second)), 1)
		}
	} else if t.now-p.changed < rateTime {
		out.aging, out.noGrowth = 0, true
		return out
	}
	then, ok := p.log.table.endAt(t.now - min(since, t.now))
	if !ok || then.at == t.now {
		out.noGrowth = true
		return out
	}
	produced := float64(p.log.End-then.end()) / float64(t.now-then.at)
	consumed := float64(p.committed-committed) / float64(since)
	if produced > catchFactor*consumed { // Else it keeps up, as far as one can tell.
		out.growing = (produced - consumed) * float64(second)
	}
	return out
}
