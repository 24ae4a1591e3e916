package window

import "time"

// Batch is a record batch of the log: all offsets that it has, among them those of control
// records and of records that compaction removed. Where offsets have holes all of them must
// be records, since clients count the offsets of a range one by one.
type Batch struct{ First, Last int64 }

// Mode says how exactly MaxRecords is meant (KIP-1206).
type Mode int8

// The modes.
const (
	// ByBatch takes record batches as a whole, and may so exceed MaxRecords.
	ByBatch Mode = 0
	// ByRecord never takes more, and may leave a part of a batch.
	ByRecord Mode = 1
)

// Fetch is what a member asks for, and what was read for it.
type Fetch struct {
	Member     string
	Mode       Mode
	MaxRecords int64
	// BatchSize is how large a range should be: it ends with the batch in which it gets there.
	BatchSize int64

	// From is where reading began, as NextFetch said, and Next where it ended: all that the
	// log has from From on and before Next is in Batches, ascending.
	From, Next int64
	Batches    []Batch
	// Aborted are the offsets among them that readers of committed records do not see.
	// They are ascending.
	Aborted []Batch
}

// Range is records that were acquired, and how often they have been delivered.
type Range struct {
	First, Last int64
	Count       int16
}

// Acquire gives records to a member, in the order of their offsets: those that are available
// again, then new ones as far as the window has room. Ranges ascend and do not overlap.
//
// What the log has no record of any more, or no reader may see, is delivered to no one, and
// is not waited for.
func (p *Partition) Acquire(now time.Time, f Fetch) []Range {
	if f.MaxRecords <= 0 || f.From > p.next {
		return nil
	}
	a := &acquisition{Fetch: f, Partition: p, until: now.Add(p.set.Lock).UnixNano(), batch: none}
	first := max(f.From, p.start)
	if last := min(f.Next, p.next) - 1; first <= last {
		p.change(first, last, a.again)
		p.advance()
	}
	a.more()
	return a.ranges
}

// none is no batch.
const none = -1

// acquisition is one call of Acquire.
type acquisition struct {
	Fetch
	*Partition
	until  int64
	ranges []Range
	taken  int64
	stop   bool
	batch  int // the last one that something was taken of
	here   int // the one that the walk is at, or the next if it is in a hole
	past   int // how many of Aborted it has passed
}

// The kinds of offsets that were read.
const (
	record = iota
	hole
	aborted
)

// at says what was read at an offset, and up to which offset that is alike. Offsets ascend
// from call to call.
func (a *acquisition) at(offset int64) (kind int, last int64) {
	for a.here < len(a.Batches) && a.Batches[a.here].Last < offset {
		a.here++
	}
	if a.here == len(a.Batches) {
		return hole, a.Next - 1
	}
	b := a.Batches[a.here]
	if b.First > offset {
		return hole, b.First - 1
	}
	for a.past < len(a.Aborted) && a.Aborted[a.past].Last < offset {
		a.past++
	}
	if a.past == len(a.Aborted) || a.Aborted[a.past].First > b.Last {
		return record, b.Last
	}
	if x := a.Aborted[a.past]; x.First > offset {
		return record, x.First - 1
	}
	return aborted, min(a.Aborted[a.past].Last, b.Last)
}

// again takes what is available of a run that was delivered before, or that lies between
// such runs.
func (a *acquisition) again(r run) (last int64, to is) {
	if r.state != Available || a.stop {
		return r.last, r.is
	}
	kind, last := a.at(r.first)
	last = min(last, r.last)
	switch {
	case kind == hole:
		return last, is{state: absent}
	case kind == aborted || r.count >= a.set.Limit:
		return last, r.settled(Archived)
	}
	most := last - r.first + 1
	if n := a.alone(r); n > 0 {
		if a.stop = true; a.taken > 0 {
			return r.last, r.is
		}
		most = min(most, n)
	}
	if most = a.allowed(most); most == 0 {
		return r.last, r.is
	}
	return r.first + most - 1, a.take(r.first, most, r.count)
}

// alone is how many records may be delivered at once, and nothing else with them, because
// what was delivered so often may be what makes its consumers fail (KAFKA-17541): half of
// the run, then a quarter, and one at a time if it is the last attempt. It is 0 for any
// number.
func (a *acquisition) alone(r run) int64 {
	from := max(2, (a.set.Limit+1)/2)
	switch {
	case r.count < from:
		return 0
	case r.count == a.set.Limit-1:
		return 1
	}
	return max(1, r.length()>>(r.count-from+1))
}

// allowed is how many of the next records MaxRecords has room for; none ends the walk.
func (a *acquisition) allowed(most int64) int64 {
	switch {
	case a.Mode == ByRecord:
		most = min(most, a.MaxRecords-a.taken)
	case a.taken >= a.MaxRecords && a.batch != a.here:
		most = 0
	}
	a.stop = a.stop || most == 0
	return most
}

// take is what becomes of the next records. They are part of the last range if that ends
// before them, and not with a batch in which it got large enough.
func (a *acquisition) take(first, n int64, count int16) is {
	count++
	last := first + n - 1
	var before *Range
	if i := len(a.ranges) - 1; i >= 0 && a.ranges[i].Last+1 == first && a.ranges[i].Count == count {
		before = &a.ranges[i]
	}
	if before == nil || a.batch != a.here && first-before.First >= a.BatchSize {
		a.ranges = append(a.ranges, Range{first, last, count})
	} else {
		before.Last = last
	}
	a.batch = a.here
	a.taken += n
	return is{state: Acquired, count: count, member: a.Member, until: a.until}
}

// more takes records that were never delivered.
func (a *acquisition) more() {
	p := a.Partition
	room := p.free()
	for !a.stop && p.next < a.Next {
		kind, last := a.at(p.next)
		if kind != record && len(p.runs) == 0 {
			p.next, p.start = last+1, last+1
			continue
		}
		counts := !p.sparse || kind != hole
		if counts {
			last = min(last, p.next+room-1)
		}
		if last < p.next {
			return
		}
		n := last - p.next + 1
		to := is{state: absent}
		switch kind {
		case aborted:
			to = is{state: Archived}
		case record:
			if n = a.allowed(n); n == 0 {
				return
			}
			to = a.take(p.next, n, 0)
		}
		p.append(p.next+n-1, to)
		if counts {
			room -= n
		}
	}
}
