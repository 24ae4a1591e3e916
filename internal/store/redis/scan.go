package redis

import (
	"context"
	"fmt"
)

// How much a script looks at in one go: it holds the server up for about a
// millisecond.
const (
	scanEntries = 500
	scanBytes   = 4 << 20
)

// entriesIn returns how many entries there are in so many bytes, but not more
// than a script may look at.
func entriesIn(bytes, average int64) int64 {
	return min(max(bytes/max(average, 1), 1), scanEntries)
}

// item is what a scan tells of an entry: of a batch in the log layout, of a
// record in the stream layout.
type item struct {
	id        entryID
	base      int64
	last      int64 // offset
	size      int64
	timestamp int64 // the largest
	empty     bool  // a batch of which compaction has left the header
}

// scan calls fn with the entries from one id to another until it says no.
func (l *log) scan(ctx context.Context, from, to entryID, fn func(item) bool) error {
	for !to.less(from) {
		list, err := l.scanPart(ctx, from, to, false)
		if err != nil {
			return err
		}
		for _, it := range list.items {
			if !fn(it) {
				return nil
			}
		}
		if !list.more {
			return nil
		}
		from = list.last.after()
	}
	return nil
}

// scanBack is scan from the last to the first, in the stream layout.
func (l *log) scanBack(ctx context.Context, from, to entryID, fn func(item) bool) error {
	for !to.less(from) {
		list, err := l.scanPart(ctx, from, to, true)
		if err != nil {
			return err
		}
		for _, it := range list.items {
			if !fn(it) {
				return nil
			}
		}
		if !list.more || list.last == (entryID{}) {
			return nil
		}
		to = list.last.before()
	}
	return nil
}

// part is a part of a scan. The last entry may be none of the items, since it
// may have no offset.
type part struct {
	items []item
	last  entryID
	more  bool
}

func (l *log) scanPart(ctx context.Context, from, to entryID, back bool) (part, error) {
	count := entriesIn(scanBytes, l.average())
	args := []string{from.String(), to.String(), decimal(count), "XRANGE"}
	if back {
		args[0], args[1], args[3] = args[1], args[0], "XREVRANGE"
	}
	r, err := replies(l.store.do(ctx, l.store.eval(l.numbered.scanScript(), []string{l.keys.stream}, args)))
	if err != nil {
		return part{}, attempt("scan "+l.keys.stream, err)
	}
	p := part{more: int64(len(r)) == 3*count, items: make([]item, 0, len(r)/3)}
	for ; len(r) >= 3; r = r[3:] {
		if p.last, err = parseID(r[0].text()); err != nil {
			return p, err
		}
		it, ok, err := l.numbered.itemOf(p.last, r[1].int(), r[2].text())
		if err != nil {
			return p, fmt.Errorf("scan %s: %w", l.keys.stream, err)
		}
		if ok {
			p.items = append(p.items, it)
		}
	}
	return p, nil
}
