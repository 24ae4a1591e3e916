package redis

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// An entry of the index stands for what one transaction added to the data, or for entries
// of others that were adopted together. Its id is <offset after its last record>-0, and its
// one field holds a line that scripts can read
//
//	<largest timestamp so far> <data entries covered so far> <first id, or ->\n
//
// and then, as varints, the ids of its records as runs, and its batches. Where it begins
// it does not say: that is its id less the counts, so that it can be made before its offset is
// known.

// idRun is ids of the same millisecond that follow each other.
type idRun struct {
	first entryID
	count int64
}

func (r idRun) last() entryID { return entryID{r.first.ms, r.first.seq + uint64(r.count) - 1} }

// The flags of a batch in the index.
const (
	flagTransactional = 1 << iota
	flagProducer      // it has a producer id, epoch and sequence
	flagControl       // it has no data: the batch itself is here
	flagAdopted       // Redis clients have added its records
)

// indexBatch is a batch, or what is left of it: its records are in the data.
type indexBatch struct {
	base          int64
	count         int64
	flags         byte
	leaderEpoch   int32
	baseTimestamp int64
	maxTimestamp  int64
	bytes         int64
	producerID    int64
	producerEpoch int16
	sequence      int32
	control       record.Batch
}

func (b *indexBatch) isControl() bool { return b.flags&flagControl != 0 }

func (b *indexBatch) transactional() bool { return b.flags&flagTransactional != 0 }

func (b *indexBatch) next() int64 { return b.base + b.count }

// records is how many entries of the data it has, unless they were deleted.
func (b *indexBatch) records() int64 {
	if b.isControl() {
		return 0
	}
	return b.count
}

// header makes a batch without records, for those who ask a batch what it is.
func (b *indexBatch) header() record.Batch {
	if b.isControl() {
		c := slices.Clone(b.control)
		c.SetBaseOffset(b.base)
		c.SetLeaderEpoch(b.leaderEpoch)
		return c
	}
	t := b.template(b.base)
	t.LastOffsetDelta, t.MaxTimestamp = int32(b.count-1), b.maxTimestamp
	made, _ := record.Build(t, nil) // Without records there is nothing that could fail.
	return made
}

// template is that of a batch with records of this one.
func (b *indexBatch) template(base int64) record.Template {
	t := record.PlainTemplate()
	t.BaseOffset, t.LeaderEpoch = base, b.leaderEpoch
	if b.flags&flagProducer != 0 {
		t.ProducerID, t.ProducerEpoch, t.BaseSequence = b.producerID, b.producerEpoch, b.sequence
		t.Transactional = b.transactional()
		if b.sequence >= 0 {
			t.BaseSequence = record.AddSequence(b.sequence, int32(base-b.base))
		}
	}
	return t
}

// indexEntry is an entry of the index.
type indexEntry struct {
	base         int64
	next         int64
	maxTimestamp int64 // of all entries so far
	added        int64 // the data entries that all entries so far cover
	runs         []idRun
	batches      []indexBatch
}

// records is how many entries of the data it has, unless they were deleted.
func (e *indexEntry) records() (n int64) {
	for _, r := range e.runs {
		n += r.count
	}
	return n
}

// idFrom returns the id of the first record at or after an offset, and idBefore that of the
// last one before it; no if there is none in this entry.
func (e *indexEntry) idFrom(offset int64) (entryID, bool) {
	n := e.recordsBefore(offset)
	for _, r := range e.runs {
		if n < r.count {
			return entryID{r.first.ms, r.first.seq + uint64(n)}, true
		}
		n -= r.count
	}
	return entryID{}, false
}

func (e *indexEntry) idBefore(offset int64) (entryID, bool) {
	n := e.recordsBefore(offset)
	if n == 0 {
		return entryID{}, false
	}
	for _, r := range e.runs {
		if n <= r.count {
			return entryID{r.first.ms, r.first.seq + uint64(n-1)}, true
		}
		n -= r.count
	}
	return entryID{}, false
}

// recordsBefore is how many of its records are before an offset.
func (e *indexEntry) recordsBefore(offset int64) (n int64) {
	for i := range e.batches {
		b := &e.batches[i]
		if b.base >= offset {
			break
		}
		if !b.isControl() {
			n += min(b.count, offset-b.base)
		}
	}
	return n
}

// place is where a record is.
type place struct {
	offset int64
	batch  *indexBatch
}

// walker finds the places of ids that come in their order.
type walker struct {
	entries    []indexEntry
	run, batch int   // of the first entry
	n, m       int64 // how many records of it are before them
}

// at returns where the record with an id is; no if it is none of these entries.
func (w *walker) at(id entryID) (place, bool) {
	for ; len(w.entries) > 0; w.run, w.batch, w.n, w.m = 0, 0, 0, 0 {
		e := &w.entries[0]
		for ; w.run < len(e.runs); w.run++ {
			r := e.runs[w.run]
			if id.less(r.first) {
				return place{}, false
			}
			if !r.last().less(id) {
				return w.place(e, w.n+int64(id.seq-r.first.seq))
			}
			w.n += r.count
		}
		w.entries = w.entries[1:]
	}
	return place{}, false
}

