package disk

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"muster/internal/record"
	"muster/internal/store"
)

// deleted stands for the value of a tombstone.
const deleted = "(deleted)"

// logged is a record at its place in a log.
type logged struct {
	offset     int64
	epoch      int32
	time       int64
	key, value string
}

// track is a log of the workload, with what is known about it.
type track struct {
	tp    store.TopicPartition
	log   store.Log
	epoch int32
	end   int64

	// certain holds the records whose append was acknowledged, maybe those that
	// were attempted, by offset.
	certain []logged
	maybe   map[int64][]logged
	// Everything below durableEnd was flushed.
	durableEnd int64
	// The log start is startAcked or later, by an acknowledged trim or
	// retention, and startTried or earlier.
	startAcked, startTried int64
	// A compaction up to compactTo is under way, the n-th of all.
	compactTo int64
	passes    int
	// deleting says that the log is being deleted.
	deleting bool

	saved      map[int64][][]store.Producer
	savedAcked int64
}

func newTrack(tp store.TopicPartition) *track {
	return &track{tp: tp, maybe: map[int64][]logged{}, saved: map[int64][][]store.Producer{}}
}

// readContent reads a whole log, batch by batch.
func readContent(l store.Log) ([]logged, error) {
	var out []logged
	start, end := l.Bounds()
	for at := start; at < end; {
		r, err := l.Read(context.Background(), store.ReadRequest{Offset: at, NextOffset: end, MaxBytes: 500, MinOne: true})
		if err != nil {
			return nil, fmt.Errorf("read at %d: %w", at, err)
		}
		b, err := r.Load()
		r.Release()
		if err != nil {
			return nil, fmt.Errorf("load at %d: %w", at, err)
		}
		if len(b) == 0 {
			return out, nil
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, fmt.Errorf("batch at %d: %w", at, err)
			}
			if err := batch.Check(); err != nil {
				return nil, fmt.Errorf("batch at %d: %w", at, err)
			}
			err := batch.Each(func(r *record.Record) error {
				n := logged{offset: r.Offset, epoch: batch.LeaderEpoch(), time: r.Timestamp, key: string(r.Key), value: string(r.Value)}
				if r.Tombstone() {
					n.value = deleted
				}
				if n.offset >= start {
					out = append(out, n)
				}
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("batch at %d: %w", at, err)
			}
			if batch.LastOffset() < at {
				return nil, fmt.Errorf("batch ends at %d, read at %d", batch.LastOffset(), at)
			}
			at = batch.LastOffset() + 1
		}
	}
	return out, nil
}

// verify reads the log and holds it against what was promised; everything below
// must is to be there.
func (tr *track) verify(must int64) ([]logged, error) {
	content, err := readContent(tr.log)
	if err != nil {
		return nil, err
	}
	if err := tr.check(content, must); err != nil {
		return nil, err
	}
	return content, tr.checkProducers()
}

// check demands that nothing in the log is invented, nothing promised is lost,
// and that the log has no hole.
func (tr *track) check(content []logged, must int64) error {
	start, end := tr.log.Bounds()
	if tr.deleting && len(content) == 0 && start == 0 && end == 0 {
		return nil
	}
	if start < tr.startAcked || start > tr.startTried {
		return fmt.Errorf("log starts at %d, not between %d and %d", start, tr.startAcked, tr.startTried)
	}
	if end < must {
		return fmt.Errorf("log ends at %d, but was promised up to %d", end, must)
	}
	have := map[int64]bool{}
	last := start - 1
	for _, n := range content {
		if !slices.Contains(tr.maybe[n.offset], n) {
			return fmt.Errorf("%+v was never appended", n)
		}
		if n.offset <= last || n.offset >= end {
			return fmt.Errorf("%+v comes after %d in a log that ends at %d", n, last, end)
		}
		have[n.offset], last = true, n.offset
	}
	for _, n := range tr.certain {
		if n.offset < start || have[n.offset] || tr.droppable(n, content) {
			continue
		}
		if n.offset < must {
			return fmt.Errorf("%+v is lost", n)
		}
		if last > n.offset {
			return fmt.Errorf("%+v is lost, but the log goes on until %d", n, last)
		}
	}
	return nil
}

// droppable says whether compaction may have dropped a record: a newer one of
// its key is there, or a newer tombstone was and could go by its second pass.
func (tr *track) droppable(n logged, content []logged) bool {
	if n.offset >= tr.compactTo {
		return false
	}
	if n.value == deleted && tr.passes > 1 {
		return true
	}
	newer := func(m logged) bool { return m.key == n.key && m.offset > n.offset }
	return slices.ContainsFunc(content, newer) || tr.passes > 1 && slices.ContainsFunc(tr.certain, func(m logged) bool {
		return newer(m) && m.value == deleted && m.offset < tr.compactTo
	})
}

// checkProducers demands that the producer state is one that was saved, no
// older than the last one acknowledged and no newer than the log.
func (tr *track) checkProducers() error {
	got, from, err := tr.log.Producers(context.Background())
	if err != nil {
		return err
	}
	start, end := tr.log.Bounds()
	if from < start || from > end {
		return fmt.Errorf("producers as of %d in a log from %d to %d", from, start, end)
	}
	if tr.deleting {
		return nil
	}
	if tr.savedAcked <= end && from < tr.savedAcked {
		return fmt.Errorf("producers as of %d, but they were saved as of %d", from, tr.savedAcked)
	}
	known := len(got) == 0 && from == start
	for at, saved := range tr.saved {
		for _, ps := range saved {
			known = known || max(at, start) == from && (reflect.DeepEqual(ps, got) || len(ps)+len(got) == 0)
		}
	}
	if !known {
		return fmt.Errorf("producers %+v as of %d were never saved", got, from)
	}
	return nil
}

// adopt takes what the log holds now for the truth, after a recovery.
func (tr *track) adopt(content []logged) {
	start, end := tr.log.Bounds()
	tr.certain, tr.maybe = content, map[int64][]logged{}
	for _, n := range content {
		tr.maybe[n.offset] = []logged{n}
	}
	tr.end, tr.durableEnd, tr.startAcked, tr.startTried = end, end, start, start
	tr.compactTo, tr.deleting = 0, false
	for at := range tr.saved {
		if at > end {
			delete(tr.saved, at)
		}
	}
	if tr.savedAcked > end {
		tr.savedAcked = 0
	}
}

// checkSearch demands that searches by timestamp agree with the content.
func (tr *track) checkSearch(content []logged) error {
	for i, n := range content {
		if i%3 != 0 {
			continue
		}
		want := slices.IndexFunc(content, func(m logged) bool { return m.time >= n.time })
		hit, ok, err := tr.log.OffsetForTimestamp(context.Background(), n.time)
		if err != nil || !ok || hit.Offset != content[want].offset {
			return fmt.Errorf("timestamp %d: found %+v %v (%w), want %+v", n.time, hit, ok, err, content[want])
		}
	}
	_, _, err := tr.log.MaxTimestamp(context.Background())
	return err
}

// clone copies what is known, for a try that changes it.
func (tr *track) clone() *track {
	c := *tr
	c.certain, c.maybe, c.saved = slices.Clone(tr.certain), maps.Clone(tr.maybe), maps.Clone(tr.saved)
	return &c
}
