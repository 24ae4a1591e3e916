package disk

import (
	"errors"
	"syscall"

	"muster/internal/record"
	"muster/internal/store"
)

// cover is the producer state as of an offset, taken from batches that are about
// to go. Without it a start after a crash would not know who sent them: a live
// producer's next batch would be refused, or a retry stored twice.
type cover struct {
	next      int64
	producers []store.Producer
	aborted   []store.Aborted // by markers among those batches
}

// coverBelow returns the producer state that must be saved before what lies
// below an offset may go; nil if that is known already. The headers of a large
// log take a while to read, so that appends go on meanwhile: maintain is held,
// which keeps the segments, and appendMu is not.
func (l *log) coverBelow(next int64) (*cover, error) {
	covered, list, from, err := l.coveredSoFar(next)
	switch {
	case err != nil || covered >= next:
		return nil, err
	case from >= next:
		// A stop may have left that snapshot without a sync.
		return &cover{next: from, producers: list}, nil
	}
	c := &cover{next: next}
	producers := store.NewProducerMap(list)
	for _, v := range l.views() {
		if v.next <= max(from, covered) || v.seg.base >= next {
			continue
		}
		if err := l.noteProducers(v, max(from, covered), c, producers); err != nil {
			return nil, err
		}
	}
	c.producers = producers.List()
	return c, nil
}

// coveredSoFar returns up to where producers are known, and if that is below an
// offset, the last snapshot and its own.
func (l *log) coveredSoFar(next int64) (covered int64, list []store.Producer, from int64, err error) {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.covered < next {
		list, from, err = l.lastSnapshot()
	}
	return l.covered, list, from, err
}

// views returns all segments as a reader sees them.
func (l *log) views() (out []view) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.segments {
		out = append(out, s.view())
	}
	return out
}

// noteProducers takes the batches of a segment, from an offset on, that begin
// below that of a cover into the producer state. The cover then reaches to where
// the last of them ends.
func (l *log) noteProducers(v view, from int64, c *cover, into store.ProducerMap) error {
	f, err := l.acquire(v.seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	index, err := l.entries(f, v)
	if err != nil {
		return err
	}
	pos, err := locate(f, v, index, from)
	if err != nil {
		return err
	}
	return eachHeader(f, pos, v.size, func(pos int64, h record.Batch) error {
		if l.halting.Load() > 0 {
			return store.ErrClosed
		}
		if h.BaseOffset() >= c.next {
			return errStop
		}
		if h.Control() {
			// What a marker says is not in its header.
			if h, err = readBatch(f, pos, h); err != nil {
				return err
			}
		}
		aborted, err := into.Note(h, h.MaxTimestamp())
		if aborted != nil {
			c.aborted = append(c.aborted, *aborted)
		}
		c.next = max(c.next, h.LastOffset()+1)
		return err
	})
}

// save writes the snapshot, unless there is nothing to know. Whoever appended a
// marker may be about to tell of it, which is too late once it is covered.
// appendMu is held.
func (l *log) save(c *cover) error {
	if c == nil {
		return nil
	}
	if err := l.addAborted(c.aborted); err != nil {
		return err
	}
	if len(c.producers) > 0 {
		return l.writeSnapshot(c.producers, c.next)
	}
	l.covered = max(l.covered, c.next)
	return nil
}

// dropCovered removes the first n segments once the producers in them are saved.
// On a full disk there is no room for that until they are gone. appendMu is held.
func (l *log) dropCovered(n int, c *cover) error {
	err := l.save(c)
	full := errors.Is(err, syscall.ENOSPC)
	if err != nil && !full {
		return l.storageError("save producers", err)
	}
	if err := l.dropFirst(n); err != nil || !full {
		return err
	}
	if err := l.save(c); err != nil {
		return l.storageError("save producers", err)
	}
	return nil
}
