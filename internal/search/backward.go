package search

import "slices"

// maxKept is how many bytes of records are kept at once to be looked at from the last to
// the first; a single record may have more.
const maxKept = 4 << 20

// maxWhole is how large a key or value may be that is kept whole.
const maxWhole = 8 << 20

// window is the latest records of a span, kept to be looked at backwards.
type window struct {
	low   int64 // From which offset on all are here.
	kept  []Record
	first int // Of kept, the first that is still wanted.
	size  int
	lacks bool // Some were too many.
}

// keep takes a copy of a record. The earliest go if there is no room for all.
func (k *window) keep(r *Record) {
	c := *r
	c.Cut = r.Cut || len(r.Key) > maxWhole || len(r.Value) > maxWhole
	c.Key, c.Value, c.Headers = slices.Clone(r.Key[:min(len(r.Key), maxWhole)]), slices.Clone(r.Value[:min(len(r.Value), maxWhole)]), slices.Clone(r.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = slices.Clone(c.Headers[i].Value)
	}
	k.kept = append(k.kept, c)
	for k.size += sizeOf(&c); k.size > maxKept && k.first < len(k.kept)-1; k.first++ {
		k.size -= sizeOf(&k.kept[k.first])
		k.low, k.lacks = k.kept[k.first].Offset+1, true
		k.kept[k.first] = Record{}
	}
	if k.first > 1024 && k.first > len(k.kept)/2 {
		k.kept, k.first = slices.Delete(k.kept, 0, k.first), 0
	}
}

func sizeOf(r *Record) int {
	n := 128 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 40 + len(h.Name) + len(h.Value)
	}
	return n
}

// backward reads on from the upper end. Logs are read upwards, so it reads a window
// whose size it guesses, and does better with the next.
func (w *sweep) backward(l *lane) {
	if l.width == 0 {
		l.width = int64(max(1, min(float64(w.chunk())/max(l.log.Density(), 1e-12), 1<<50)))
	}
	k := window{low: max(l.span.Low, l.span.High-l.width)}
	read, fits := w.fill(l, &k)
	switch {
	case l.failed != nil || w.ctx.Err() != nil:
		return
	case !fits:
		return // With a smaller window, next time.
	case read < w.chunk()/4:
		l.width = min(l.width, 1<<60) * 4
	}
	for i := len(k.kept) - 1; i >= k.first; i-- {
		if !w.look(l, &k.kept[i]) {
			return
		}
		l.span.High = k.kept[i].Offset
	}
	l.span.High, w.moved = k.low, true
}

// fill reads a window. If it does not fit, the next will be smaller.
func (w *sweep) fill(l *lane, k *window) (read int, fits bool) {
	from, beyond := k.low, false
	for next := from; next < l.span.High && !beyond; {
		c, err := l.log.Read(w.ctx, next, w.chunk(), func(r *Record) bool {
			if beyond = r.Offset >= l.span.High; beyond {
				return false
			}
			if r.Offset >= k.low || r.Offset >= l.span.Low && r.Offset < from && !k.lacks {
				k.keep(r)
			}
			return w.ctx.Err() == nil
		})
		w.read(l, &c, err)
		if read += c.Bytes; err != nil {
			return read, false
		}
		// A batch that began before the window was read anyway.
		if next == from && !k.lacks && c.Base < k.low {
			k.low = max(c.Base, l.span.Low)
		}
		if c.Next <= next || beyond {
			break // It has become shorter.
		}
		if read > 4*w.chunk() && c.Next < l.span.High && l.width > 1 {
			l.width = max(1, min((c.Next-from)/4, l.width/4))
			return read, false
		}
		next = c.Next
	}
	return read, true
}
