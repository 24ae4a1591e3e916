package redis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"muster/internal/record"
	"muster/internal/store"
)

// indexLog is a log of the indexed layout: an entry of the stream is a record, and beside it
// lies an index, which says what offset it has. Others append to the stream too; what they
// added gets its offsets when the leader adopts it.
type indexLog struct {
	*log
	*index
}

// index is what a handle knows of the index.
type index struct {
	cache indexCache
	until int32 // the last leader epoch before it was converted, or noEpoch

	// saving is held by the one that writes a snapshot. The rest is guarded by the log's lock.
	saving  sync.Mutex
	unsaved int                // entries of the index since the last snapshot
	changed map[int64]struct{} // the producers that it does not have as they are
	since   []store.Aborted    // what was aborted that it does not have
	floor   entryID            // an id that was used, by an entry that is gone
	told    int64              // the end of the log when no append was under way
}

func newIndexLog(l *log, meta map[string]string) (layout, error) {
	top, _, err := parseIndexState(meta["s"])
	if err != nil {
		return nil, err
	}
	l.tail.top = top
	until := int64(noEpoch)
	if meta["until"] != "" {
		if until, err = number(meta, "until"); err != nil {
			return nil, err
		}
	}
	return indexLog{l, &index{until: int32(until), changed: map[int64]struct{}{}}}, nil
}

func (indexLog) name() store.Layout { return store.LayoutIndexed }

func (indexLog) position(offset int64) string { return decimal(offset) }

func (indexLog) offsetAt(position entryID) int64 { return int64(position.ms) }

// indexTruth is the state of a log as a script has told it.
type indexTruth struct {
	next int64
	top  entryID
	indexState
}

// indexState is the numbers of the state.
type indexState struct{ added, maxTimestamp, size int64 }

// parseIndexState reads field s of the meta hash.
func parseIndexState(text string) (top entryID, s indexState, err error) {
	bad := fmt.Errorf("%w: the state of the index is %q", store.ErrCorrupt, text)
	first, rest, _ := strings.Cut(text, " ")
	if top, err = parseID(first); err != nil {
		return top, s, bad
	}
	n, ok := numbers(rest, 3)
	if !ok {
		return top, s, bad
	}
	return top, indexState{n[0], n[1], n[2]}, nil
}

// apply takes the state into the end of a log.
func (t *tail) apply(truth indexTruth) {
	t.next, t.top, t.added, t.maxTimestamp, t.size = truth.next, truth.top, truth.added, truth.maxTimestamp, truth.size
}

func (l indexLog) loadBounds(_ context.Context, f *found, start, end entryID) error {
	top, s, err := parseIndexState(f.meta["s"])
	if err != nil {
		return err
	}
	l.start = l.offsetAt(start)
	l.tail.apply(indexTruth{l.offsetAt(end), top, s})
	l.tail.count = f.length
	return nil
}

// adopt is not called: openScript writes a start for every log.
func (l indexLog) adopt(context.Context, *found) error {
	return fmt.Errorf("%w: a log without start", store.ErrCorrupt)
}

// loadState takes in the snapshot of producers, what the index says of later ones, and the
// entries of others.
func (l indexLog) loadState(ctx context.Context, producers map[string]string, aborted []string, now int64) error {
	next, err := number(producers, snapshotNext)
	if err != nil {
		return err
	}
	delete(producers, snapshotNext)
	if next > l.tail.next { // It is of an earlier life.
		next, producers = 0, nil
	}
	l.producers = make(map[int64]producer, len(producers))
	for id, text := range producers {
		p, err := parseProducer(id, text)
		if err != nil {
			return err
		}
		l.producers[p.ID] = p
	}
	for _, text := range aborted {
		a, err := parseAborted(text)
		if err != nil {
			return err
		}
		if a.LastOffset >= l.start && a.LastOffset < next {
			l.aborted.Add(a)
		}
	}
	if len(aborted) > 0 {
		err := l.changeAborted(ctx, trimAbortedScript, "("+decimal(l.start), decimal(next))
		if err != nil && !errors.Is(err, store.ErrClosed) && !errors.Is(err, store.ErrFenced) {
			return err
		}
	}
	for at := max(next, l.start); at < l.tail.next; {
		entries, err := l.readIndex(ctx, at, loadEntries)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			break // Compaction has removed the rest.
		}
		for i := range entries {
			l.mu.Lock()
			l.noteEntry(&entries[i], now)
			l.mu.Unlock()
			at = entries[i].next
		}
	}
	if err := l.forgetIdle(ctx, now); err != nil {
		return err
	}
	if _, err = l.Refresh(ctx); errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrFenced) {
		return nil // Another has opened it since, or it was deleted: whoever uses this handle is told.
	}
	return err
}

const (
	// loadEntries is how many entries of the index are read at a time.
	loadEntries = 500
	// snapshotEvery is how many entries a log has to replay at most when it is opened.
	snapshotEvery = 10_000
	// snapshotNext is the field of the hash of producers that says how far a snapshot goes.
	snapshotNext = "next"
)

