package partition

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// history is what a raw log says, found out without anything that partitions use.
type history struct {
	batches []record.Batch
	txns    []ended // in the order of their first offsets
}

// ended is a transaction of a raw log; last is -1 if it is open.
type ended struct {
	producer    int64
	first, last int64
	commit      bool
}

// readHistory reads a raw log on from what was read before.
func (h *history) read(r *rig) {
	r.t.Helper()
	offset := r.part().LogStartOffset()
	if n := len(h.batches); n > 0 {
		offset = h.batches[n-1].LastOffset() + 1
	}
	for {
		l := r.part().log.Load()
		_, end := l.Bounds()
		if offset >= end {
			return
		}
		recs, err := l.Read(r.t.Context(), store.ReadRequest{Offset: offset, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		must(r.t, err)
		b, err := recs.Load()
		recs.Release()
		for err == nil && len(b) > 0 {
			var batch record.Batch
			batch, b, err = record.Next(b)
			h.add(r.t, batch)
			offset = batch.LastOffset() + 1
		}
		must(r.t, err)
	}
}

func (h *history) add(t *testing.T, b record.Batch) {
	t.Helper()
	h.batches = append(h.batches, b)
	i := slices.IndexFunc(h.txns, func(x ended) bool { return x.producer == b.ProducerID() && x.last < 0 })
	switch {
	case !b.Transactional():
	case b.Control():
		m, ok, err := b.Marker()
		if err != nil || !ok {
			t.Fatalf("batch %d is no marker: %v", b.BaseOffset(), err)
		}
		if i >= 0 {
			h.txns[i].last, h.txns[i].commit = b.LastOffset(), m.Commit
		}
	case i < 0:
		h.txns = append(h.txns, ended{producer: b.ProducerID(), first: b.BaseOffset(), last: -1})
	}
}

// stable is the last stable offset by its definition.
func (h *history) stable(hw, start int64) int64 {
	lso := hw
	for _, x := range h.txns {
		if x.last < 0 || x.last >= hw {
			lso = min(lso, x.first)
		}
	}
	return max(lso, start)
}

// aborted is the list that a reader of a range must get.
func (h *history) aborted(from, next int64) []store.Aborted {
	out := []store.Aborted{}
	for _, x := range h.txns {
		if x.last >= from && !x.commit && x.first < next {
			out = append(out, store.Aborted{ProducerID: x.producer, FirstOffset: x.first, LastOffset: x.last})
		}
	}
	slices.SortFunc(out, func(a, b store.Aborted) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return out
}

// check holds what is true of every raw log: epochs never fall, and between two ends
// of a producer there is one.
func (h *history) check(t *testing.T) {
	t.Helper()
	epochs, open := map[int64]int16{}, map[int64]int16{}
	for _, b := range h.batches {
		id, epoch := b.ProducerID(), b.ProducerEpoch()
		if id < 0 {
			continue
		}
		if epoch < epochs[id] {
			t.Fatalf("batch %d of producer %d has epoch %d after %d", b.BaseOffset(), id, epoch, epochs[id])
		}
		epochs[id] = epoch
		if was, ok := open[id]; ok && was != epoch && !b.Control() {
			t.Fatalf("batch %d of producer %d has epoch %d in a transaction of epoch %d", b.BaseOffset(), id, epoch, was)
		}
		switch {
		case b.Control():
			delete(open, id)
		case b.Transactional():
			open[id] = epoch
		}
	}
}

// committed are the offsets that a reader of committed records is to get.
func (h *history) committed(from, lso int64) (out []int64) {
	for _, b := range h.batches {
		if b.Control() {
			continue
		}
		keep := !b.Transactional() || slices.ContainsFunc(h.txns, func(x ended) bool {
			return x.producer == b.ProducerID() && x.first <= b.BaseOffset() && x.last > b.BaseOffset() && x.commit
		})
		for o := b.BaseOffset(); keep && o <= b.LastOffset(); o++ {
			if o >= from && o < lso {
				out = append(out, o)
			}
		}
	}
	return out
}

// modelRun drives a partition with whatever clients and coordinators may send.
type modelRun struct {
	*txnRig
	rng     *rand.Rand
	h       history
	epochs  map[int64]int16
	next    map[int64]int32
	coord2  int32
	waiting []func()
	lso     int64
}

func (m *modelRun) later(c <-chan Appended) {
	m.waiting = append(m.waiting, func() { await(m.t, c) })
}

func (m *modelRun) settle() {
	for _, w := range m.waiting {
		w()
	}
	m.waiting = nil
	m.h.read(m.rig)
}

func (m *modelRun) step() {
	id := int64(1 + m.rng.IntN(4))
	switch n := m.rng.IntN(100); {
	case n < 45:
		how := oldTxn
		if m.rng.IntN(3) == 0 {
			how = newTxn
		}
		how.Acks = []int16{1, AcksAll}[m.rng.IntN(2)]
		m.data(id, how)
	case n < 52:
		m.later(m.begin(m.batch(plain, 1+m.rng.IntN(3)), Produce{Acks: AcksAll}))
	case n < 85:
		m.end(id)
	case n < 93:
		m.read()
	case n < 96:
		m.settle()
		must(m.t, m.part().Reopen(m.t.Context()))
	case n < 97:
		m.settle()
		hw := m.part().HighWatermark()
		if _, err := m.part().DeleteBefore(m.t.Context(), m.part().LogStartOffset()+m.rng.Int64N(hw-m.part().LogStartOffset()+1)); err != nil {
			m.t.Fatal(err)
		}
	default:
		m.settle()
	}
	if m.rng.IntN(4) == 0 {
		m.settle()
		m.look()
	}
}

// data sends a batch, mostly the next of its producer.
func (m *modelRun) data(id int64, how Produce) {
	at := producerAt{id, m.epochs[id], m.next[id]}
	switch m.rng.IntN(10) {
	case 0:
		at.seq++
	case 1:
		at.seq = max(0, at.seq-1)
	case 2:
		at.epoch += int16(m.rng.IntN(3)) - 1
	}
	n := 1 + m.rng.IntN(3)
	if at.epoch < 0 {
		return
	}
	if at == (producerAt{id, m.epochs[id], m.next[id]}) {
		m.next[id] += int32(n)
	}
	b := m.txnBatch(at, n)
	if m.rng.IntN(15) == 0 {
		b = m.batch(at, n)
	}
	m.later(m.begin(b, how))
}

// end sends a marker, mostly one that fits.
func (m *modelRun) end(id int64) {
	x := marker(id, m.epochs[id], m.rng.IntN(2) == 0)
	x.CoordinatorEpoch = m.coord2
	switch m.rng.IntN(12) {
	case 0:
		x.CoordinatorEpoch--
	case 1:
		m.coord2++
	case 2:
		x.ProducerEpoch = max(0, x.ProducerEpoch-1)
	case 3, 4, 5:
		x.Version = 2
		x.ProducerEpoch++
		m.epochs[id], m.next[id] = x.ProducerEpoch, 0
	case 6:
		x.Version = 2
	}
	c := m.beginMarker(x)
	m.waiting = append(m.waiting, func() {
		if err := await(m.t, c); err != nil && !slices.Contains([]*kerr.Error{kerr.InvalidProducerEpoch, kerr.TransactionCoordinatorFenced}, err) {
			m.t.Fatalf("%+v: %v", x, err)
		}
	})
}

// look compares what the partition says with what its raw log says.
func (m *modelRun) look() {
	m.t.Helper()
	p := m.part()
	if hw := p.HighWatermark(); hw != p.LogEndOffset() {
		m.t.Fatalf("high watermark %d, log end %d", hw, p.LogEndOffset())
	}
	want := m.h.stable(p.HighWatermark(), p.LogStartOffset())
	if got := p.LastStableOffset(); got != want || got < m.lso {
		m.t.Fatalf("last stable offset is %d, was %d, want %d", got, m.lso, want)
	}
	m.lso = want
	m.h.check(m.t)
	state := map[int64]int64{}
	for _, x := range p.Producers() {
		if x.TxnFirst != store.NoTxn {
			state[x.ID] = x.TxnFirst
		}
		m.epochs[x.ID] = x.Epoch
		m.next[x.ID] = 0
		if n := len(x.Batches); n > 0 {
			m.next[x.ID] = x.Batches[n-1].LastSequence + 1
		}
	}
	open := map[int64]int64{}
	for _, x := range m.h.txns {
		if x.last < 0 {
			open[x.producer] = x.first
		}
	}
	if fmt.Sprint(state) != fmt.Sprint(open) {
		m.t.Fatalf("open are %v, want %v", state, open)
	}
}

// read reads somewhere, while appends are under way.
func (m *modelRun) read() {
	m.t.Helper()
	p := m.part()
	start, before := p.LogStartOffset(), p.LastStableOffset()
	if before < m.lso {
		m.t.Fatalf("last stable offset went from %d to %d", m.lso, before)
	}
	offset := start + m.rng.Int64N(before-start+1)
	batches, f := m.fetch(offset, true, m.rng.IntN(2000))
	m.h.read(m.rig)
	if f.LastStableOffset < before || f.LastStableOffset > f.HighWatermark {
		m.t.Fatalf("%+v after %d", f, before)
	}
	if len(batches) == 0 {
		return
	}
	next := batches[len(batches)-1].LastOffset() + 1
	if next > f.LastStableOffset {
		m.t.Fatalf("read to %d, the last stable offset is %d", next, f.LastStableOffset)
	}
	if want := m.h.aborted(offset, next); !slices.Equal(f.Aborted, want) {
		m.t.Fatalf("from %d to %d aborted are %+v, want %+v", offset, next, f.Aborted, want)
	}
}

// consume reads as clients do, who drop what is aborted.
func (m *modelRun) consume() (out []int64) {
	for offset := m.part().LogStartOffset(); offset < m.part().LastStableOffset(); {
		batches, f := m.fetch(offset, true, 1+m.rng.IntN(1500))
		got, next := kept(batches, f.Aborted)
		out = append(out, slices.DeleteFunc(got, func(o int64) bool { return o < offset })...)
		offset = next
	}
	return out
}

// kept are the offsets that a client keeps of what it read.
func kept(batches []record.Batch, list []store.Aborted) (out []int64, next int64) {
	aborted := map[int64]bool{}
	for _, b := range batches {
		for len(list) > 0 && list[0].FirstOffset <= b.LastOffset() {
			aborted[list[0].ProducerID] = true
			list = list[1:]
		}
		next = b.LastOffset() + 1
		if b.Control() {
			if x, _, _ := b.Marker(); !x.Commit {
				delete(aborted, b.ProducerID())
			}
			continue
		}
		for o := b.BaseOffset(); o < next && !(b.Transactional() && aborted[b.ProducerID()]); o++ {
			out = append(out, o)
		}
	}
	return out, next
}

// TestPartitionsAgreeWithTheirRawLogs sends what clients and coordinators may send, right
// or wrong, and compares with what the log says.
func TestPartitionsAgreeWithTheirRawLogs(t *testing.T) {
	for name, runs := range map[string]uint64{"mem": 60, "pipe": 40, "disk": 30, "redis": 3} {
		if testing.Short() {
			runs = (runs + 5) / 6
		}
		for seed := range runs {
			t.Run(fmt.Sprint(name, seed), func(t *testing.T) {
				m := &modelRun{rng: rand.New(rand.NewPCG(seed, 1)), epochs: map[int64]int16{}, next: map[int64]int32{}, coord2: 1}
				m.txnRig = newTxnRig(t, engines[name](t), map[string]string{"segment.bytes": "16384"})
				for range 400 {
					m.step()
				}
				m.settle()
				for id := range int64(5) { // All end.
					for _, x := range m.part().Producers() {
						if x.ID == id && x.TxnFirst != store.NoTxn {
							m.wantMarker(Marker{ProducerID: id, ProducerEpoch: x.Epoch + 1, CoordinatorEpoch: 1000, Start: NoStart}, nil, 1)
						}
					}
				}
				m.settle()
				m.look()
				if m.lso != m.part().HighWatermark() {
					t.Errorf("all have ended, and the last stable offset is %d of %d", m.lso, m.part().HighWatermark())
				}
				start := m.part().LogStartOffset()
				if got, want := m.consume(), m.h.committed(start, m.lso); !slices.Equal(got, want) {
					t.Errorf("a reader of committed records got\n%v, want\n%v", got, want)
				}
			})
		}
	}
}
