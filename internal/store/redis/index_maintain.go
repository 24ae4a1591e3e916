package redis

import (
	"context"
	"errors"

	"muster/internal/record"
	"muster/internal/store"
)

// eachBatch calls fn with the batches from the one on that holds an offset, below another, until it says no.
func (l indexLog) eachBatch(ctx context.Context, offset, next int64, fn func(e *indexEntry, b *indexBatch) bool) error {
	for offset < next {
		entries, err := l.readIndex(ctx, offset, loadEntries)
		if err != nil || len(entries) == 0 {
			return err
		}
		for i := range entries {
			for j := range entries[i].batches {
				b := &entries[i].batches[j]
				if b.next() <= offset {
					continue
				}
				if b.base >= next || !fn(&entries[i], b) {
					return nil
				}
			}
		}
		offset = entries[len(entries)-1].next
	}
	return nil
}

// Trim implements store.Log.
func (l indexLog) Trim(ctx context.Context, newStart int64) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "trim", checkScript); err != nil {
		return err
	}
	start, next := l.Bounds()
	if newStart > next {
		return store.ErrOffsetOutOfRange
	}
	if newStart <= start {
		return nil
	}
	if err := l.snapshotFirst(ctx); err != nil {
		return err
	}
	return l.trimIndexed(ctx, newStart, func(*indexBatch) bool { return true })
}

// Retain implements store.Log.
func (l indexLog) Retain(ctx context.Context, r store.Retention) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "retain", checkScript); err != nil {
		return err
	}
	if err := l.forgetSometimes(ctx); err != nil {
		return err
	}
	if err := l.snapshotFirst(ctx); err != nil {
		return err
	}
	_, next := l.Bounds()
	if err := l.skipGone(ctx, min(r.NextOffset, next)); err != nil {
		return err
	}
	size := l.Size()
	return l.trimIndexed(ctx, min(r.NextOffset, next), func(b *indexBatch) bool {
		old := r.MaxAge >= 0 && b.maxTimestamp >= 0 && r.Now.UnixMilli()-b.maxTimestamp > r.MaxAge.Milliseconds()
		large := r.MaxBytes >= 0 && size-b.bytes >= r.MaxBytes
		if b.next() > r.NextOffset || !old && !large {
			return false
		}
		size -= b.bytes
		return true
	})
}

// skipGone moves the start of the log past records that Redis clients have trimmed, up to an offset
// at most. Where compaction has left holes, they do no harm.
func (l indexLog) skipGone(ctx context.Context, limit int64) error {
	start, _ := l.Bounds()
	if start >= limit || l.cleaned.to > start {
		return nil
	}
	entries, err := l.readIndex(ctx, start, 1)
	if err != nil || len(entries) == 0 {
		return err
	}
	found, err := l.above(ctx, entryID{}, 1)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		id, _, err := entryParts(&found[0])
		if err != nil {
			return err
		}
		if first, ok := entries[0].idFrom(start); ok && !first.less(id) {
			return nil
		}
		at, _, err := OffsetAfter(ctx, l.store.client, l.store.prefix, l.tp, id.before().String())
		if err != nil {
			return err
		}
		limit = min(limit, at)
	}
	return l.trimIndexed(ctx, limit, func(*indexBatch) bool { return true })
}

// trimIndexed moves the start of the log past batches as long as a function of them says yes,
// and to an offset at most. Some go at a time, so that no script takes long.
func (l indexLog) trimIndexed(ctx context.Context, limit int64, goes func(*indexBatch) bool) error {
	for {
		start, _ := l.Bounds()
		if start >= limit {
			return nil
		}
		c := cut{start: start}
		batches, stopped := 0, false
		err := l.eachBatch(ctx, start, limit, func(e *indexEntry, b *indexBatch) bool {
			c.more = batches == scanEntries || c.bytes >= scanBytes
			if stopped = c.more || !goes(b); stopped {
				return false
			}
			batches++
			if b.next() <= limit {
				c.bytes += b.bytes
			}
			c.start = min(b.next(), limit)
			if id, ok := e.idBefore(c.start); ok {
				c.last = id
			}
			return true
		})
		if err != nil {
			return err
		}
		if !stopped {
			c.start = limit // If there is more up to there, compaction has removed it.
		}
		if c.start == start {
			return nil
		}
		if err := l.cut(ctx, c); err != nil {
			return err
		}
		if !c.more {
			return nil
		}
	}
}

// cut is what goes from the start of a log.
type cut struct {
	start int64   // where it starts then
	last  entryID // of the data that goes, zero if none does
	bytes int64
	more  bool
}

