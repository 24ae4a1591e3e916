package redis

import (
	"errors"
	"fmt"
	"math/bits"

	"muster/internal/buffer"
	"muster/internal/record"
	"muster/internal/store"
)

var (
	errNotForStreams = errors.New("the stream layout has no place for transactions: use muster.redis.layout=indexed")
	errNoRecords     = errors.New("no records")
	errOffsetDeltas  = errors.New("offset deltas with gaps")
	// errMore says that an append needs more memory than it has.
	errMore = errors.New("more memory")
)

// usualWords is how many words a record has that has no headers.
const usualWords = 6

// growth is how much more memory an append asks for if it was not enough.
const growth = 4

// split makes an entry of each record. It says no if there is not enough memory for that
// now, and may not wait; why it failed is in p.err otherwise.
func (l *log) split(p *pending, wait bool) bool {
	for need := min(p.estimate(), maxEntries); ; need = min(need*growth, maxEntries) {
		if wait {
			l.store.memory.wait(need)
		} else if !l.store.memory.try(need) {
			return false
		}
		p.memory = need
		err := p.encode(need, l.store.memory)
		if err == nil {
			err = l.checkSize(p.longest)
		}
		if err == nil {
			return true
		}
		l.drop(p)
		switch {
		case errors.Is(err, store.ErrInvalidBatch):
			p.err = err
			return true
		case !errors.Is(err, errMore):
			p.err = fmt.Errorf("%w: %w", store.ErrInvalidBatch, err)
			return true
		case need == maxEntries:
			p.err = fmt.Errorf("%w: its records unpack to more than %d MB, or to more entries than fit in %d MB", store.ErrTooLarge, maxUnpacked>>20, maxEntries>>20)
			return true
		}
	}
}

// drop gives back what an append holds.
func (l *log) drop(p *pending) {
	if p.memory > 0 {
		l.store.memory.give(p.memory, p.unpacked)
		p.words, p.ends, p.unpacked, p.memory = nil, nil, nil, 0
	}
}

// estimate is how much memory the entries of a batch most likely take.
func (p *pending) estimate() int64 {
	n := int64(p.batch.Count()) * (recordMemory + usualWords*wordMemory)
	if p.batch.Codec() != record.None {
		n += 2*growth*int64(len(p.batch)) + buffer.Least
	}
	return n
}

// encode makes an entry of each record, with no more memory than is given.
func (p *pending) encode(limit int64, m *memory) error {
	count := int64(p.batch.Count())
	if limit -= count * recordMemory; limit < 0 {
		return errMore
	}
	room := int64(0)
	if p.batch.Codec() != record.None {
		room = min(limit-count*usualWords*wordMemory, maxUnpacked)
		if room < buffer.Least {
			return errMore
		}
		if room <= buffer.Most {
			room = 1 << (bits.Len64(uint64(room)) - 1) // Others would be rounded up.
		}
		p.unpacked = m.buffer(int(room))
	}
	src, err := p.batch.Unpack(p.unpacked[:0:room]) // A used buffer may be larger.
	if errors.Is(err, record.ErrTooLarge) {
		return errMore
	}
	if err != nil {
		return err
	}
	limit -= room
	p.bytes, p.largest, p.longest, p.latest = 0, 0, 0, record.NoTimestamp
	c := encoder{words: make([]string, 0, min(usualWords*count, limit/wordMemory))}
	p.ends = make([]int, 0, count)
	if p.deltas != nil {
		p.deltas = make([]int32, 0, count)
	}
	err = p.batch.EachIn(src, func(r *record.Record) error {
		if p.deltas != nil {
			p.deltas = append(p.deltas, r.OffsetDelta)
		} else if int(r.OffsetDelta) != len(p.ends) {
			return errOffsetDeltas
		}
		if int64(len(c.words)+usualWords+2*len(r.Headers))*wordMemory > limit {
			return errMore
		}
		size, longest := c.add(r).size()
		p.bytes += size
		p.largest, p.longest = max(p.largest, size), max(p.longest, longest)
		p.ends = append(p.ends, len(c.words))
		p.latest = max(p.latest, r.Timestamp)
		return nil
	})
	p.words = c.words
	if err == nil && p.deltas == nil && int(p.batch.LastOffsetDelta()) != len(p.ends)-1 {
		return errOffsetDeltas
	}
	return err
}