// noteEntry takes an entry of the index into the state of producers. The lock is held.
func (l indexLog) noteEntry(e *indexEntry, now int64) {
	for i := range e.batches {
		b := &e.batches[i]
		id := b.producerID
		var marker *record.Marker
		if b.isControl() {
			m, ok, err := b.control.Marker()
			if err != nil || !ok {
				continue
			}
			marker, id = &m, b.control.ProducerID()
		}
		if id < 0 {
			continue
		}
		p, ok := l.producers[id]
		if !ok {
			p.Producer = *store.NewProducer(id)
		}
		p.when = now
		p.Batches = slices.Clone(p.Batches)
		header := b.header()
		if marker == nil {
			p.Note(header, b.maxTimestamp)
		} else if a := p.End(header, *marker, b.maxTimestamp); a != nil {
			l.aborted.Add(*a)
			l.since = append(l.since, *a)
		}
		l.producers[id] = p
		l.changed[id] = struct{}{}
	}
	l.unsaved++
}

// change runs a script that changes the log, on its stream, its meta hash and the other keys.
func (l indexLog) change(ctx context.Context, what, script string, keys []string, args ...string) ([]reply, error) {
	keys = append([]string{l.keys.stream, l.keys.meta}, keys...)
	_, end := l.Bounds()
	return l.ownKeys(ctx, what, script, keys, append([]string{decimal(end)}, args...))
}

// snapshotFirst writes a snapshot before something of the index goes.
func (l indexLog) snapshotFirst(ctx context.Context) error {
	l.mu.Lock()
	due := l.unsaved > 0
	l.mu.Unlock()
	if !due {
		return nil
	}
	return l.snapshot(ctx)
}

// snapshot writes what the next leader would have to find out from the index.
func (l indexLog) snapshot(ctx context.Context) error {
	l.saving.Lock()
	defer l.saving.Unlock()
	l.mu.Lock()
	entries, changed, ended, next := l.unsaved, l.changed, l.since, l.tail.next
	args := []string{strconv.Itoa(2 * len(ended))}
	for _, a := range ended {
		args = append(args, decimal(a.LastOffset), formatAborted(a))
	}
	for id := range changed {
		if p, ok := l.producers[id]; ok {
			args = append(args, decimal(id), formatProducer(p))
		}
	}
	l.changed, l.since = map[int64]struct{}{}, nil
	l.mu.Unlock()
	args = append(args, snapshotNext, decimal(next))
	_, err := l.change(ctx, "save the producers of", snapshotScript, []string{l.keys.producers, l.keys.aborted}, args...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.unsaved -= entries // Not before: who trims waits until it is done.
		return nil
	}
	for id := range changed {
		l.changed[id] = struct{}{}
	}
	l.since = append(ended, l.since...)
	return err
}

// SaveProducers implements store.Log. The handle knows better than who calls it.
func (l indexLog) SaveProducers(ctx context.Context, _ []store.Producer, _ int64) error {
	return l.snapshot(ctx)
}

// Close implements store.Log. A snapshot spares the next leader work, and it can do without.
func (l indexLog) Close() error {
	l.mu.Lock()
	due := l.unsaved > 0 && !l.ended && !l.closed && l.failed == nil
	l.mu.Unlock()
	if due {
		_ = l.snapshot(context.Background())
	}
	return l.log.Close()
}

// check looks into control batches; records are looked at by encode.
func (l indexLog) check(p *pending) error {
	if p.batch.Control() {
		p.bytes = int64(len(p.batch))
		if err := p.readMarker(); err != nil {
			return fmt.Errorf("%w: %w", store.ErrInvalidBatch, err)
		}
		return l.checkSize(p.bytes)
	}
	if p.batch.Count() <= 0 {
		return fmt.Errorf("%w: %w", store.ErrInvalidBatch, errNoRecords)
	}
	return nil
}

func (indexLog) entriesOf(b record.Batch) int {
	if b.Control() {
		return 1
	}
	return int(b.Count())
}

func (l indexLog) encode(p *pending, wait bool) bool {
	return p.batch.Control() || p.memory > 0 || l.split(p, wait)
}

func (indexLog) base(next, _ int64) int64 { return next }

func (indexLog) usesClock() bool { return true }

// gapSequence is how many ids are left to others who append in the same millisecond.
const gapSequence = 64

// nextID chooses the first of some ids, above another one.
func (l indexLog) nextID(top entryID, count int64) (entryID, error) {
	if top.less(l.floor) {
		top = l.floor
	}
	now := uint64(max(l.clock.now(l.store.now())+l.pace.margin(), 0))
	if now > top.ms {
		return entryID{ms: now}, nil
	}
	gap := uint64(gapSequence + l.pace.gap())
	if top.seq < math.MaxUint64-gap-uint64(count) {
		return entryID{top.ms, top.seq + gap}, nil
	}
	if top.ms == math.MaxUint64 {
		return entryID{}, fmt.Errorf("%w: %s has an entry %s, and no id is left above it: only a new topic helps", store.ErrStorage, l.keys.stream, top)
	}
	return entryID{ms: top.ms + 1}, nil
}