func (l indexLog) cut(ctx context.Context, c cut) error {
	data := ""
	if c.last != (entryID{}) {
		data = c.last.after().String()
	}
	l.claim()
	defer l.release()
	l.mu.Lock()
	epochs := store.TrimEpochs(l.tail.epochs, c.start)
	l.mu.Unlock()
	r, err := l.change(ctx, "trim", cutIndexScript, []string{l.keys.index},
		decimal(c.start), formatEpochs(epochs), decimal(c.start+1), data, decimal(c.bytes))
	if err != nil {
		return err
	}
	l.shrink(c.bytes, r[0].int())
	l.mu.Lock()
	l.start, l.tail.epochs = max(l.start, c.start), epochs
	l.mu.Unlock()
	return l.trimAborted(ctx)
}

// OffsetForTimestamp implements store.Log: it searches the index for where the largest
// timestamp so far reaches ts, and from there on batch by batch.
func (l indexLog) OffsetForTimestamp(ctx context.Context, ts int64) (store.TimestampOffset, bool, error) {
	var none store.TimestampOffset
	if err := l.mayRead(); err != nil {
		return none, false, err
	}
	start, next := l.Bounds()
	if start >= next {
		return none, false, nil
	}
	args := []string{decimal(start + 1), decimal(next), decimal(ts)}
	at, err := l.store.do(ctx, l.store.eval(searchIndexScript, []string{l.keys.index}, args)).AsInt64()
	if err != nil {
		return none, false, attempt("search "+l.keys.index, err)
	}
	return l.searchFrom(ctx, max(at-1, start), ts)
}

// searchFrom finds the first record from an offset on with a timestamp of at least ts.
func (l indexLog) searchFrom(ctx context.Context, offset, ts int64) (hit store.TimestampOffset, found bool, err error) {
	start, next := l.Bounds()
	for offset < next && !found && err == nil {
		var at indexBatch
		var of indexEntry
		any := false
		if e := l.eachBatch(ctx, offset, next, func(e *indexEntry, b *indexBatch) bool {
			if b.maxTimestamp >= ts {
				at, of, any = *b, *e, true
			}
			return !any
		}); e != nil || !any {
			return hit, false, e
		}
		hit, found, err = l.searchBatch(ctx, &of, &at, max(start, offset), ts)
		offset = at.next()
	}
	return hit, found, err
}

// searchBatch finds the first record of a batch, from an offset on, with a timestamp of at least ts.
func (l indexLog) searchBatch(ctx context.Context, e *indexEntry, b *indexBatch, offset, ts int64) (hit store.TimestampOffset, found bool, err error) {
	if b.isControl() {
		return store.TimestampOffset{Offset: b.base, Timestamp: b.maxTimestamp, LeaderEpoch: b.leaderEpoch}, b.base >= offset, nil
	}
	from, to, some := idsIn([]indexEntry{*e}, max(b.base, offset), b.next())
	for some && !to.less(from) {
		entries, err := l.entriesBetween(ctx, from, to, l.entries(1<<20))
		if err != nil || len(entries) == 0 {
			return hit, false, err
		}
		w := walker{entries: []indexEntry{*e}}
		for i := range entries {
			id, fields, err := entryParts(&entries[i])
			if err != nil {
				return hit, false, err
			}
			from = id.after()
			at, ok := w.at(id)
			if !ok {
				continue
			}
			if t := timestampOf(id, fields, at.batch.flags&flagAdopted != 0); t >= ts {
				return store.TimestampOffset{Offset: at.offset, Timestamp: t, LeaderEpoch: b.leaderEpoch}, true, nil
			}
		}
	}
	return hit, false, nil
}

// MaxTimestamp implements store.Log. If the record that had the largest one is gone, the index
// is looked through.
func (l indexLog) MaxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error) {
	none := store.TimestampOffset{Timestamp: record.NoTimestamp}
	if err := l.mayRead(); err != nil {
		return none, false, err
	}
	l.mu.Lock()
	top, start, next := l.tail.maxTimestamp, l.start, l.tail.next
	l.mu.Unlock()
	if top == record.NoTimestamp {
		return none, false, nil
	}
	hit, found, err := l.OffsetForTimestamp(ctx, top)
	if err != nil || found {
		return hit, found, err
	}
	best := none
	for offset := start; offset < next; {
		// The largest of what is left, or what the index says of it.
		var at indexBatch
		var of indexEntry
		any := false
		err := l.eachBatch(ctx, offset, next, func(e *indexEntry, b *indexBatch) bool {
			if b.maxTimestamp > best.Timestamp {
				at, of, any = *b, *e, true
			}
			return !any
		})
		if err != nil || !any {
			return best, best.Timestamp > record.NoTimestamp, err
		}
		for {
			hit, found, err := l.searchBatch(ctx, &of, &at, start, best.Timestamp+1)
			if err != nil {
				return none, false, err
			}
			if !found {
				break
			}
			best = hit
			if at.isControl() {
				break
			}
		}
		offset = at.next()
	}
	return best, best.Timestamp > record.NoTimestamp, nil
}

