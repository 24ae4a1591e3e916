package redis

import (
	"context"
	"fmt"

	"muster/internal/record"
	"muster/internal/store"
)

// adopt makes a log of a stream that has entries but no meta hash: one of a
// Redis application, or one of ours whose meta hash was lost. It starts at the
// first entry. Its consumer groups stay as they are.
func (l *log) adopt(ctx context.Context, f *found) error {
	var err error
	if l.layout == store.LayoutLog {
		err = l.adoptBatches(ctx, f)
	} else {
		err = l.adoptEntries(f)
	}
	if err != nil {
		return err
	}
	args := []string{"start", l.position(l.start), "end", l.position(l.tail.next), "maxts", decimal(l.tail.maxTimestamp)}
	if len(l.tail.epochs) > 0 {
		args = append(args, "epochs", formatEpochs(l.tail.epochs))
	}
	_, err = l.own(ctx, "adopt", setScript, args...)
	return err
}

// position is how the meta hash writes an offset: in the stream layout as an
// id, which scripts can compute with.
func (l *log) position(offset int64) string {
	if l.layout == store.LayoutLog {
		return decimal(offset)
	}
	return l.id(offset).String()
}

func (l *log) adoptEntries(f *found) error {
	l.tail.next = l.atOrAfter(f.lastID.after())
	l.start = l.tail.next
	if f.first == "" {
		return nil
	}
	first, err := parseID(f.first)
	l.start = l.atOrAfter(first)
	return err
}

// adoptBatches believes a stream whose first and last entries are what this
// layout writes.
func (l *log) adoptBatches(ctx context.Context, f *found) error {
	l.start, l.tail.next = int64(f.lastID.ms), int64(f.lastID.ms)
	if f.first == "" {
		return nil
	}
	for i, id := range []string{f.first, f.last} {
		b, runningMax, err := l.batchAt(ctx, id)
		if err != nil {
			return err
		}
		if i == 0 {
			l.start = b.BaseOffset()
		}
		if n := len(l.tail.epochs); n == 0 || l.tail.epochs[n-1].Epoch < b.LeaderEpoch() {
			l.tail.epochs = append(l.tail.epochs, store.EpochStart{Epoch: b.LeaderEpoch(), Start: b.BaseOffset()})
		}
		l.tail.maxTimestamp = runningMax
	}
	return nil
}

// batchAt reads the batch with an id, and the largest timestamp up to it.
func (l *log) batchAt(ctx context.Context, id string) (record.Batch, int64, error) {
	at, err := parseID(id)
	if err != nil {
		return nil, 0, err
	}
	entries, err := l.entriesBetween(ctx, at, at, 1)
	if err != nil {
		return nil, 0, err
	}
	if len(entries) != 1 {
		return nil, 0, fmt.Errorf("%w: entry %s is gone", store.ErrCorrupt, id)
	}
	e, err := decodeBatch(&entries[0])
	return e.batch, e.runningMax, err
}
