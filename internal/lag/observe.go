package lag

// observe takes in where a group is in a partition that it has committed.
func (t *Tracker) observe(g *group, p *position, f *Position) {
	if p.log.dropped {
		p.log.users--
		t.read(p, t.log(f.Topic, f.Partition))
		p.changed, p.dated = 0, false
	}
	l := p.log
	if l.pass != t.pass || l.Offline {
		// Without a log there is no such topic any more, and nothing to read.
		p.known, p.lag, p.verdict = false, 0, Fine
		g.Unknown = g.Unknown || l.pass == t.pass
		return
	}
	g.Total.Partitions++
	c, known := l.behind(f.Committed, f.Behind)
	moved := p.movement(f.Committed, t.pass)
	t.count(g, p, f, c, known)
	next := Next(f.Committed, l.Bounds)
	left := next < l.End && (c.Records > 0 || !known)
	if next != p.next || moved == appeared {
		p.dated = false
	}
	p.committed, p.next, p.lag, p.known, p.approximate = f.Committed, next, c.Records, known, c.Approximate
	if left && !p.dated {
		p.first, p.dated = t.appended(l, next)
	}
	if !known {
		g.Unknown, p.lag = true, 0
	} else {
		g.add(c)
	}
	p.observe(t.now, moved, left)
	t.draw(p, moved)
	p.verdict = p.judge(reading{
		now: t.now, members: g.Members > 0, held: l.LastStable >= 0 && next >= l.LastStable,
		owner: f.Owner, fetched: t.ago(f.Fetched), committed: t.ago(f.CommittedAt),
	})
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
// produced, less what the lag has grown by.
func (t *Tracker) count(g *group, p *position, f *Position, c Count, known bool) {
	if p.changed == 0 || p.log.began == t.pass {
		return
	}
	var consumed int64
	switch {
	case f.Committed <= p.committed:
	case p.log.TimeBits == 0:
		consumed = min(f.Committed, p.log.End) - max(p.committed, p.log.Start)
	case known && p.known:
		consumed = p.log.grown - (c.Records - p.lag)
	}
	g.consumed = sum(g.consumed, max(consumed, 0))
	g.produced = sum(g.produced, p.log.grown)
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
// known of the past it stands still.
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
	}
	then, ok := p.log.table.endAt(t.now - min(since, t.now))
	if !ok || then.at == t.now {
		out.noGrowth = true
		return out
	}
	produced := float64(p.log.End-then.end()) / float64(t.now-then.at)
	out.growing = (produced - float64(p.committed-committed)/float64(since)) * float64(second)
	return out
}
