package search

import (
	"context"
	"math"
	"slices"
	"time"
)

// sweep goes through all partitions at once, in the order of time: it always reads on in
// the partition that is furthest back. What is found is told as soon as all partitions
// have come past it, so that it is in order, and nothing waits for long.
//
// Timestamps within a partition need not be in order. There, the order is that of the
// offsets, and a record counts as being no earlier than the one before.
type sweep struct {
	*Search
	ctx      context.Context
	from     *Cursor
	deadline time.Time
	toldAt   time.Time
	lanes    []*lane
	held     []*held // Found and not yet told, in order; never more than may be told.
	heldSize int
	told     int
	pageSize int
	bytes    int64
	moved    bool // Something was looked at, so that to go on later is to go on.
	full     bool // What was found is as much as may be.
	why      string
	out      Outcome
}

// lane is a partition in a sweep.
type lane struct {
	span     Span
	log      Log
	searched int64
	key      int64 // The order of the last record that was looked at.
	width    int64 // How many offsets to go back at once.
	begun    bool
	// paused says that the next record is one that is found, and comes after all that
	// may be told.
	paused bool
	failed error
	number int
}

func (l *lane) done() bool { return l.span.Low >= l.span.High }

// held is a record that was found.
type held struct {
	*Found
	lane   *lane
	key    int64 // What it is told by: the smaller is first.
	number int   // In its lane.
	behind int64
	size   int
}

func newSweep(ctx context.Context, s *Search, from *Cursor) *sweep {
	w := &sweep{Search: s, ctx: ctx, from: from, toldAt: s.Now()}
	w.deadline = w.toldAt.Add(s.Limits.Time)
	for _, span := range from.Spans {
		if log := s.Logs[span.Partition]; log != nil {
			w.lanes = append(w.lanes, &lane{span: span, log: log, key: math.MinInt64})
		}
	}
	return w
}

func (w *sweep) over() bool { return !w.Now().Before(w.deadline) }

// furthestBack returns the partition to go on with, nil if there is none.
func (w *sweep) furthestBack() *lane {
	var out *lane
	for _, l := range w.lanes {
		if l.done() || l.paused || l.failed != nil {
			continue
		}
		if !l.begun {
			return l
		}
		if out == nil || l.key < out.key {
			out = l
		}
	}
	return out
}

// chunk is how much is read of a partition at once: less if there are many of them.
func (w *sweep) chunk() int { return max(64<<10, min(1<<20, (4<<20)/max(len(w.lanes), 1))) }

func (w *sweep) advance(l *lane) {
	l.begun = true
	if w.from.Newest {
		w.backward(l)
	} else {
		w.forward(l)
	}
}

// forward reads on from the lower end.
func (w *sweep) forward(l *lane) {
	from, stopped := l.span.Low, false
	c, err := l.log.Read(w.ctx, from, w.chunk(), func(r *Record) bool {
		switch {
		case r.Offset < l.span.Low:
			return true
		case r.Offset >= l.span.High:
			l.span.Low, stopped = l.span.High, true
		case !w.look(l, r):
			stopped = true
		default:
			l.span.Low = r.Offset + 1
		}
		return !stopped
	})
	w.read(l, &c, err)
	switch {
	case stopped || err != nil:
	case c.Next > l.span.Low:
		l.span.Low, w.moved = min(c.Next, l.span.High), true
	case l.span.Low == from:
		l.span.Low = l.span.High // It has become shorter.
	}
}

func (w *sweep) read(l *lane, c *Chunk, err error) {
	w.bytes += int64(c.Bytes)
	w.out.Unreadable += c.Unreadable
	if err != nil {
		l.failed = err
	}
}

// look looks at a record. It is false if this is not the time for it: then the record is
// the next.
func (w *sweep) look(l *lane, r *Record) bool {
	if w.ctx.Err() != nil || w.moved && w.over() {
		return false
	}
	if w.Filter.committed && r.Transaction == Aborted {
		return true // It is as if it were not there.
	}
	key := r.Timestamp
	if w.from.Newest {
		key = -key
	}
	found, result, err := w.Filter.match(r, w.deadline)
	if err != nil {
		if w.out.Failed++; w.out.Failed == 1 {
			w.out.Failure = err.Error()
		}
	}
	key = max(l.key, key)
	if found && !w.take(l, r, result, key) {
		return false
	}
	if r.Cut {
		w.out.Cut++
	}
	l.key, w.moved = key, true
	l.searched++
	return true
}

// take holds a record that was found, unless there are enough that come before it.
func (w *sweep) take(l *lane, r *Record, result string, key int64) bool {
	h := &held{Found: w.copy(r, result), lane: l, key: key, number: l.number, behind: l.searched}
	h.size = len(h.Key) + len(h.Value) + len(h.Result) + 256
	for _, x := range h.Headers {
		h.size += len(x.Name) + len(x.Value) + 32
	}
	if w.told+len(w.held) >= w.Limits.Records {
		if len(w.held) == 0 || !h.before(w.held[len(w.held)-1]) {
			l.paused = true
			return false
		}
		w.giveBack()
	}
	if w.pageSize+w.heldSize+h.size > w.Limits.Page && w.told+len(w.held) > 0 {
		l.paused, w.full = true, true
		return false
	}
	l.number++
	at, _ := slices.BinarySearchFunc(w.held, h, func(a, b *held) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	w.held = slices.Insert(w.held, at, h)
	w.heldSize += h.size
	return true
}

// giveBack has the last that is held be found later. It is the last of its partition,
// too.
func (w *sweep) giveBack() {
	last := w.held[len(w.held)-1]
	w.held = w.held[:len(w.held)-1]
	w.heldSize -= last.size
	l := last.lane
	l.paused, l.searched = true, last.behind
	if w.from.Newest {
		l.span.High = last.Offset + 1
	} else {
		l.span.Low = last.Offset
	}
}

// release tells what all partitions have come past.
func (w *sweep) release() {
	passed := int64(math.MaxInt64)
	for _, l := range w.lanes {
		switch {
		case l.done() || l.paused || l.failed != nil:
		case !l.begun:
			return
		default:
			passed = min(passed, l.key)
		}
	}
	for len(w.held) > 0 && w.held[0].key <= passed && w.told < w.Limits.Records {
		w.pass()
	}
}

// pass tells of the first that is held.
func (w *sweep) pass() {
	h := w.held[0]
	w.held = w.held[1:]
	w.heldSize -= h.size
	w.pageSize += h.size
	w.told++
	w.Search.Found(h.Found)
}

// copy keeps as much of a record as is shown.
func (w *sweep) copy(r *Record, result string) *Found {
	shown := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		return append([]byte{}, b[:min(len(b), w.Limits.Shown)]...)
	}
	f := &Found{Record: *r, Result: result}
	f.Key, f.Value, f.Headers = shown(r.Key), shown(r.Value), nil
	for _, h := range r.Headers[:min(len(r.Headers), maxHeaders)] {
		f.Headers = append(f.Headers, Header{cutText(h.Name, w.Limits.Shown), shown(h.Value)})
	}
	return f
}

// maxHeaders is how many headers of a record are shown.
const maxHeaders = 200
