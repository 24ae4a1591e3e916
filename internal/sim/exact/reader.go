package exact

import (
	"bytes"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/sim/seeds"
	"muster/internal/store"
)

// reader reads a partition of the output, or of the side topic, from its start. Of
// the output it gets every record once; where log start has moved past it, it goes
// on there.
// One of committed records leaves out what the leader says was aborted, as the
// plainest of clients do: it takes the list in the order in which it came.
type reader struct {
	w         *world
	tp        store.TopicPartition
	committed bool
	offset    int64
	aborted   map[int64]bool
	ahead     []store.Aborted
	got       []seen
	life      int // how often it began anew
}

// seen is a record that a reader was given.
type seen struct {
	offset     int64
	key, value string
}

// read reads on, for ever.
func (r *reader) read() {
	w, tp, life := r.w, r.tp, r.life
	f := fetch{tp, partition.Fetch{Offset: r.offset, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 50 + w.Rand.IntN(1000), MinOne: true, Committed: r.committed}}
	w.send(message{from: "reader", to: leaderOf(w.someImage(), tp), body: f, timeout: time.Second, ordered: true}, func(answer any) {
		pause := w.Between(10*time.Millisecond, time.Second)
		if got, ok := answer.(fetched); r.life != life {
			// The log has lost its end since, and is read anew.
		} else if ok && got.Err == nil {
			r.take(got)
			if len(got.bytes) > 0 {
				pause /= 10
			}
		} else if ok {
			r.reset(got)
		}
		if !w.over {
			w.After(pause, r.read)
		}
	})
}

// reset goes on at the start of a log that does not have what the reader wants.
func (r *reader) reset(f fetched) {
	if f.Err != kerr.OffsetOutOfRange {
		return
	}
	if r.tp.Topic != sideTopic {
		r.w.Violated("%v: offset %d is out of range", r.tp, r.offset)
	}
	r.w.Count("reader begins anew")
	r.offset = max(f.LogStartOffset, 0)
}

// batches splits what a leader returns.
func batches(b []byte) (out []record.Batch) {
	for len(b) > 0 {
		batch, rest, err := record.Next(b)
		if err != nil {
			panic(seeds.Violation{Text: "a fetched batch cannot be read: " + err.Error()})
		}
		out, b = append(out, batch), rest
	}
	return out
}

func (r *reader) take(f fetched) {
	r.aborted, r.ahead = map[int64]bool{}, f.Aborted
	for _, b := range batches(f.bytes) {
		if b.LastOffset() < r.offset {
			continue
		}
		for len(r.ahead) > 0 && r.ahead[0].FirstOffset <= b.LastOffset() {
			r.aborted[r.ahead[0].ProducerID] = true
			r.ahead = r.ahead[1:]
		}
		switch {
		case b.Control():
			if m, ok, _ := b.Marker(); ok && !m.Commit {
				delete(r.aborted, b.ProducerID())
			}
		case b.Transactional() && r.aborted[b.ProducerID()]:
			r.w.Count("aborted batch left out")
		default:
			r.records(b)
		}
		r.offset = b.LastOffset() + 1
	}
}

// records takes the records of a batch.
func (r *reader) records(b record.Batch) {
	err := b.Each(func(rec *record.Record) error {
		if rec.Offset < r.offset {
			return nil
		}
		s := seen{rec.Offset, string(bytes.Clone(rec.Key)), string(bytes.Clone(rec.Value))}
		r.got = append(r.got, s)
		if r.committed {
			r.check(s)
		}
		return nil
	})
	if err != nil {
		r.w.Violated("a fetched batch cannot be read: %v", err)
	}
}

// check: a committed record is of a transaction that its client wanted committed,
// and was not told that it was aborted.
func (r *reader) check(s seen) {
	n, err := strconv.Atoi(s.value)
	if err != nil {
		return
	}
	r.w.Count("committed record read")
	if a := r.w.attempts[n]; !r.w.void && (!a.asked || a.aborted) {
		r.w.Violated("%s-%d: a reader is given record %s at %d of transaction %d, asked for %v, aborted %v", r.tp.Topic, r.tp.Partition, s.key, s.offset, n, a.asked, a.aborted)
	}
}
