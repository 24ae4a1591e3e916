package partition

import (
	"context"

	"muster/internal/record"
	"muster/internal/store"
)

// What is known of a log's aborted transactions. Where there are none, which is
// found out once, readers of committed records cost no more than others.
const (
	unknownAborted = iota
	noneAborted
	someAborted
)

// addAborted completes the answer to a reader of committed records.
func (p *Partition) addAborted(ctx context.Context, l *openLog, f Fetch, out *Fetched) {
	list, err := p.abortedAmong(ctx, l, f.Offset, out)
	if start, _ := l.Bounds(); err == nil && start > f.Offset {
		// The list goes with what is deleted, and may have been cut meanwhile.
		err = store.ErrOffsetOutOfRange
	}
	if err != nil {
		out.Records.Release()
		out.Records, out.Err = store.Records{}, p.wireError("list aborted transactions", err)
		return
	}
	if list != nil {
		out.Aborted = list
	}
}

func (p *Partition) abortedAmong(ctx context.Context, l *openLog, offset int64, out *Fetched) ([]store.Aborted, error) {
	if l.aborts.Load() == unknownAborted {
		start, end := l.Bounds()
		all, err := l.Aborted(ctx, start, end)
		if err != nil {
			return nil, err
		}
		found := int32(noneAborted)
		if len(all) > 0 {
			found = someAborted
		}
		l.aborts.CompareAndSwap(unknownAborted, found)
	}
	if l.aborts.Load() == noneAborted {
		return nil, nil
	}
	next := out.Records.Next
	if next == 0 {
		var err error
		if next, err = nextOffset(&out.Records); err != nil {
			return nil, err
		}
	}
	return l.Aborted(ctx, offset, next)
}

// nextOffset returns the offset after the last record of a run of whole batches. It
// looks at their headers only.
func nextOffset(r *store.Records) (next int64, err error) {
	err = r.Headers(func(_ int, b record.Batch) error {
		next = b.LastOffset() + 1
		return nil
	})
	return next, err
}