// Compact implements store.Log: superseded records are deleted, and entries of the index that
// have none left.
func (l indexLog) Compact(ctx context.Context, c store.Compaction) error {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	if _, err := l.own(ctx, "compact", checkScript); err != nil {
		return err
	}
	if err := l.forgetSometimes(ctx); err != nil {
		return err
	}
	worth, err := l.worthIt(ctx, c)
	if err != nil || !worth {
		return err
	}
	if err := l.snapshotFirst(ctx); err != nil {
		return err
	}
	return l.compactIndexed(ctx, c)
}

func (l indexLog) compactIndexed(ctx context.Context, c store.Compaction) error {
	start, next := l.Bounds()
	end := min(next, c.NextOffset)
	pass := store.NewCompactionPass(c, l.cleaned.passes)
	l.mu.Lock()
	pass.Skip(l.aborted.Find(start, c.NextOffset))
	for _, p := range l.producers {
		pass.Protect(p.Producer)
	}
	l.mu.Unlock()
	// An aborted transaction goes before its marker does: no reader may be told of one that
	// never ends.
	if err := l.expireAborted(ctx, pass); err != nil {
		return err
	}
	from := max(start, l.cleaned.to)
	err := l.scanIndexed(ctx, from, end, func(r *indexedRecord) error {
		if c.Young(r.Timestamp) || pass.Full() {
			end = r.Offset
			return errFound
		}
		if !r.aborted(pass) {
			pass.NoteKey(&r.Keyed)
		}
		return nil
	})
	if err == nil {
		err = l.eachBatch(ctx, from, end, func(_ *indexEntry, b *indexBatch) bool {
			return !b.isControl() || b.next() > end || pass.Note(b.header()) == nil
		})
	}
	if err != nil {
		return err
	}
	p := &indexPass{l: l, c: c, pass: pass}
	if end, err = p.run(ctx, start, end, next); err != nil {
		return err
	}
	return l.writeCleaned(ctx, l.cleaned.after(end, p.kept, c))
}

// indexPass is a compaction that has noted all keys.
type indexPass struct {
	l    indexLog
	c    store.Compaction
	pass *store.CompactionPass
	kept int64 // bytes
	gone []item
}

// run deletes what goes, window by window, and returns how far it came.
func (p *indexPass) run(ctx context.Context, offset, end, next int64) (int64, error) {
	for offset < end {
		entries, err := p.l.readIndex(ctx, offset, window)
		if err != nil || len(entries) == 0 {
			return end, err
		}
		left := map[*indexBatch]bool{}
		err = p.l.scanEntries(ctx, entries, offset, end, func(r *indexedRecord) error {
			if !r.aborted(p.pass) {
				if p.c.Young(r.Timestamp) {
					end = r.Offset
					return errFound
				}
				if p.pass.Keep(&r.Keyed) {
					p.kept += r.item.size
					left[r.batch] = true
					return nil
				}
			}
			p.gone = append(p.gone, r.item)
			return nil
		})
		if err != nil && !errors.Is(err, errFound) {
			return end, err
		}
		if err := p.remove(ctx, entries, left, end, next); err != nil {
			return end, err
		}
		offset = entries[len(entries)-1].next
	}
	return end, nil
}

// remove deletes records, and the entries of the index of which nothing is left.
func (p *indexPass) remove(ctx context.Context, entries []indexEntry, left map[*indexBatch]bool, end, next int64) error {
	for len(p.gone) > 0 {
		n := min(len(p.gone), scanEntries)
		if err := p.l.removeData(ctx, p.gone[:n]); err != nil {
			return err
		}
		p.gone = p.gone[n:]
	}
	var empty []string
	for i := range entries {
		e := &entries[i]
		stays := e.next > end || e.next == next
		for j := range e.batches {
			b := &e.batches[j]
			if b.next() > end {
				break
			}
			one, err := p.pass.Stays(b.header(), left[b])
			if err != nil {
				return err
			}
			stays = stays || one
		}
		if !stays {
			empty = append(empty, decimal(e.next)+"-0")
		}
	}
	if len(empty) == 0 {
		return nil
	}
	p.l.cache.clear()
	p.l.store.windows.forget(p.l.index)
	_, err := p.l.change(ctx, "compact", deleteEntriesScript, []string{p.l.keys.index}, empty...)
	return err
}

