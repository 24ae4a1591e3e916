package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// rewriter writes a log of the log layout anew, into a stream of its own that
// vanishes by itself if no one completes it. It begins to write only when it
// must: as long as batches stay or go as a whole, deleting them does it.
type rewriter struct {
	store   *Store
	keys    keys
	dst     string
	average int64 // the mean size of an entry

	started bool
	runs    []run   // what stays as it is, until the rewriter has started
	dropped []item  // what goes
	copied  entryID // the last entry looked at
	written int64   // how many entries the new stream has

	kept           int64 // bytes
	droppedBytes   int64
	droppedEntries int64
}

// run is a run of neighbouring entries.
type run struct{ from, to entryID }

// rewriteExpiry is how long an unfinished rewrite stays after its last write.
const rewriteExpiry = 600

// plan looks at all batches of a log below an offset, and begins to rewrite
// them if need be. It returns how far it got.
func (w *rewriter) plan(ctx context.Context, c store.Compaction, pass *store.CompactionPass, so cleaned, start, nextOffset int64) (limit int64, err error) {
	limit = max(start, so.to)
	err = w.eachBatch(ctx, limit, nextOffset, func(s stored) error {
		if c.Young(s.batch.MaxTimestamp()) || pass.Full() {
			return errFound
		}
		limit = s.batch.LastOffset() + 1
		return pass.Note(s.batch)
	})
	if err != nil {
		return 0, err
	}
	err = w.eachBatch(ctx, start, limit, func(s stored) error {
		if c.Young(s.batch.MaxTimestamp()) {
			limit = s.batch.BaseOffset()
			return errFound
		}
		kept, err := pass.Filter(s.batch)
		if err != nil {
			return fmt.Errorf("compact %s: entry %s: %w", w.keys.stream, s.id, err)
		}
		return w.take(ctx, s, kept)
	})
	return limit, err
}

// eachBatch reads batches from an offset on, below another. errFound ends it.
func (w *rewriter) eachBatch(ctx context.Context, offset, next int64, fn func(stored) error) error {
	from, to := entryID{ms: uint64(offset) + 1}, entryID{ms: uint64(max(next, 0))}
	count := entriesIn(1<<20, w.average)
	for !to.less(from) {
		cmd := w.store.client.B().Xrange().Key(w.keys.stream).Start(from.String()).End(to.String()).Count(count).Build()
		entries, err := w.store.do(ctx, cmd).ToArray()
		if err != nil {
			return attempt("compact "+w.keys.stream, err)
		}
		for i := range entries {
			s, err := decodeBatch(&entries[i])
			if err != nil {
				return fmt.Errorf("compact %s: %w", w.keys.stream, err)
			}
			err = fn(s)
			if errors.Is(err, errFound) {
				return nil
			}
			if err != nil {
				return err
			}
			from = s.id.after()
		}
		if int64(len(entries)) < count {
			return nil
		}
	}
	return nil
}

