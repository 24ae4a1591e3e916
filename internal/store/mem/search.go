package mem

import (
	"context"

	"muster/internal/record"
	"muster/internal/store"
)

// OffsetForTimestamp implements store.Log.
func (l *log) OffsetForTimestamp(_ context.Context, ts int64) (store.TimestampOffset, bool, error) {
	var hit store.TimestampOffset
	found := false
	err := l.each(func(b record.Batch, r record.Meta) {
		if !found && r.Timestamp >= ts {
			hit, found = hitAt(b, r), true
		}
	})
	return hit, found, err
}

// MaxTimestamp implements store.Log.
func (l *log) MaxTimestamp(context.Context) (store.TimestampOffset, bool, error) {
	hit := store.TimestampOffset{Timestamp: record.NoTimestamp}
	found := false
	err := l.each(func(b record.Batch, r record.Meta) {
		if r.Timestamp > hit.Timestamp {
			hit, found = hitAt(b, r), true
		}
	})
	return hit, found, err
}

func hitAt(b record.Batch, r record.Meta) store.TimestampOffset {
	return store.TimestampOffset{Offset: r.Offset, Timestamp: r.Timestamp, LeaderEpoch: b.LeaderEpoch()}
}

// each calls fn with every record from the log start on.
func (l *log) each(fn func(record.Batch, record.Meta)) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return store.ErrClosed
	}
	for _, b := range l.batches[l.find(l.logStart):] {
		err := b.Scan(func(r record.Meta) error {
			if r.Offset >= l.logStart {
				fn(b, r)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
