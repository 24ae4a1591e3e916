package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/internal/record"
	"muster/internal/store"
)

// readRecord is a record, or a marker, that a reader got.
type readRecord struct {
	record.Record
	batch record.Batch
}

// readFrom reads from an offset up to another, so many bytes at a time.
func (w *indexModel) readFrom(at, next int64, bytes int) map[int64]readRecord {
	out := map[int64]readRecord{}
	for last := at - 1; at < next; {
		r, err := w.leader.Read(w.ctx, store.ReadRequest{Offset: at, NextOffset: next, MaxBytes: bytes, MinOne: true})
		must(w.T, err)
		if r.Len == 0 {
			w.Fatalf("there is nothing at %d, below %d", at, next)
		}
		n := 0
		for rest := r.Bytes; len(rest) > 0; n++ {
			batch, more, err := record.Next(rest)
			must(w.T, err)
			must(w.T, batch.Check())
			if n > 0 && len(r.Bytes) > max(bytes, 61) {
				w.Fatalf("%d bytes, and %d were asked for", len(r.Bytes), bytes)
			}
			must(w.T, batch.Each(func(r *record.Record) error {
				if r.Offset <= last || r.Offset >= next {
					w.Fatalf("offset %d after %d, below %d", r.Offset, last, next)
				}
				last = r.Offset
				c := *r
				c.Key, c.Value = slices.Clone(r.Key), slices.Clone(r.Value)
				out[last] = readRecord{c, batch[:61:61]}
				return nil
			}))
			if batch.LastOffset() < at {
				w.Fatalf("a batch ends at %d, and was asked for at %d", batch.LastOffset(), at)
			}
			rest, at = more, batch.LastOffset()+1
		}
	}
	return out
}

// reconcile finds out what the model could not know: what of Redis clients was adopted when, and
// which appends without an answer were stored.
func (w *indexModel) reconcile(sent []*sentBatch) {
	w.mu.Lock()
	w.meddle = 0 // From here on no one is in the way.
	w.mu.Unlock()
	if w.leader.(indexLog).failure() != nil {
		w.takeOver(false)
	}
	end := w.refresh(w.leader)
	if _, also := w.leader.Bounds(); also != end {
		w.Errorf("it ends at %d, and at %d", end, also)
	}
	got := w.readFrom(w.end(), end, 64<<10)
	for w.end() < end && !w.Failed() {
		o := w.end()
		one, ok := got[o]
		if !ok {
			w.Errorf("there is no %d; the log ends at %d", o, end)
			return
		}
		if len(w.pending) > 0 && w.pending[0].value == string(one.Value) {
			w.spots, w.pending = append(w.spots, w.pending[0]), w.pending[1:]
			continue
		}
		for len(sent) > 0 && !sent[0].is(&one) && sent[0].err != nil {
			sent = sent[1:]
		}
		if len(sent) == 0 || !sent[0].is(&one) {
			w.Errorf("at %d is %q, producer %d, control %v, which is not next", o, one.Value, one.batch.ProducerID(), one.batch.Control())
			return
		}
		w.stored(sent[0], o)
		sent = sent[1:]
	}
	for _, s := range sent {
		if s.err == nil {
			w.Errorf("%d records were acknowledged at %d, and are not there", len(s.recs), s.base)
		}
	}
	if len(w.pending) > 0 {
		w.Errorf("%d entries of Redis clients are not there, the first is %+v", len(w.pending), w.pending[0])
	}
}

// is says whether a batch begins with what was seen.
func (s *sentBatch) is(x *readRecord) bool {
	if s.marker != nil {
		m, _, err := s.batch.Marker()
		return err == nil && x.batch.Control() && x.batch.ProducerID() == s.batch.ProducerID() && x.batch.ProducerEpoch() == s.batch.ProducerEpoch() && m == *s.marker
	}
	return string(x.Value) == string(s.recs[0].Value)
}

