package exact

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store"
)

const codeUnstable = 88

// answered checks what a coordinator says.
func (m *model) answered(c *call, resp kmsg.Response) {
	switch r := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		req := c.req.(*kmsg.InitProducerIDRequest)
		m.w.Count(fmt.Sprintf("InitProducerID %d", r.ErrorCode))
		if r.ErrorCode == 0 {
			source := fmt.Sprintf("Init with %d/%d", req.ProducerID, req.ProducerEpoch)
			if req.ProducerID < 0 {
				source = fmt.Sprintf("Init %d at %s", m.w.ids, m.w.Now)
			}
			s := m.id(*req.TransactionalID)
			s.check(m.w, "Init", pair{req.ProducerID, req.ProducerEpoch})
			m.give(*req.TransactionalID, pair{r.ProducerID, r.ProducerEpoch}, source)
			if req.ProducerID < 0 {
				s.fence = s.order[pair{r.ProducerID, r.ProducerEpoch}]
			}
			m.fences[r.ProducerID] = max(m.fences[r.ProducerID], r.ProducerEpoch)
		}
	case *kmsg.EndTxnResponse:
		m.w.Count(fmt.Sprintf("EndTxn v%d %d", r.Version, r.ErrorCode))
		if r.ErrorCode == 0 {
			m.ended(c, c.req.(*kmsg.EndTxnRequest), r)
		}
	case *kmsg.OffsetFetchResponse:
		m.groups.fetched(c, r)
	case *kmsg.AddPartitionsToTxnResponse:
		m.added(c.req.(*kmsg.AddPartitionsToTxnRequest), r)
	case *kmsg.TxnOffsetCommitResponse:
		m.w.Count(fmt.Sprintf("TxnOffsetCommit %d", r.Topics[0].Partitions[0].ErrorCode))
		m.groups.committed(c, r)
	case *kmsg.JoinGroupResponse:
		m.w.Count(fmt.Sprintf("JoinGroup %d", r.ErrorCode))
	case *kmsg.SyncGroupResponse:
		m.w.Count(fmt.Sprintf("SyncGroup %d", r.ErrorCode))
		m.groups.synced(c.req.(*kmsg.SyncGroupRequest), r)
	}
}

// give: pairs given to clients are never given to another, do not go back, and
// belong to the id.
func (m *model) give(id string, p pair, source string) {
	w := m.w
	if p.epoch == math.MaxInt16 {
		w.judge("%s is given epoch %d", id, p.epoch)
	}
	if was, ok := m.given[p]; ok && was != source {
		w.judge("%s is given %d/%d by %s, as it was by %s", id, p.id, p.epoch, source, was)
	}
	if p.epoch < m.fences[p.id] {
		w.judge("%s is given %d/%d by %s, after epoch %d", id, p.id, p.epoch, source, m.fences[p.id])
	}
	m.given[p] = source
	if s := m.id(id); s.order[p] == 0 {
		s.order[p] = len(s.order) + 1
	}
	if !m.id(id).pairs[p] {
		w.judge("%s is given %d/%d by %s, which is not durable", id, p.id, p.epoch, source)
	}
}

// check: an instance that another has replaced achieves nothing any more.
func (s *idState) check(w *world, what string, p pair) {
	if n, ok := s.order[p]; ok && n < s.fence {
		w.judge("%s of %d/%d succeeds, though another instance has replaced it", what, p.id, p.epoch)
	}
}

// ended checks the answer that a transaction has ended: it must have been decided
// so.
func (m *model) ended(c *call, req *kmsg.EndTxnRequest, r *kmsg.EndTxnResponse) {
	s := m.id(req.TransactionalID)
	if s.value == nil && s.gone < c.arrived {
		m.w.judge("%s is told that its transaction ended, but it has expired", req.TransactionalID)
	}
	s.check(m.w, "EndTxn", pair{req.ProducerID, req.ProducerEpoch})
	var t *transaction
	for _, x := range s.all {
		if x.pid == req.ProducerID && x.epoch == req.ProducerEpoch {
			t = x
		}
	}
	if t == nil || !t.decided || t.commit != req.Commit {
		m.w.judge("%s %d/%d is told that its transaction ended, commit %v, but that is %v", req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit, t)
	}
	if r.Version >= 5 {
		m.give(req.TransactionalID, pair{r.ProducerID, r.ProducerEpoch}, fmt.Sprintf("EndTxn of %d/%d", req.ProducerID, req.ProducerEpoch))
	}
}

