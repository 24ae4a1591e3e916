package disk

import (
	"context"
	"fmt"
	"maps"
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

	// producers is what a partition knows of them. The batches that they
	// appended are in acked, and with those that were attempted in attempted.
	producers  store.ProducerMap
	attempted  map[produced]bool
	acked      []produced
	savedAcked int64
}

// produced is a batch of a producer at its place in a log.
type produced struct {
	id         int64
	sequence   int32
	base, last int64
}

func newTrack(tp store.TopicPartition) *track {
	return &track{tp: tp, maybe: map[int64][]logged{}, attempted: map[produced]bool{}}
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
	return content, tr.checkProducers(must)
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

// completeProducers loads the producer state as a partition does: what the log
// keeps, completed by the batches after that. It returns where those begin.
func completeProducers(l store.Log) (store.ProducerMap, int64, error) {
	list, from, err := l.Producers(context.Background())
	if err != nil {
		return nil, 0, err
	}
	producers := store.NewProducerMap(list)
	var aborted []store.Aborted
	_, end := l.Bounds()
	for at := from; at < end; {
		r, err := l.Read(context.Background(), store.ReadRequest{Offset: at, NextOffset: end, MaxBytes: 500, MinOne: true})
		if err != nil {
			return nil, 0, fmt.Errorf("read at %d: %w", at, err)
		}
		b, err := r.Load()
		r.Release()
		if err != nil {
			return nil, 0, err
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, 0, err
			}
			entry, err := producers.Note(batch, batch.MaxTimestamp())
			if err != nil {
				return nil, 0, err
			}
			if entry != nil {
				aborted = append(aborted, *entry)
			}
			at = batch.LastOffset() + 1
		}
	}
	return producers, from, l.NoteAborted(context.Background(), aborted)
}

// checkProducers demands that no producer is forgotten that appended something
// below must, whether that is still there or not, that no batch was remembered
// that was not sent, and that the state is no older than what was saved.
func (tr *track) checkProducers(must int64) error {
	got, from, err := completeProducers(tr.log)
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
	for _, p := range got {
		for _, x := range p.Batches {
			if !tr.attempted[produced{p.ID, x.BaseSequence, x.BaseOffset, x.LastOffset}] {
				return fmt.Errorf("producer %d is known for %+v, which was never appended", p.ID, x)
			}
		}
	}
	for _, a := range tr.acked {
		if a.id < 0 || a.last >= must {
			continue
		}
		if p := got[a.id]; p == nil || p.Batches[len(p.Batches)-1].BaseOffset < a.base {
			return fmt.Errorf("%+v is forgotten, known is %+v", a, p)
		}
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
	tr.acked = slices.DeleteFunc(slices.Clone(tr.acked), func(a produced) bool { return a.last >= end })
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
	c.certain, c.maybe, c.attempted = slices.Clone(tr.certain), maps.Clone(tr.maybe), maps.Clone(tr.attempted)
	return &c
}