// stored takes a batch into the model.
func (w *indexModel) stored(s *sentBatch, at int64) {
	if s.err == nil && s.base != at {
		w.Errorf("%d records were acknowledged at %d, and are at %d", len(s.recs), s.base, at)
	}
	if errors.Is(s.err, store.ErrFenced) || errors.Is(s.err, store.ErrClosed) {
		w.Errorf("records at %d were refused: %v", at, s.err)
	}
	s.base = at
	s.batch.SetBaseOffset(at)
	if s.marker != nil {
		w.spots = append(w.spots, spot{of: s, timestamp: s.batch.MaxTimestamp(), present: true})
	}
	for i := range s.recs {
		r := &s.recs[i]
		w.spots = append(w.spots, spot{of: s, key: string(r.Key), value: string(r.Value), timestamp: r.Timestamp, present: true})
	}
	a, err := w.producers.Note(s.batch, s.batch.MaxTimestamp())
	must(w.T, err)
	if a == nil {
		return
	}
	w.aborted = append(w.aborted, *a)
	for o := a.FirstOffset; o < at; o++ {
		x := &w.spots[o]
		if x.of != nil && x.of.marker == nil && x.of.batch.Transactional() && x.of.batch.ProducerID() == a.ProducerID {
			x.aborted = true
		}
	}
}