// place returns where the n-th record of an entry is.
func (w *walker) place(e *indexEntry, n int64) (place, bool) {
	for ; w.batch < len(e.batches); w.batch++ {
		b := &e.batches[w.batch]
		if n < w.m+b.records() {
			return place{b.base + n - w.m, b}, true
		}
		w.m += b.records()
	}
	return place{}, false
}

// setNext gives an entry, and its batches, their offsets.
func (e *indexEntry) setNext(next int64) {
	e.next = next
	var count int64
	for i := range e.batches {
		count += e.batches[i].count
	}
	e.base = next - count
	at := e.base
	for i := range e.batches {
		e.batches[i].base = at
		at += e.batches[i].count
	}
}

// weight is about how much memory it takes.
func (e *indexEntry) weight() int {
	n := 100 + 32*len(e.runs) + 120*len(e.batches)
	for i := range e.batches {
		n += len(e.batches[i].control)
	}
	return n
}

// body writes what follows the line.
func (e *indexEntry) body() []byte {
	b := make([]byte, 0, 64+48*len(e.batches))
	b = binary.AppendUvarint(b, uint64(len(e.runs)))
	for _, r := range e.runs {
		text := r.first.String()
		b = binary.AppendUvarint(b, uint64(r.count))
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(len(e.batches)))
	for i := range e.batches {
		b = e.batches[i].append(b)
	}
	return b
}

func (b *indexBatch) append(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(b.count))
	out = append(out, b.flags)
	out = binary.AppendUvarint(out, uint64(b.leaderEpoch+1))
	out = binary.AppendVarint(out, b.baseTimestamp)
	out = binary.AppendVarint(out, b.maxTimestamp)
	out = binary.AppendUvarint(out, uint64(b.bytes))
	if b.flags&flagProducer != 0 {
		out = binary.AppendUvarint(out, uint64(b.producerID))
		out = binary.AppendVarint(out, int64(b.producerEpoch))
		out = binary.AppendVarint(out, int64(b.sequence))
	}
	if b.isControl() {
		out = binary.AppendUvarint(out, uint64(len(b.control)))
		out = append(out, b.control...)
	}
	return out
}

// indexReader reads a body. After an error it reads zeros.
type indexReader struct {
	b   []byte
	bad bool
}

func (r *indexReader) uvarint(most uint64) uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > most {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *indexReader) varint() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[size:]
	return n
}

func (r *indexReader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.b, r.bad = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// maxOffsets bounds how many offsets an entry has, so that their sum is a number.
const maxOffsets = 1 << 40

// decodeIndex reads an entry of the index.
func decodeIndex(m *rueidis.RedisMessage) (e indexEntry, err error) {
	id, fields, err := entryParts(m)
	if err != nil {
		return e, err
	}
	text := ""
	if len(fields) == 2 {
		text, _ = fields[1].ToString()
	}
	return parseIndex(id, text)
}

func parseIndex(id entryID, text string) (e indexEntry, err error) {
	bad := fmt.Errorf("%w: entry %s of the index", store.ErrCorrupt, id)
	head, body, ok := strings.Cut(text, "\n")
	words := strings.Fields(head)
	if !ok || len(words) != 3 || id.seq != 0 || id.ms > maxTimestamp {
		return e, bad
	}
	if e.maxTimestamp, err = strconv.ParseInt(words[0], 10, 64); err != nil {
		return e, bad
	}
	if e.added, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return e, bad
	}
	r := indexReader{b: []byte(body)}
	for range r.uvarint(uint64(len(body))) {
		run := idRun{count: int64(r.uvarint(maxOffsets))}
		if run.first, err = parseID(string(r.bytes(r.uvarint(idLength * 2)))); err != nil || run.count == 0 || run.last().seq < run.first.seq {
			return e, bad
		}
		e.runs = append(e.runs, run)
	}
	var count, records int64
	for range r.uvarint(uint64(len(body))) {
		b := r.batch()
		count += b.count
		records += b.records()
		if r.bad || count > maxOffsets {
			return e, bad
		}
		e.batches = append(e.batches, b)
	}
	if r.bad || len(r.b) > 0 || count == 0 || records != e.records() || int64(id.ms) < count {
		return e, bad
	}
	e.setNext(int64(id.ms))
	return e, nil
}

func (r *indexReader) batch() (b indexBatch) {
	b.count = int64(r.uvarint(1 << 31))
	if flags := r.bytes(1); len(flags) == 1 {
		b.flags = flags[0]
	}
	b.leaderEpoch = int32(int64(r.uvarint(1<<31)) - 1)
	b.baseTimestamp, b.maxTimestamp = r.varint(), r.varint()
	b.bytes = int64(r.uvarint(maxOffsets))
	b.producerID, b.producerEpoch, b.sequence = record.NoProducerID, -1, -1
	if b.flags&flagProducer != 0 {
		b.producerID = int64(r.uvarint(1<<63 - 1))
		b.producerEpoch, b.sequence = int16(r.varint()), int32(r.varint())
	}
	if b.isControl() {
		b.control = slices.Clone(r.bytes(r.uvarint(uint64(len(r.b)))))
		if err := checkHeader(b.control); err != nil || int64(b.control.LastOffsetDelta())+1 != b.count {
			r.bad = true
		}
	}
	if b.count == 0 {
		r.bad = true
	}
	return b
}
