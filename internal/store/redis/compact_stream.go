package redis

import (
	"context"
	"errors"
	"fmt"
)

// keyed is what compaction must know of a record in the stream layout.
type keyed struct {
	item
	key       string
	hasKey    bool
	tombstone bool
}

// compactEntries compacts a log of the stream layout up to an offset.
func (l *log) compactEntries(ctx context.Context, p *pass, nextOffset int64) error {
	start, next := l.Bounds()
	limit := min(next, nextOffset)
	end := limit
	err := l.scanKeys(ctx, max(start, p.cleanedTo), limit, func(k keyed) error {
		if k.timestamp > p.young || len(p.latest) >= maxCompactionKeys {
			end = k.base
			return errFound
		}
		if k.hasKey {
			p.latest[k.key] = k.base
		}
		return nil
	})
	if err != nil {
		return err
	}
	var kept int64
	var gone []item
	err = l.scanKeys(ctx, start, end, func(k keyed) error {
		if k.timestamp > p.young {
			end = k.base
			return errFound
		}
		if p.keep(k.key, k.hasKey, k.tombstone, k.base, k.timestamp) {
			kept += k.size
			return nil
		}
		if gone = append(gone, k.item); len(gone) < scanEntries {
			return nil
		}
		err := l.remove(ctx, gone)
		gone = gone[:0]
		return err
	})
	if err == nil && len(gone) > 0 {
		err = l.remove(ctx, gone)
	}
	if err != nil {
		return err
	}
	return l.writeCleaned(ctx, cleaned{to: end, bytes: kept})
}

// scanKeys calls fn with every record from an offset up to another. It stops at
// fn's first error, and errFound is none.
func (l *log) scanKeys(ctx context.Context, offset, next int64, fn func(keyed) error) error {
	from, to := l.span(offset, next)
	for !to.less(from) {
		count := entriesIn(scanBytes, l.average())
		args := []string{from.String(), to.String(), decimal(count)}
		r, err := replies(l.store.do(ctx, l.store.eval(keysScript, []string{l.keys.stream}, args)))
		if err != nil {
			return attempt("scan "+l.keys.stream, err)
		}
		more := int64(len(r)) == 5*count
		for ; len(r) >= 5; r = r[5:] {
			id, err := parseID(r[0].text())
			if err != nil {
				return err
			}
			from = id.after()
			it, ok, err := l.itemOf(id, r[1].int(), r[2].text())
			if err != nil {
				return fmt.Errorf("scan %s: %w", l.keys.stream, err)
			}
			if !ok {
				continue
			}
			err = fn(keyed{item: it, key: r[3].text(), hasKey: !r[3].m.IsNil(), tombstone: r[4].int() == 0})
			if errors.Is(err, errFound) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
	return nil
}
