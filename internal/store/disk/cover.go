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
}

// coverBelow returns the producer state that must be saved before what lies
// below an offset may go. Nil says that none must. appendMu is held.
func (l *log) coverBelow(next int64) (*cover, error) {
	if l.covered >= next {
		return nil, nil
	}
	list, from, err := l.lastSnapshot()
	if err != nil {
		return nil, err
	}
	if from >= next {
		l.covered = from
		return nil, nil
	}
	to := next
	producers := store.NewProducerMap(list)
	for _, seg := range l.segments {
		if seg.sum.next <= from || seg.base >= next {
			continue
		}
		end, err := l.noteProducers(seg, from, next, producers)
		if err != nil {
			return nil, err
		}
		to = max(to, end)
	}
	if len(producers) == 0 {
		l.covered = to
		return nil, nil
	}
	return &cover{next: to, producers: producers.List()}, nil
}

// noteProducers takes the batches of a segment from an offset on that begin
// below another into the producer state. It returns where the last of them ends.
func (l *log) noteProducers(seg *segment, from, next int64, into store.ProducerMap) (end int64, err error) {
	f, err := l.acquire(seg)
	if err != nil {
		return 0, err
	}
	defer l.release(f)
	v := seg.view()
	index, err := l.entries(f, v)
	if err != nil {
		return 0, err
	}
	pos, err := locate(f, v, index, from)
	if err != nil {
		return 0, err
	}
	err = eachHeader(f, pos, v.size, func(_ int64, h record.Batch) error {
		if h.BaseOffset() >= next {
			return errStop
		}
		into.Note(h, h.MaxTimestamp())
		end = h.LastOffset() + 1
		return nil
	})
	return end, err
}

// save writes the snapshot. appendMu is held.
func (l *log) save(c *cover) error {
	if c == nil {
		return nil
	}
	return l.writeSnapshot(c.producers, c.next)
}

// coverProducers saves the producer state that must be known before what lies
// below an offset may go. appendMu is held.
func (l *log) coverProducers(next int64) error {
	c, err := l.coverBelow(next)
	if err != nil {
		return err
	}
	return l.save(c)
}

// dropCovered removes the first n segments once the producers in them are saved.
// On a full disk there is no room for that until they are gone.
func (l *log) dropCovered(n int) error {
	if n == 0 {
		return nil
	}
	c, err := l.coverBelow(l.segments[n].base)
	if err == nil {
		err = l.save(c)
	}
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