// take decides about one batch: it stays, it goes, or it becomes another.
func (w *rewriter) take(ctx context.Context, s stored, kept record.Batch) error {
	w.copied = s.id
	w.kept += int64(len(kept))
	w.droppedBytes += int64(len(s.batch) - len(kept))
	switch {
	case kept == nil:
		w.droppedEntries++
		w.dropped = append(w.dropped, item{id: s.id, size: int64(len(s.batch))})
		return nil
	case len(kept) == len(s.batch) && kept.CRC() == s.batch.CRC():
		if n := len(w.runs); n > 0 && (len(w.dropped) == 0 || w.dropped[len(w.dropped)-1].id.less(w.runs[n-1].to)) {
			w.runs[n-1].to = s.id
			return nil
		}
		w.runs = append(w.runs, run{s.id, s.id})
		return nil
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	b := w.store.client.B()
	for _, r := range w.store.doMulti(ctx,
		b.Xadd().Key(w.dst).Id(s.id.String()).FieldValue().FieldValue(fieldBatch, rueidis.BinaryString(kept)).FieldValue(fieldRunningMax, decimal(s.runningMax)).Build(),
		b.Expire().Key(w.dst).Seconds(rewriteExpiry).Build()) {
		if err := r.Error(); err != nil {
			return attempt("compact "+w.keys.stream, err)
		}
	}
	w.written++
	return nil
}

// flush copies what stays as it is.
func (w *rewriter) flush(ctx context.Context) error {
	if !w.started {
		w.started = true
		if err := w.store.do(ctx, w.store.client.B().Unlink().Key(w.dst).Build()).Error(); err != nil {
			return attempt("compact "+w.keys.stream, err)
		}
	}
	for _, r := range w.runs {
		if err := w.copy(ctx, r.from, r.to.String()); err != nil {
			return err
		}
	}
	w.runs = nil
	return nil
}

// copyRest copies all that came after what was looked at.
func (w *rewriter) copyRest(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	return w.copy(ctx, w.copied.after(), "+")
}

// copy copies entries as they are, within the server.
func (w *rewriter) copy(ctx context.Context, from entryID, to string) error {
	for {
		cmd := w.store.eval(copyScript, []string{w.keys.stream, w.dst}, []string{from.String(), to, decimal(entriesIn(scanBytes, w.average)), decimal(rewriteExpiry)})
		r, err := replies(w.store.do(ctx, cmd))
		if err != nil {
			return attempt("compact "+w.keys.stream, err)
		}
		if len(r) != 2 {
			return fmt.Errorf("%w: compact %s: short reply", store.ErrStorage, w.keys.stream)
		}
		if r[1].int() == 0 {
			return nil
		}
		w.written += r[1].int()
		id, err := parseID(r[0].text())
		if err != nil {
			return err
		}
		if from = id.after(); w.copied.less(id) {
			w.copied = id
		}
	}
}

// swap puts the new stream in the place of the old one, if a field of the meta
// hash is as expected. If it is not, it returns the log's token. If someone else
// has compacted the log since, what was taken from it may be what they had
// dropped, and must not be counted as compacted.
func (w *rewriter) swap(ctx context.Context, field, expected string, was int64, done cleaned) (refused *string, err error) {
	cmd := w.store.eval(swapScript, []string{w.keys.stream, w.keys.meta, w.dst, w.dst + ".old"},
		[]string{field, expected, decimal(w.droppedBytes), decimal(w.droppedEntries), decimal(done.to), decimal(done.bytes), decimal(was), decimal(w.written), done.passes.String()})
	r, err := replies(w.store.do(ctx, cmd))
	if err != nil {
		return nil, attempt("compact "+w.keys.stream, err)
	}
	if len(r) != 2 {
		return nil, fmt.Errorf("%w: compact %s: short reply", store.ErrStorage, w.keys.stream)
	}
	switch r[0].text() {
	case "refused":
		token := r[1].text()
		return &token, nil
	case "partial":
		return nil, fmt.Errorf("%w: compact %s: the copy at %s has %d of %d entries, so it was deleted or evicted meanwhile", store.ErrStorage, w.keys.stream, w.dst, r[1].int(), w.written)
	case "compacted":
		return nil, fmt.Errorf("%w: compact %s: somebody else did", store.ErrMoved, w.keys.stream)
	}
	return nil, nil
}

// Compact implements store.SharedLog. Other brokers may append meanwhile, in
// which case their batches are copied too before the streams are swapped.
func (l *sharedLog) Compact(ctx context.Context, nextOffset int64) error {
	meta, err := l.store.do(ctx, l.store.client.B().Hgetall().Key(l.keys.meta).Build()).AsStrMap()
	if err != nil {
		return attempt("compact "+l.keys.stream, err)
	}
	start, err := number(meta, "start")
	if err != nil {
		return err
	}
	now := l.store.now()
	so, err := loadCleaned(meta, now.UnixMilli())
	if err != nil {
		return err
	}
	c := store.Compaction{Now: now, NextOffset: nextOffset, DeleteRetention: sharedDeleteRetention}
	w := &rewriter{store: l.store, keys: l.keys, dst: fmt.Sprintf("%s:%d", l.keys.rewrite, now.UnixNano()), average: 1 << 14}
	limit, err := w.plan(ctx, c, store.NewCompactionPass(c, so.passes), so, start, nextOffset)
	if err != nil || w.droppedBytes == 0 {
		return err
	}
	for range 10 {
		end, err := l.store.do(ctx, l.store.client.B().Hget().Key(l.keys.meta).Field("end").Build()).ToString()
		if err != nil {
			return attempt("compact "+l.keys.stream, err)
		}
		if err := w.copyRest(ctx); err != nil {
			return err
		}
		refused, err := w.swap(ctx, "end", end, so.to, so.after(limit, w.kept, c))
		if err != nil || refused == nil {
			return err
		}
	}
	return fmt.Errorf("%w: compact %s: others append all the time", store.ErrMoved, l.keys.stream)
}
