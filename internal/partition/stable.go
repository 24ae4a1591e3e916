package partition

import (
	"container/list"
	"slices"
	"time"

	"muster/internal/store"
)

// txn is a transaction that is open in this log, or whose end does not count yet.
type txn struct {
	producer int64
	first    int64 // offset of its first record
	last     int64 // offset of its marker, NoTxn while it is open
	start    int64 // when it began, as its coordinator says; NoStart if it did not
	since    time.Time
	at       *list.Element
}

// stable knows up to where all transactions are decided. Transactions begin and end
// in the order of the log, so that a list has them in the order of their first
// offsets, and none is looked for: each append costs the same, however many are
// open. A partition's showing lock guards it.
type stable struct {
	all    list.List      // of *txn, the earliest first
	open   map[int64]*txn // by producer, those without a marker
	ending []*txn         // those with a marker, in the order of the markers
	// durable is where the log ended when it was last known to be safe. A marker
	// that is not decides nothing: readers would be shown an outcome that a loss
	// of power takes back.
	durable int64
	// loaded is where the log ended when the transactions were loaded from it. Which
	// of their markers are safe is not known before all of it is.
	loaded int64
}

// load takes the open transactions from the producers of a log that was just
// opened. What is known of them beyond that stays known, also of those whose marker
// was lost before it was durable.
func (s *stable) load(producers store.ProducerMap, begins map[int64]lastBegin, end int64, now time.Time) {
	known := map[int64]*txn{}
	for e := s.all.Front(); e != nil; e = e.Next() {
		known[e.Value.(*txn).first] = e.Value.(*txn)
	}
	var open []*txn
	for id, x := range producers {
		if x.TxnFirst == store.NoTxn {
			continue
		}
		t := &txn{producer: id, first: x.TxnFirst, last: store.NoTxn, start: NoStart, since: now}
		if old := known[t.first]; old != nil && old.producer == id {
			t.start, t.since = old.start, old.since
		} else if b, ok := begins[id]; ok && b.epoch == x.Epoch {
			t.start = b.start
		}
		open = append(open, t)
	}
	slices.SortFunc(open, func(a, b *txn) int { return int(min(max(a.first-b.first, -1), 1)) })
	*s = stable{open: make(map[int64]*txn, len(open)), loaded: end}
	for _, t := range open {
		s.add(t)
	}
}

func (s *stable) add(t *txn) {
	if s.open == nil {
		s.open = map[int64]*txn{}
	}
	t.at = s.all.PushBack(t)
	s.open[t.producer] = t
}

// end notes a producer's marker, and returns the transaction that it ends, nil if
// there is none.
func (s *stable) end(producer, marker int64) *txn {
	t := s.open[producer]
	if t == nil {
		return nil
	}
	delete(s.open, producer)
	t.last = marker
	s.ending = append(s.ending, t)
	return t
}

// offset returns the last stable offset for a high watermark.
func (s *stable) offset(highWatermark int64) int64 {
	decided := min(highWatermark, s.durable)
	n := 0
	for n < len(s.ending) && s.ending[n].last < decided {
		s.all.Remove(s.ending[n].at)
		n++
	}
	if clear(s.ending[:n]); n == len(s.ending) {
		s.ending = s.ending[:0] // Most transactions end one after the other.
	} else {
		s.ending = s.ending[n:]
	}
	if first := s.all.Front(); first != nil {
		return min(highWatermark, first.Value.(*txn).first)
	}
	return highWatermark
}

// LastStableOffset returns the end of what readers of committed records may see:
// the high watermark, or the first record of the earliest transaction that is not
// decided. Where that record is deleted, it is the log start offset.
func (p *Partition) LastStableOffset() int64 {
	return max(p.log.Load().lastStable.Load(), p.LogStartOffset())
}

// show lets readers see everything up to end of a log, unless it was opened
// again since, and wakes those who wait. Durable says that the log is safe up to
// there.
func (p *Partition) show(l *openLog, end int64, durable bool) {
	more, stabler := p.raiseTo(l, end, durable)
	if more || stabler {
		p.waiters.wake(more, stabler)
	}
}

func (p *Partition) raiseTo(l *openLog, end int64, durable bool) (more, stabler bool) {
	p.showing.Lock()
	defer p.showing.Unlock()
	if p.log.Load() != l {
		return false, false
	}
	safer := durable && end > p.stable.durable
	if safer {
		p.stable.durable = end
	}
	hw := p.highWatermark.Load()
	if more = end > hw; more {
		hw = end
		p.highWatermark.Store(hw) // Before the last stable offset, which is never above it.
	}
	if !more && !safer || p.stable.durable < p.stable.loaded {
		return more, false
	}
	// It never goes back: a transaction that begins is above the high watermark.
	offset := p.stable.offset(hw)
	if stabler = offset > l.lastStable.Load(); stabler {
		l.lastStable.Store(offset)
	}
	return more, stabler
}
