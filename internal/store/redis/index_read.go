package redis

import (
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/redis/rueidis"

	"muster/internal/buffer"
	"muster/internal/record"
	"muster/internal/store"
)

// indexCache is the last entries of the index, so that a reader near the end need not ask
// for them.
type indexCache struct {
	mu      sync.Mutex
	entries []indexEntry // each begins where the one before ends
	bytes   int
}

// maxCache is how much of the index is kept of each log.
const maxCache = 64 << 10

func (c *indexCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries, c.bytes = nil, 0
}

// add adds what has become the last entry.
func (c *indexCache) add(e indexEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.entries); n > 0 && c.entries[n-1].next != e.base {
		c.entries, c.bytes = nil, 0
	}
	c.entries = append(c.entries, e)
	c.bytes += e.weight()
	for len(c.entries) > 1 && c.bytes > maxCache {
		c.bytes -= c.entries[0].weight()
		c.entries = c.entries[1:]
	}
}

// from returns entries from the one on that holds an offset, none if it is not there.
func (c *indexCache) from(offset int64, count int) []indexEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) == 0 || offset < c.entries[0].base {
		return nil
	}
	i := sort.Search(len(c.entries), func(i int) bool { return c.entries[i].next > offset })
	return c.entries[i:min(i+count, len(c.entries)):len(c.entries)]
}

// window is how many entries of the index are looked at at a time.
const window = 64

// readIndex returns entries from the one on that holds an offset or follows it.
func (l indexLog) readIndex(ctx context.Context, offset int64, count int) ([]indexEntry, error) {
	if known := l.cache.from(offset, count); len(known) > 0 {
		return known, nil
	}
	cmd := l.store.client.B().Xrange().Key(l.keys.index).Start(decimal(offset + 1)).End("+").Count(int64(count)).Build()
	return decodeEntries(l.store.do(ctx, cmd), l.keys)
}

