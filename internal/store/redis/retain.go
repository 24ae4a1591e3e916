package redis

import (
	"context"
	"strconv"

	"muster/internal/store"
)

// Retain implements store.Log. It drops whole batches in the log layout and
// single records in the stream layout, as many as it must, except that in the
// stream layout much is dropped at once where an estimate says enough.
func (l *log) Retain(ctx context.Context, r store.Retention) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "retain", checkScript); err != nil {
		return err
	}
	if err := l.forgetSometimes(ctx); err != nil {
		return err
	}
	from, err := l.numbered.retainRoughly(ctx, r)
	if err != nil {
		return err
	}
	start, next := l.Bounds()
	size := l.Size()
	return l.trimWhile(ctx, from, min(r.NextOffset, next), func(it item) bool {
		old := r.MaxAge >= 0 && it.timestamp >= 0 && r.Now.UnixMilli()-it.timestamp > r.MaxAge.Milliseconds()
		large := r.MaxBytes >= 0 && size-it.size >= r.MaxBytes
		if it.last >= r.NextOffset || it.last >= start && !old && !large {
			return false
		}
		size -= it.size
		return true
	})
}

// roughly is how many entries are looked at one by one rather than estimated.
const roughly = 2000

// retainRoughly drops what is surely too old or too much: to look at every entry would
// cost the server as much as adding it did.
func (l recordLog) retainRoughly(ctx context.Context, r store.Retention) (from int64, err error) {
	err = l.dropRoughly(ctx, r)
	from, _ = l.Bounds()
	return from, err
}

func (l recordLog) dropRoughly(ctx context.Context, r store.Retention) error {
	if r.MaxAge >= 0 {
		if err := l.retainByID(ctx, r); err != nil {
			return err
		}
	}
	if r.MaxBytes < 0 {
		return nil
	}
	if err := l.measure(ctx); err != nil {
		return err
	}
	l.mu.Lock()
	size, count := l.tail.size, l.tail.count
	l.mu.Unlock()
	if size <= r.MaxBytes || count == 0 {
		return nil
	}
	keep := int64(float64(r.MaxBytes)/(float64(size)/float64(count))) + 1
	if count-keep < roughly {
		return nil
	}
	return l.shorten(ctx, keep, r.NextOffset)
}

// retainByID drops entries whose ids are so old that their timestamps must be.
func (l recordLog) retainByID(ctx context.Context, r store.Retention) error {
	l.mu.Lock()
	start, ahead := l.start, l.tail.ahead
	l.mu.Unlock()
	oldest := r.Now.UnixMilli() - r.MaxAge.Milliseconds() - ahead
	if oldest <= 0 {
		return nil
	}
	_, next := l.Bounds()
	newStart := min(l.atOrAfter(entryID{ms: uint64(oldest)}), r.NextOffset, next)
	if newStart <= start {
		return nil
	}
	// The log is to start after the last record that goes, and not at the first that
	// stays: whoever has read all that goes is in between, and has lost nothing.
	last, found, err := l.lastIn(ctx, start, newStart)
	if err != nil || !found {
		return err
	}
	return l.trimTo(ctx, l.atOrAfter(last.after()), 0)
}

// lastIn returns the id of the last entry from an offset on and below another.
func (l recordLog) lastIn(ctx context.Context, offset, next int64) (id entryID, found bool, err error) {
	from, to := l.idsOf(offset, next)
	cmd := l.store.client.B().Xrevrange().Key(l.keys.stream).End(to.String()).Start(from.String()).Count(1).Build()
	entries, err := l.store.do(ctx, cmd).ToArray()
	if err != nil || len(entries) == 0 {
		return entryID{}, false, attempt("read "+l.keys.stream, err)
	}
	id, _, err = entryParts(&entries[0])
	return id, true, err
}

// shorten drops entries from the start until about so many remain, but none at
// or above an offset. If there are many of those it leaves them to be looked at
// one by one.
func (l recordLog) shorten(ctx context.Context, keep, nextOffset int64) error {
	_, next := l.Bounds()
	from, to := l.idsOf(nextOffset, next)
	var above int64
	err := l.scan(ctx, from, to, func(item) bool { above++; return above <= roughly })
	if err != nil || above > roughly {
		return err
	}
	for {
		r, err := l.own(ctx, "retain", shortenScript, decimal(max(keep, above)+1))
		if err != nil || len(r) < 3 || r[0].int() == 0 {
			return err
		}
		freed, _ := strconv.ParseInt(r[1].text(), 10, 64)
		l.shrink(freed, r[0].int())
		start, err := l.parseStart(r[2].text())
		if err != nil {
			return err
		}
		if err := l.writeStart(ctx, l.moveStart(start)); err != nil {
			return err
		}
	}
}

// measure accounts for entries that others have added or removed: all are
// taken to be as large as those that were counted.
func (l recordLog) measure(ctx context.Context) error {
	l.claim()
	defer l.release()
	length, err := l.store.do(ctx, l.store.client.B().Xlen().Key(l.keys.stream).Build()).AsInt64()
	if err != nil {
		return attempt("measure "+l.keys.stream, err)
	}
	l.mu.Lock()
	if l.tail.count == length || l.tail.count == 0 {
		l.mu.Unlock()
		return nil
	}
	l.tail.size = int64(float64(l.tail.size) / float64(l.tail.count) * float64(length))
	l.tail.count = length
	size := l.tail.size
	l.mu.Unlock()
	_, err = l.own(ctx, "measure", setScript, "size", decimal(size), "count", decimal(length))
	return err
}
