package redis

import (
	"context"
	"errors"
	"fmt"

	"muster/internal/record"
	"muster/internal/store"
)

// keyed is what compaction must know of a record in the stream layout.
type keyed struct {
	record.Keyed
	item item
}

// compact deletes superseded records.
func (l recordLog) compact(ctx context.Context, c store.Compaction) error {
	start, next := l.Bounds()
	end := min(next, c.NextOffset)
	pass := store.NewCompactionPass(c, l.cleaned.passes)
	err := l.scanKeys(ctx, max(start, l.cleaned.to), end, func(k *keyed) error {
		if c.Young(k.Timestamp) || pass.Full() {
			end = k.Offset
			return errFound
		}
		pass.NoteKey(&k.Keyed)
		return nil
	})
	if err != nil {
		return err
	}
	var kept int64
	var gone []item
	err = l.scanKeys(ctx, start, end, func(k *keyed) error {
		if c.Young(k.Timestamp) {
			end = k.Offset
			return errFound
		}
		if pass.Keep(&k.Keyed) {
			kept += k.item.size
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
	return l.writeCleaned(ctx, l.cleaned.after(end, kept, c))
}

// scanKeys calls fn with every record from an offset up to another. It stops at
// fn's first error, and errFound is none.
func (l recordLog) scanKeys(ctx context.Context, offset, next int64, fn func(*keyed) error) error {
	from, to := l.idsOf(offset, next)
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
			err = fn(&keyed{item: it, Keyed: record.Keyed{
				Meta: record.Meta{Offset: it.base, Timestamp: it.timestamp, HasKey: !r[3].m.IsNil()},
				Key:  bytesOf(r[3].text()), Tombstone: r[4].int() == 0,
			}})
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