func decodeEntries(r rueidis.RedisResult, k keys) ([]indexEntry, error) {
	found, err := r.ToArray()
	if err != nil {
		return nil, attempt("read "+k.index, err)
	}
	entries := make([]indexEntry, len(found))
	for i := range found {
		if entries[i], err = decodeIndex(&found[i]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// maxWindows is how many windows without a record a read looks at.
const maxWindows = 32

// Read implements store.Log.
func (l indexLog) Read(ctx context.Context, req store.ReadRequest) (store.Records, error) {
	l.mu.Lock()
	ended, start, next := l.ended, l.start, l.tail.next
	l.mu.Unlock()
	if ended {
		return store.Records{}, store.ErrClosed
	}
	if req.Offset < start || req.Offset > next {
		return store.Records{}, store.ErrOffsetOutOfRange
	}
	req.NextOffset = min(req.NextOffset, next)
	req.MaxBytes = l.store.held.take(req.MaxBytes)
	into := &indexSink{req: req, at: req.Offset}
	err := l.readData(ctx, req, into)
	out := into.bytes()
	l.store.held.add(len(out) - req.MaxBytes)
	free := func() {
		l.store.held.add(-len(out))
		buffer.Free(out)
	}
	if err != nil || len(out) == 0 {
		free()
		return store.Records{}, err
	}
	return store.HeldRecords(out, free), nil
}

// readData reads window after window until there is enough, or the log ends. The last bit of
// what would fit is not worth a trip.
func (l indexLog) readData(ctx context.Context, req store.ReadRequest, into *indexSink) error {
	for windows := 0; into.at < req.NextOffset && !into.full && (into.size == 0 || into.room() > req.MaxBytes/8) && windows < maxWindows; windows++ {
		entries, err := l.windowAt(ctx, into.at)
		if err != nil {
			return err
		}
		if len(entries) == 0 { // Compaction has removed the rest.
			if _, err := l.fetch(ctx, req.Offset, entryID{}, entryID{ms: 1}, 1); err != nil {
				return err
			}
			into.at = req.NextOffset
			break
		}
		if err := l.readWindow(ctx, req, entries, into); err != nil {
			return err
		}
	}
	if into.size == 0 && !into.full && into.at > req.Offset {
		into.skip()
	}
	return nil
}

// readWindow reads the data of some entries of the index.
func (l indexLog) readWindow(ctx context.Context, req store.ReadRequest, entries []indexEntry, into *indexSink) error {
	end := min(entries[len(entries)-1].next, req.NextOffset)
	from, to, some := idsIn(entries, into.at, end)
	if !some {
		from, to = entryID{}, entryID{ms: 1} // It is still to be known whether the log has been trimmed or deleted.
	}
	count := int64(1)
	if some {
		count = l.entries(into.room())
	}
	found, beside, err := l.fetchBeside(ctx, req.Offset, from, to, count, l.ahead(entries, into.at, req.NextOffset, count)...)
	if err != nil {
		return err
	}
	for _, r := range beside {
		if _, err := l.keep(into.at, entries, r); err != nil {
			return err
		}
	}
	covered := end
	if some && int64(len(found)) == count {
		covered = into.at // until it is known
	}
	data, full, err := placesOf(found, entries)
	if err != nil {
		return err
	}
	if n := len(data); n > 0 {
		covered = max(covered, data[n-1].batch.base)
	}
	into.control = emptyIn(entries, into.at, covered, full)
	bytes := 0
	for i := range data {
		size, more := into.take(&data[i])
		if !more {
			l.sizes.note(bytes, i)
			return nil
		}
		bytes += size
	}
	if some {
		l.sizes.note(bytes, len(found))
	}
	if int64(len(found)) < count || !some {
		into.advance(end)
	}
	return nil
}

// placedEntry is an entry of the data, and where it is.
type placedEntry struct {
	place
	id     entryID
	fields []rueidis.RedisMessage
}

// placesOf finds the places of entries of the data, and which batches have some. Those that others
// have added since have none.
func placesOf(found []rueidis.RedisMessage, entries []indexEntry) ([]placedEntry, map[*indexBatch]bool, error) {
	out, full, w := make([]placedEntry, 0, len(found)), map[*indexBatch]bool{}, walker{entries: entries}
	for i := range found {
		id, fields, err := entryParts(&found[i])
		if err != nil {
			return nil, nil, err
		}
		at, ok := w.at(id)
		if !ok {
			continue
		}
		if n := len(out); n == 0 || out[n-1].batch != at.batch {
			full[at.batch] = true
		}
		out = append(out, placedEntry{at, id, fields})
	}
	return out, full, nil
}

// emptyIn returns the batches, from an offset on and below another, that readers are to see
// though they have no data: control batches, and those of a producer all of whose records were
// deleted.
func emptyIn(entries []indexEntry, from, next int64, full map[*indexBatch]bool) (out []*indexBatch) {
	for i := range entries {
		for j := range entries[i].batches {
			b := &entries[i].batches[j]
			if b.flags&(flagControl|flagProducer) != 0 && !full[b] && b.base >= from && b.next() <= next {
				out = append(out, b)
			}
		}
	}
	return out
}

// idsIn returns the ids of the first and the last record from an offset on and below another.
func idsIn(entries []indexEntry, offset, next int64) (from, to entryID, ok bool) {
	for i := range entries {
		if from, ok = entries[i].idFrom(offset); ok {
			break
		}
	}
	if !ok {
		return from, to, false
	}
	for i := len(entries) - 1; i >= 0; i-- {
		if to, ok = entries[i].idBefore(next); ok {
			return from, to, !to.less(from)
		}
	}
	return from, to, false
}

// indexSink makes record batches of the data. Batches without producer, and idempotent ones,
// go together for as long as timestamps and the leader epoch allow it; those of transactions
// stay apart.
type indexSink struct {
	req     store.ReadRequest
	at      int64         // all before it has been taken, or is gone
	control []*indexBatch // batches without data that are to come
	full    bool
	out     []byte
	size    int

	writer *record.Writer
	batch  *indexBatch // that the batch which is being made began with
	base   int64
	first  int64 // timestamp
	words  entry
}

// take takes an entry of the data, and the control batches before it.
func (s *indexSink) take(at *placedEntry) (size int, more bool) {
	if at.offset < s.at || at.offset >= s.req.NextOffset {
		return 0, true
	}
	if !s.controls(at.offset) {
		return 0, false
	}
	s.words = s.words[:0]
	for i := range at.fields {
		text, _ := at.fields[i].ToString()
		s.words = append(s.words, text)
	}
	r := decodeRecord(at.id, s.words)
	if at.batch.flags&flagAdopted != 0 {
		r = decodeAdopted(at.id, s.words)
	}
	opens := s.opens(at.place, r.Timestamp)
	first := s.first
	if opens {
		size, first = record.HeaderSize, r.Timestamp
	} else {
		r.OffsetDelta = int32(at.offset - s.base)
	}
	size += record.Size(&r, first)
	if !s.fits(size) {
		return 0, false
	}
	if opens {
		s.out = s.finished()
		s.writer, s.batch, s.base, s.first = record.NewWriter(s.buffer(), s.template(at.place)), at.batch, at.offset, first
	}
	s.writer.Add(&r)
	s.size += size
	s.at = at.offset + 1
	return size, true
}

func (s *indexSink) template(at place) record.Template {
	if at.batch.transactional() {
		return at.batch.template(at.offset)
	}
	t := record.PlainTemplate()
	t.BaseOffset, t.LeaderEpoch = at.offset, at.batch.leaderEpoch
	return t
}

// fits says whether so many bytes more can be taken. If not, nothing more is.
func (s *indexSink) fits(size int) bool {
	s.full = s.size+size > s.req.MaxBytes && (s.size > 0 || !s.req.MinOne)
	return !s.full
}

// opens says whether a record begins a new batch.
func (s *indexSink) opens(at place, timestamp int64) bool {
	if s.writer == nil {
		return true
	}
	if at.batch != s.batch && (at.batch.transactional() || s.batch.transactional() || at.batch.leaderEpoch != s.batch.leaderEpoch) {
		return true
	}
	apart := timestamp - s.first
	return at.offset-s.base > 1<<30 || apart > maxTimestamp || apart < -maxTimestamp
}

// controls takes the control batches before an offset.
func (s *indexSink) controls(before int64) bool {
	for len(s.control) > 0 && s.control[0].base < before {
		b := s.control[0].header()
		if !s.fits(len(b)) {
			return false
		}
		s.out = append(s.finishedBuffer(), b...)
		s.size += len(b)
		s.at = s.control[0].next()
		s.control = s.control[1:]
	}
	return true
}

// advance notes that there is no data up to an offset any more.
func (s *indexSink) advance(to int64) {
	if s.controls(to) {
		s.at = max(s.at, to)
	}
}

// skip makes a batch without records, so that who reads goes on after what is gone.
func (s *indexSink) skip() {
	t := record.PlainTemplate()
	t.BaseOffset, t.LastOffsetDelta = s.req.Offset, int32(min(s.at-s.req.Offset-1, 1<<30))
	if b, err := record.Build(t, nil); err == nil {
		s.out = append(s.buffer(), b...)
	}
}

func (s *indexSink) bytes() []byte { return s.finished() }

// finished ends the batch that is being made.
func (s *indexSink) finished() []byte {
	if s.writer != nil {
		s.out, s.writer = s.writer.Finish(), nil
	}
	return s.out
}

func (s *indexSink) finishedBuffer() []byte {
	s.out = s.finished()
	return s.buffer()
}

func (s *indexSink) buffer() []byte {
	if s.out == nil {
		s.out = buffer.Empty(min(max(s.req.MaxBytes, 1<<10), 1<<20))
	}
	return s.out
}

func (s *indexSink) room() int { return s.req.MaxBytes - s.size }

// indexWindow is some entries of an index that follow each other.
type indexWindow struct {
	log     *index
	from    int64 // they are all from this offset on
	entries []indexEntry
	bytes   int
}

// indexWindows is what was read lately of the indexes of all logs, for readers that are not near the
// end: one reads the data of a window in several steps, and what follows it along with the last
// but one of them.
type indexWindows struct {
	mu    sync.Mutex
	list  []indexWindow // what was used last comes last
	bytes int
}

// maxWindowsKept and maxWindowBytes bound how many windows are kept, and maxWindowWeight how much is read
// ahead. A window that is not read ahead can be larger: records that Redis clients have added one by
// one have an id each.
const (
	maxWindowsKept  = 256
	maxWindowBytes  = 16 << 20
	maxWindowWeight = 64 << 10
)

// from returns entries from the one on that holds an offset or follows it.
func (w *indexWindows) from(l *index, offset int64) []indexEntry {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.list) - 1; i >= 0; i-- {
		x := w.list[i]
		if x.log != l || offset < x.from || offset >= x.entries[len(x.entries)-1].next {
			continue
		}
		w.list = append(slices.Delete(w.list, i, i+1), x)
		return x.entries[sort.Search(len(x.entries), func(i int) bool { return x.entries[i].next > offset }):]
	}
	return nil
}

func (w *indexWindows) add(x indexWindow) {
	if len(x.entries) == 0 {
		return
	}
	for i := range x.entries {
		x.bytes += x.entries[i].weight()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, x)
	w.bytes += x.bytes
	n := 0
	for ; len(w.list)-n > maxWindowsKept || w.bytes > maxWindowBytes; n++ {
		w.bytes -= w.list[n].bytes
	}
	w.list = slices.Delete(w.list, 0, n)
}

// forget drops what is known of a log.
func (w *indexWindows) forget(l *index) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = slices.DeleteFunc(w.list, func(x indexWindow) bool {
		if x.log != l {
			return false
		}
		w.bytes -= x.bytes
		return true
	})
}

// known returns entries from the one on that holds an offset, if that need not be read.
func (l indexLog) known(offset int64) []indexEntry {
	if e := l.cache.from(offset, window); len(e) > 0 {
		return e
	}
	return l.store.windows.from(l.index, offset)
}

// windowAt returns entries from the one on that holds an offset or follows it.
func (l indexLog) windowAt(ctx context.Context, offset int64) ([]indexEntry, error) {
	if e := l.known(offset); len(e) > 0 {
		return e, nil
	}
	return l.keep(offset, nil, l.store.do(ctx, l.windowCommand(offset, window)))
}

func (l indexLog) windowCommand(offset, count int64) rueidis.Completed {
	return l.store.client.B().Xrange().Key(l.keys.index).Start(decimal(offset + 1)).End("+").Count(count).Build()
}

// keep reads a window, and remembers it with the entries before it, which are all from an offset on.
func (l indexLog) keep(from int64, before []indexEntry, r rueidis.RedisResult) ([]indexEntry, error) {
	entries, err := decodeEntries(r, l.keys)
	if err == nil {
		l.store.windows.add(indexWindow{log: l.index, from: from, entries: slices.Concat(before, entries)})
	}
	return entries, err
}

// ahead makes the command that reads the window after some entries, if a read of so many
// records brings a reader near their end; nil if not, or if it is known, or if the log ends there.
func (l indexLog) ahead(entries []indexEntry, offset, end, count int64) []rueidis.Completed {
	next := entries[len(entries)-1].next
	if next >= end || len(l.known(next)) > 0 {
		return nil
	}
	left, all, weight := int64(0), int64(1), int64(1)
	for i := range entries {
		e := &entries[i]
		all, weight = all+e.records(), weight+int64(e.weight())
		if e.next > offset {
			left += e.records()
		}
	}
	if left >= 2*count {
		return nil
	}
	n, most := 4*count*int64(len(entries))/all+1, maxWindowWeight*int64(len(entries))/weight
	return []rueidis.Completed{l.windowCommand(next, max(min(n, most), 1))}
}