// worthIt says whether there is enough that has not been compacted.
func (l indexLog) worthIt(ctx context.Context, c store.Compaction) (bool, error) {
	start, next := l.Bounds()
	dirtyFrom := max(start, l.cleaned.to)
	if dirtyFrom >= min(next, c.NextOffset) {
		return false, nil
	}
	total := l.Size()
	if dirty := total - min(l.cleaned.bytes, total); c.Worth(max(dirty, 1), total, record.NoTimestamp) {
		return true, nil
	}
	if c.MaxLag <= 0 {
		return false, nil
	}
	late := false
	err := l.eachBatch(ctx, dirtyFrom, min(next, c.NextOffset), func(_ *indexEntry, b *indexBatch) bool {
		late = c.Late(b.baseTimestamp)
		return false
	})
	return late, err
}

// removeData deletes records.
func (l indexLog) removeData(ctx context.Context, gone []item) error {
	args := []string{""}
	var bytes int64
	for _, it := range gone {
		bytes += it.size
		args = append(args, it.id.String())
	}
	args[0] = decimal(bytes)
	r, err := l.change(ctx, "compact", deleteIndexedScript, nil, args...)
	if err == nil {
		l.shrink(bytes, r[0].int())
	}
	return err
}

// indexedRecord is a record, and the batch that it is of.
type indexedRecord struct {
	keyed
	batch *indexBatch
}

func (r *indexedRecord) aborted(pass *store.CompactionPass) bool {
	return r.batch.transactional() && pass.Aborted(r.batch.header())
}

// scanIndexed calls fn with every record from an offset up to another. It stops at fn's first
// error, and errFound is none.
func (l indexLog) scanIndexed(ctx context.Context, offset, next int64, fn func(*indexedRecord) error) error {
	for offset < next {
		entries, err := l.readIndex(ctx, offset, window)
		if err != nil || len(entries) == 0 {
			return err
		}
		if err := l.scanEntries(ctx, entries, offset, next, fn); err != nil {
			if errors.Is(err, errFound) {
				return nil
			}
			return err
		}
		offset = entries[len(entries)-1].next
	}
	return nil
}

// scanEntries calls fn with the records of some entries of the index.
func (l indexLog) scanEntries(ctx context.Context, entries []indexEntry, offset, next int64, fn func(*indexedRecord) error) error {
	from, to, some := idsIn(entries, offset, min(entries[len(entries)-1].next, next))
	w := walker{entries: entries}
	for some && !to.less(from) {
		count := entriesIn(scanBytes, l.average())
		r, err := replies(l.store.do(ctx, l.store.eval(keysScript, []string{l.keys.stream}, []string{from.String(), to.String(), decimal(count)})))
		if err != nil {
			return attempt("scan "+l.keys.stream, err)
		}
		some = int64(len(r)) == 5*count
		for ; len(r) >= 5; r = r[5:] {
			id, err := parseID(r[0].text())
			if err != nil {
				return err
			}
			from = id.after()
			at, ok := w.at(id)
			if !ok {
				continue
			}
			if err := fn(newIndexedRecord(id, at, r)); err != nil {
				return err
			}
		}
	}
	return nil
}

// newIndexedRecord reads what keysScript tells of an entry.
func newIndexedRecord(id entryID, at place, r []reply) *indexedRecord {
	limit := int64(maxTimestamp)
	if at.batch.flags&flagAdopted != 0 {
		limit = maxAdoptedTimestamp
	}
	ts, ok := parseTimestamp(r[2].text())
	if !ok || ts > limit || ts < -limit {
		ts = int64(min(id.ms, uint64(limit)))
	}
	return &indexedRecord{batch: at.batch, keyed: keyed{
		item: item{id: id, base: at.offset, last: at.offset, size: r[1].int(), timestamp: ts},
		Keyed: record.Keyed{
			Meta: record.Meta{Offset: at.offset, Timestamp: ts, HasKey: !r[3].m.IsNil()},
			Key:  bytesOf(r[3].text()), Tombstone: r[4].int() == 0,
		},
	}}
}
