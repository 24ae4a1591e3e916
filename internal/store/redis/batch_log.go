package redis

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// batchLog is a log of the log layout: an entry is a batch as it came, and its id is
// the offset after its last record. No one else appends to it.
type batchLog struct{ *log }

func newBatchLog(l *log, _ map[string]string) (layout, error) { return batchLog{l}, nil }

func (batchLog) name() store.Layout { return store.LayoutLog }

func (batchLog) position(offset int64) string { return decimal(offset) }

func (batchLog) offsetAt(position entryID) int64 { return int64(position.ms) }

func (batchLog) span(offset, next int64) (from, to entryID) {
	return entryID{ms: uint64(offset) + 1}, entryID{ms: uint64(next)}
}

func (batchLog) lastBefore(next int64) entryID { return entryID{ms: uint64(next)} }

func (l batchLog) loadBounds(_ context.Context, _ *found, start, end entryID) error {
	l.start, l.tail.next = l.offsetAt(start), l.offsetAt(end)
	return nil
}

// adopt believes a stream whose first and last entries are what this layout writes.
func (l batchLog) adopt(ctx context.Context, f *found) error {
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
func (l batchLog) batchAt(ctx context.Context, id string) (record.Batch, int64, error) {
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

func (l batchLog) check(p *pending) error {
	p.bytes = int64(len(p.batch))
	p.largest = p.bytes
	if err := p.readMarker(); err != nil {
		return fmt.Errorf("%w: %w", store.ErrInvalidBatch, err)
	}
	return l.checkSize(p.bytes)
}

func (batchLog) entriesOf(record.Batch) int { return 1 }

func (batchLog) encode(*pending, bool) bool { return true }

func (batchLog) base(next, _ int64) int64 { return next }

func (batchLog) adds(tx *transaction) []add {
	list := make([]add, 0, tx.entries)
	runningMax := tx.from.maxTimestamp
	for _, p := range tx.group {
		if !p.sends() {
			continue
		}
		runningMax = max(runningMax, p.batch.MaxTimestamp())
		id := entryID{ms: uint64(p.batch.LastOffset()) + 1}
		list = append(list, add{id.String(), entry{fieldBatch, rueidis.BinaryString(p.batch), fieldRunningMax, decimal(runningMax)}})
	}
	return list
}

func (batchLog) ahead(*pending) int64 { return 0 }

func (batchLog) inScript([]add) (list []string, words string) { return nil, "" }

func (batchLog) usesClock() bool { return false }

func (batchLog) overtaken(what string, last entryID) error {
	return fmt.Errorf("%w: %s: there is an entry %s which this broker did not write", store.ErrStorage, what, last)
}

func (batchLog) newSink(req store.ReadRequest, _ []store.EpochStart) sink {
	return &batchSink{req: req}
}

func (batchLog) scanScript() string { return headersScript }

// itemOf reads the header of a batch.
func (batchLog) itemOf(id entryID, size int64, told string) (item, bool, error) {
	b := record.Batch(told)
	if len(b) < record.HeaderSize || b.LastOffset()+1 != int64(id.ms) || b.BaseOffset() < 0 || b.LastOffsetDelta() < 0 {
		return item{}, false, fmt.Errorf("%w: entry %s is not a batch that ends there", store.ErrCorrupt, id)
	}
	return item{id: id, size: size, base: b.BaseOffset(), last: b.LastOffset(), timestamp: b.MaxTimestamp(), empty: b.Count() == 0}, true, nil
}

// retainRoughly drops nothing: batches differ in size, so that an estimate would be a
// bad one. All entries are looked at, since an older broker may have left something before the
// start, which counts.
func (batchLog) retainRoughly(context.Context, store.Retention) (from int64, err error) {
	return 0, nil
}

func (l batchLog) trim(ctx context.Context, newStart int64) error {
	if err := l.trimWhile(ctx, 0, newStart, func(item) bool { return true }); err != nil {
		return err
	}
	return l.trimTo(ctx, newStart, 0)
}

// trimTo does all at once: if it ended in between, no one would know how many bytes
// the rest holds.
func (l batchLog) trimTo(ctx context.Context, newStart, bytes int64) error {
	gone, err := l.moveTo(ctx, cutScript, newStart, entryID{ms: uint64(newStart) + 1}.String(), decimal(bytes))
	if err != nil {
		return err
	}
	l.shrink(bytes, gone)
	return l.trimAborted(ctx)
}