// ids lists the ids of the data.
func (w *indexModel) ids() (out []string) {
	entries, err := w.client.Do(w.ctx, w.client.B().Xrange().Key(w.keys().stream).Start("-").End("+").Build()).AsXRange()
	must(w.T, err)
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

// compare looks at the log in all ways.
func (w *indexModel) compare() {
	w.wantSound()
	ids, there := w.ids(), w.present(w.start, w.end())
	if len(ids) != len(there) {
		for _, id := range ids {
			at, _, _ := OffsetAfter(w.ctx, w.client, w.prefix, w.at, id)
			if _, ok := slices.BinarySearch(there, at-1); !ok {
				w.Logf("%s is before %d", id, at)
			}
		}
		w.Fatalf("%d entries are in the data, not %d, from %d to %d", len(ids), len(there), w.start, w.end())
	}
	w.compareRead(w.start, w.end(), 64<<10)
	from := w.start + w.rng.Int64N(w.end()-w.start+1)
	w.compareRead(from, from+w.rng.Int64N(w.end()-from+1), []int{1, 100, 300, 2000, 20000}[w.rng.IntN(5)])
	w.compareProducers()
	w.compareTimes()
	w.comparePlaces(ids, there)
	l := w.leader.(indexLog)
	top, state, err := parseIndexState(w.do("HGET", w.keys().meta, "s"))
	if must(w.T, err); top != l.tail.top || state != (indexState{l.tail.added, l.tail.maxTimestamp, l.Size()}) {
		w.Fatalf("the state is %s, %+v; the leader has %+v", top, state, l.tail)
	}
}

func (w *indexModel) compareRead(from, next int64, bytes int) {
	got := w.readFrom(from, next, bytes)
	for o := from; o < next; o++ {
		s := &w.spots[o]
		x, ok := got[o]
		if ok != s.present && !(s.marker() && s.optional) {
			w.Fatalf("the read from %d to %d has %d: %v", from, next, o, ok)
		}
		if !ok {
			continue
		}
		if s.of == nil || !s.of.batch.Transactional() {
			if x.batch.Transactional() || x.batch.Control() {
				w.Fatalf("%d is of a transaction", o)
			}
		} else if !x.batch.Transactional() || x.batch.ProducerID() != s.of.batch.ProducerID() || x.batch.ProducerEpoch() != s.of.batch.ProducerEpoch() {
			w.Fatalf("%d is of producer %d, epoch %d", o, x.batch.ProducerID(), x.batch.ProducerEpoch())
		} else if !s.marker() && x.batch.BaseSequence() != s.of.batch.BaseSequence()+int32(x.batch.BaseOffset()-s.of.base) {
			w.Fatalf("the batch of %d has base sequence %d", o, x.batch.BaseSequence())
		}
		if x.batch.Control() != s.marker() || !s.marker() && (string(x.Value) != s.value || string(x.Key) != s.key) || x.Timestamp != s.timestamp {
			w.Fatalf("%d is %q, not %+v", o, x.Value, s)
		}
	}
}

func (w *indexModel) compareProducers() {
	l := w.leader
	got, next, err := l.Producers(w.ctx)
	must(w.T, err)
	if want := w.producers.List(); fmt.Sprint(got) != fmt.Sprint(want) || next != w.end() {
		w.Fatalf("the producers are\n%+v, not\n%+v, as of %d", got, want, next)
	}
	aborted, err := l.Aborted(w.ctx, w.start, w.end())
	must(w.T, err)
	for _, a := range aborted {
		if !slices.Contains(w.aborted, a) {
			w.Fatalf("%+v was not aborted", a)
		}
	}
	for _, a := range w.aborted {
		if a.LastOffset >= w.start && !w.spots[a.LastOffset].optional && !slices.Contains(aborted, a) {
			w.Fatalf("%+v was aborted, and only these are known: %+v", a, aborted)
		}
	}
}

func (w *indexModel) compareTimes() {
	var largest int64 = -1
	ts, at := int64(w.rng.IntN(1100)), int64(-1)
	for o := w.start; o < w.end(); o++ {
		s := &w.spots[o]
		if s.marker() && s.optional {
			return // It depends on whether it is there.
		}
		if !s.present {
			continue
		}
		if largest = max(largest, s.timestamp); at < 0 && s.timestamp >= ts {
			at = o
		}
	}
	hit, found, err := w.leader.OffsetForTimestamp(w.ctx, ts)
	must(w.T, err)
	if found != (at >= 0) || found && (hit.Offset != at || hit.Timestamp != w.spots[at].timestamp) {
		w.Fatalf("the first with timestamp %d is at %+v, %v, not at %d", ts, hit, found, at)
	}
	hit, found, err = w.leader.MaxTimestamp(w.ctx)
	must(w.T, err)
	if found != (largest >= 0) || found && (hit.Timestamp != largest || w.spots[hit.Offset].timestamp != largest || !w.spots[hit.Offset].present) {
		w.Fatalf("the largest timestamp is %+v, %v, not %d", hit, found, largest)
	}
}

// comparePlaces looks where native groups stand.
func (w *indexModel) comparePlaces(ids []string, there []int64) {
	o := w.start + w.rng.Int64N(w.end()-w.start+1)
	stand, err := StandingsBefore(w.ctx, w.client, w.prefix, []Place{{TopicPartition: w.at, Offset: o}})
	must(w.T, err)
	id, err := parseID(stand[0].ID)
	must(w.T, err)
	for i, text := range ids {
		if other, _ := parseID(text); other.less(id) || other == id {
			if there[i] >= o {
				w.Fatalf("who has read up to %d stands at %s, after %d", o, id, there[i])
			}
		} else if there[i] < o {
			w.Fatalf("who has read up to %d stands at %s, before %d", o, id, there[i])
		}
	}
	var least, most int64 // Where compaction has removed entries of the index, it is known up to those.
	for i := range w.spots {
		if !w.spots[i].marker() {
			if int64(i) < o {
				least++
			}
			if k, _ := slices.BinarySearch(there, o); k == len(there) || int64(i) < there[k] {
				most++
			}
		}
	}
	if stand[0].Read < least || stand[0].Read > most {
		w.Fatalf("who has read up to %d has read %d entries, not %d to %d", o, stand[0].Read, least, most)
	}
	if len(ids) == 0 {
		return
	}
	i := w.rng.IntN(len(ids))
	after, ok, err := OffsetAfter(w.ctx, w.client, w.prefix, w.at, ids[i])
	must(w.T, err)
	next := w.end()
	if i+1 < len(there) {
		next = there[i+1]
	}
	if !ok || after <= there[i] || after > next {
		w.Fatalf("who stands at %s, which is %d, has read up to %d, %v; the next is %d\n%s", ids[i], there[i], after, ok, next, strings.Join(ids, " "))
	}
}