// added checks the answer that partitions are in a transaction.
func (m *model) added(req *kmsg.AddPartitionsToTxnRequest, r *kmsg.AddPartitionsToTxnResponse) {
	id, p, verify := req.TransactionalID, pair{req.ProducerID, req.ProducerEpoch}, false
	codes := map[store.TopicPartition]int16{}
	for _, t := range r.Topics {
		for _, x := range t.Partitions {
			codes[store.TopicPartition{Topic: t.Topic, Partition: x.Partition}] = x.ErrorCode
		}
	}
	if req.Version >= 4 {
		x := &req.Transactions[0]
		id, p, verify = x.TransactionalID, pair{x.ProducerID, x.ProducerEpoch}, x.VerifyOnly
		if r.ErrorCode != 0 {
			m.w.Count(fmt.Sprintf("AddPartitionsToTxn whole %d", r.ErrorCode))
			return
		}
		for _, t := range r.Transactions[0].Topics {
			for _, x := range t.Partitions {
				codes[store.TopicPartition{Topic: t.Topic, Partition: x.Partition}] = x.ErrorCode
			}
		}
	}
	t := m.id(id).cur
	for tp, code := range codes {
		what := "added"
		if verify {
			what = "verified"
		}
		m.w.Count(fmt.Sprintf("partition %s %d", what, code))
		if code == 0 && (t == nil || t.pid != p.id || t.epoch != p.epoch || !t.parts[tp]) {
			m.w.judge("%s %d/%d is told that %v is in its transaction, which is %v", id, p.id, p.epoch, tp, t)
		}
	}
}

// fetched checks what the leader of a partition answers: the last stable offset,
// and the aborted transactions of what it returns, as the log has them.
func (m *model) fetched(b *broker, f fetch, got partition.Fetched, bytes []byte) {
	l := m.w.store.log(f.tp)
	if l.owner == nil || l.owner.b != b || l.owner.life != b.life {
		return
	}
	p := m.part(f.tp)
	want, aborted := l.stable(got.HighWatermark)
	if got.LastStableOffset != want {
		m.w.Violated("%v: last stable offset is %d of %d, should be %d", f.tp, got.LastStableOffset, got.HighWatermark, want)
	}
	if want < p.stable {
		m.w.Violated("%v: last stable offset goes back from %d to %d", f.tp, p.stable, want)
	}
	p.stable = want
	if l.durable < len(l.raw) && got.HighWatermark > l.raw[l.durable].batch.BaseOffset() {
		m.w.Violated("%v: high watermark %d is above what is durable", f.tp, got.HighWatermark)
	}
	if !f.Committed {
		if got.Aborted != nil {
			m.w.Violated("%v: aborted transactions for a reader of everything", f.tp)
		}
		return
	}
	end := f.Offset
	for _, e := range batches(bytes) {
		end = e.LastOffset() + 1
	}
	if end > want && len(bytes) > 0 {
		m.w.Violated("%v: records up to %d are returned, last stable offset is %d", f.tp, end, want)
	}
	aborted = slices.DeleteFunc(aborted, func(a store.Aborted) bool { return a.FirstOffset >= end || a.LastOffset < f.Offset })
	if l.packed {
		aborted = slices.DeleteFunc(aborted, func(a store.Aborted) bool { return !has(bytes, a) && !slices.Contains(got.Aborted, a) })
	}
	if len(bytes) > 0 && !slices.Equal(aborted, got.Aborted) {
		m.w.Violated("%v: aborted transactions from %d to %d are told to be %v, should be %v", f.tp, f.Offset, end, got.Aborted, aborted)
	}
	if len(aborted) > 1 {
		m.w.Count("fetch with several aborted transactions")
	}
}

// has says whether something of an aborted transaction is among batches.
func has(bytes []byte, a store.Aborted) bool {
	return slices.ContainsFunc(batches(bytes), func(b record.Batch) bool {
		return b.ProducerID() == a.ProducerID && !b.Control() && b.Transactional() && b.Count() > 0 && b.BaseOffset() >= a.FirstOffset && b.LastOffset() < a.LastOffset
	})
}

// stable computes the last stable offset, and the aborted transactions in the
// order of their first offsets, from a log's batches. What is above the high
// watermark does not count for either. Readers ask again and again, so what was read
// of the log is not read again unless the log has lost something.
func (l *simLog) stable(hw int64) (int64, []store.Aborted) {
	s := &l.last
	if s.firsts == nil || s.cuts != l.cuts || hw < s.hw {
		*s = lastStable{cuts: l.cuts, firsts: map[int64]int64{}}
	}
	s.hw = hw
	for ; s.read < len(l.raw) && l.raw[s.read].batch.BaseOffset() < hw; s.read++ {
		s.take(l.raw[s.read])
	}
	out := hw
	for _, first := range s.firsts {
		out = min(out, first)
	}
	return max(out, l.start), slices.Clone(s.aborted)
}

// lastStable is how far a log was read for its last stable offset, and what was open
// and aborted there.
type lastStable struct {
	hw      int64
	cuts    int
	read    int             // batches
	firsts  map[int64]int64 // of the transactions that are open, by producer
	aborted []store.Aborted
}

func (s *lastStable) take(e *entry) {
	pid, base := e.batch.ProducerID(), e.batch.BaseOffset()
	first, open := s.firsts[pid]
	switch {
	case e.marker != nil:
		if open && !e.marker.Commit {
			s.aborted = append(s.aborted, store.Aborted{ProducerID: pid, FirstOffset: first, LastOffset: base})
			slices.SortFunc(s.aborted, func(a, b store.Aborted) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
		}
		delete(s.firsts, pid)
	case e.batch.Transactional() && !open:
		s.firsts[pid] = base
	}
}
