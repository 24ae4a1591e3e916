package window

import (
	"slices"
	"time"
)

// model is a window that keeps what it knows offset by offset, and does everything in the
// way that the rules are written: slowly, and without runs.
type model struct {
	set         Settings
	sparse      bool
	start, next int64
	at          map[int64]is
	write       uint64
}

func newModel(set Settings, sparse bool, start int64, batches []StateBatch) *model {
	m := &model{set: set, sparse: sparse, start: start, next: start, at: map[int64]is{}}
	for _, b := range batches {
		for o := max(b.First, start); o <= b.Last; o++ {
			m.next = max(m.next, o+1)
			m.at[o] = is{state: b.State, count: b.Count}
		}
	}
	m.advance()
	return m
}

func (m *model) advance() {
	for m.start < m.next && m.at[m.start].state.isTerminal() {
		delete(m.at, m.start)
		m.start++
	}
}

func (m *model) used() (n int64) {
	for o := m.start; o < m.next; o++ {
		if !m.sparse || m.at[o].state != absent {
			n++
		}
	}
	return n
}

func in(list []Batch, offset int64) int {
	return slices.IndexFunc(list, func(b Batch) bool { return b.First <= offset && offset <= b.Last })
}

// together is how many neighbours of an offset are like it, from it on.
func (m *model) together(offset, last int64) (n int64) {
	for o := offset; o <= last && m.at[o] == m.at[offset]; o++ {
		n++
	}
	return n
}

func (m *model) acquire(now time.Time, f Fetch) (out []Range) {
	if f.MaxRecords <= 0 || f.From > m.next {
		return nil
	}
	taken, inBatch, left := int64(0), none, int64(-1)
	inWindow := m.next
	for o := max(f.From, m.start); o < f.Next; o++ {
		if o < inWindow && m.at[o].state != Available {
			continue
		}
		if o == inWindow {
			m.advance()
		}
		if left == 0 {
			break
		}
		isNew := o >= inWindow
		if isNew && o > m.next { // The window was empty, and what is not delivered was skipped.
			break
		}
		batch := in(f.Batches, o)
		nothing := batch < 0 || in(f.Aborted, o) >= 0
		if isNew && nothing && m.start == m.next {
			m.start, m.next = o+1, o+1
			continue
		}
		if isNew && (!m.sparse || batch >= 0) && m.used() >= m.set.Window {
			break
		}
		count := m.at[o].count
		switch {
		case batch < 0:
			m.put(o, is{state: absent})
			continue
		case nothing || count >= m.set.Limit:
			m.put(o, is{state: Archived, count: count})
			continue
		}
		if !isNew && left < 0 && count >= max(2, (m.set.Limit+1)/2) {
			if taken > 0 {
				break
			}
			left = max(1, m.together(o, inWindow-1)>>(count-max(2, (m.set.Limit+1)/2)+1))
			if m.set.Limit > 2 && count == m.set.Limit-1 {
				left = 1
			}
			// It ends with its batch, and with what is aborted.
			n := int64(0)
			for x := o; x < f.Next && in(f.Batches, x) == batch && in(f.Aborted, x) < 0; x++ {
				n++
			}
			left = min(left, n)
		}
		if taken >= f.MaxRecords && (f.Mode == ByRecord || batch != inBatch) {
			break
		}
		if left > 0 {
			left--
		}
		m.put(o, is{state: Acquired, count: count + 1, member: f.Member, until: now.Add(m.set.Lock).UnixNano()})
		if n := len(out) - 1; n >= 0 && out[n].Last+1 == o && out[n].Count == count+1 && (batch == inBatch || o-out[n].First < f.BatchSize) {
			out[n].Last = o
		} else {
			out = append(out, Range{o, o, count + 1})
		}
		taken, inBatch = taken+1, batch
	}
	m.advance()
	return out
}

func (m *model) put(o int64, i is) {
	m.at[o] = i
	m.next = max(m.next, o+1)
}

// released is a record that was acquired and not processed.
func (m *model) released(i is) State {
	if i.count >= m.set.Limit {
		return Archived
	}
	return Available
}

// acknowledge returns the error's code, and whether there is a write.
func (m *model) acknowledge(now time.Time, member string, acks []Acknowledgement, renew bool) (code int16, write bool) {
	for i, a := range acks {
		n := a.Last - a.First + 1
		if n < 1 || len(a.Types) == 0 || len(a.Types) > 1 && int64(len(a.Types)) != n || i > 0 && a.First < acks[i-1].Last {
			return 42, false
		}
		for _, t := range a.Types {
			if t < 0 || t > 4 || t == Renew && !renew {
				return 42, false
			}
		}
	}
	said := map[int64]int8{}
	for _, a := range acks {
		if a.Last < m.start {
			continue
		}
		if a.Last >= m.next && a.First < m.next {
			return 42, false
		}
		for o := max(a.First, m.start); o <= a.Last; o++ {
			i, known := m.at[o]
			_, twice := said[o]
			if !known || twice || i.state != Acquired || i.member != member || i.write != 0 {
				return 121, false
			}
			said[o] = a.typeOf(o)
			if said[o] == Renew && !m.set.Renew {
				return 121, false
			}
		}
	}
	for o, t := range said {
		i := m.at[o]
		if t == Renew {
			i.until = now.Add(m.set.Lock).UnixNano()
			m.at[o] = i
			continue
		}
		i.write, write = m.write+1, true
		i.then = map[int8]State{Gap: Archived, Accept: Acknowledged, Release: m.released(i), Reject: Archived}[t]
		m.at[o] = i
	}
	if write {
		m.write++
	}
	return 0, write
}

func (m *model) expire(now time.Time) (write bool) {
	for o, i := range m.at {
		if i.state == Acquired && i.write == 0 && i.until <= now.UnixNano() {
			m.at[o], write = is{state: m.released(i), count: i.count}, true
		}
	}
	if write {
		m.write++
	}
	m.advance()
	return write
}

func (m *model) leave(member string) (write bool) {
	for o, i := range m.at {
		if i.state == Acquired && i.write == 0 && i.member == member {
			i.write, i.then, write = m.write+1, m.released(i), true
			m.at[o] = i
		}
	}
	if write {
		m.write++
	}
	return write
}

func (m *model) done(id uint64) {
	for o, i := range m.at {
		if i.write == id && id != 0 {
			m.at[o] = is{state: i.then, count: i.count}
		}
	}
	m.advance()
}

func (m *model) failed(now time.Time, id uint64) (write bool) {
	for o, i := range m.at {
		if i.write == id && id != 0 {
			i.write, i.then = 0, 0
			m.at[o] = i
		}
	}
	return m.expire(now)
}

func (m *model) logStart(offset int64) {
	for m.start < offset {
		delete(m.at, m.start)
		m.start++
	}
	m.next = max(m.next, m.start)
	m.advance()
}

func (m *model) completed() (n int32) {
	for _, i := range m.at {
		if i.state.isTerminal() || i.write != 0 && i.then.isTerminal() {
			n++
		}
	}
	return n
}
