package sim

import (
	"slices"
	"time"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/machine"
)

// asked is a TxnOffsetCommit whose transaction coordinator is asked.
type asked struct {
	q     *request
	m     *kmsg.TxnOffsetCommitRequest
	at    time.Duration
	ended bool // a transaction of the producer was ended meanwhile by a marker before version 2, or its end was lost
}

// all returns the same error for every partition.
func all(m *kmsg.TxnOffsetCommitRequest, code int16) verdict {
	out := verdict{groups: []string{m.Group}}
	for _, t := range m.Topics {
		for range t.Partitions {
			out.codes = append(out.codes, code)
		}
	}
	return out
}

// expectTxnCommit says what becomes of a TxnOffsetCommit when it comes.
func (c *coordinator) expectTxnCommit(m *kmsg.TxnOffsetCommitRequest) verdict {
	p, known := c.offsets.producers[m.ProducerID]
	switch {
	case known && m.ProducerEpoch < p.epoch:
		return all(m, codeInvalidEpoch)
	case known && p.open && p.epoch == m.ProducerEpoch && p.id == m.TransactionalID && m.Version >= 5:
		return c.expectStored(m, p.start)
	}
	return verdict{parks: true, asks: true, groups: []string{m.Group}}
}

// expectAnswered says what becomes of it when its coordinator has answered.
func (c *coordinator) expectAnswered(a *asked, e machine.Sent) verdict {
	code, start := int16(13), int64(0)
	if e.Err == nil {
		p := &e.Msg.(*kmsg.AddPartitionsToTxnResponse).Transactions[0].Topics[0].Partitions[0]
		code, start = p.ErrorCode, int64(machine.TxnStartOf(&p.UnknownTags))
	}
	if code == 0 && a.ended {
		code = codeAbortable
		c.w.Count("answer comes after the end of a transaction")
	}
	switch {
	case code == codeAbortable && a.m.Version < 4:
		return all(a.m, codeInvalidTxnState)
	case code == codeProducerFenced:
		return all(a.m, codeInvalidEpoch)
	case code == codeConcurrent && a.m.Version < 5, code == 13 && a.m.Version < 2:
		return all(a.m, codeNotAvailable)
	case code == 13:
		return all(a.m, codeLoadInProgress)
	case code != 0:
		return all(a.m, code)
	}
	return c.expectStored(a.m, start)
}

// expectStored says what becomes of it when the transaction is known to be under
// way.
func (c *coordinator) expectStored(m *kmsg.TxnOffsetCommitRequest, start int64) verdict {
	p, known := c.offsets.producers[m.ProducerID]
	if known && m.ProducerEpoch < p.epoch {
		return all(m, codeInvalidEpoch)
	}
	if known && p.open && m.ProducerEpoch == p.epoch && start < p.start {
		c.w.Count("answer is about an earlier transaction")
		if m.Version < 4 {
			return all(m, codeInvalidTxnState)
		}
		return all(m, codeAbortable)
	}
	lost := known && p.open && (m.ProducerEpoch > p.epoch || start > p.start)
	v := c.view(m.Group)
	if lost && c.endsWith(v, m.ProducerID) { // The end of that transaction is the end of the group.
		v = &view{}
	}
	out := all(m, txnCommitCode(v, m))
	n := 0
	for _, t := range m.Topics {
		for _, part := range t.Partitions {
			switch {
			case out.codes[n] != 0:
			case len(utf16.Encode([]rune(*part.Metadata))) > c.config.MaxMetadata:
				out.codes[n] = codeMetadataTooLarge
			case c.w.topics.id(t.Topic) == 0:
				out.codes[n] = codeUnknownTopic
			}
			n++
		}
	}
	out.start = start
	if out.lost = lost; lost {
		c.w.Count("transaction whose end was lost")
		out.groups = append(out.groups, c.offsets.groupsOf(m.ProducerID)...)
	}
	return out
}

// endsWith says whether there is nothing of a group but offsets that wait for one
// producer.
func (c *coordinator) endsWith(v *view, producer int64) bool {
	if v.record || v.hasConsumers() || c.offsets.has(v.id) {
		return false
	}
	for id, p := range c.offsets.producers {
		for k := range p.pending {
			if k.group == v.id && id != producer {
				return false
			}
		}
	}
	return true
}

// txnCommitCode is KIP-447.
func txnCommitCode(v *view, m *kmsg.TxnOffsetCommitRequest) int16 {
	switch {
	case !v.exists && m.Generation >= 0:
		return codeIllegalGeneration
	case v.hasConsumers():
		return consumerTxnCode(v, m)
	case !v.exists || m.Generation < 0 && v.state == stateEmpty:
		return 0
	case m.Generation < 0 && m.MemberID == "" && m.InstanceID == nil:
		return 0
	}
	if _, code := v.find(m.MemberID, m.InstanceID); code != 0 {
		return code
	}
	if m.Generation != v.generation {
		return codeIllegalGeneration
	}
	return 0
}

// txnWrites returns what a TxnOffsetCommit did to offsets.
func (c *coordinator) txnWrites(m *kmsg.TxnOffsetCommitRequest, wants *verdict) []offsetWrite {
	var out []offsetWrite
	if wants.lost {
		out = append(out, c.lostWrite(m.ProducerID))
	}
	n := 0
	for _, t := range m.Topics {
		for _, p := range t.Partitions {
			if n++; n > len(wants.codes) || wants.codes[n-1] != 0 {
				continue
			}
			out = append(out, offsetWrite{
				key: offsetKey{m.Group, t.Topic, p.Partition},
				val: committed{
					at: p.Offset, epoch: p.LeaderEpoch, metadata: *p.Metadata, when: c.w.millis(), expire: -1, topic: c.w.topics.id(t.Topic),
					seq: c.w.steps, pos: c.w.position(), start: wants.start, loose: true, generation: -1,
				},
				txn: &txnWrite{producer: m.ProducerID, epoch: m.ProducerEpoch, id: m.TransactionalID, start: wants.start},
			})
		}
	}
	return out
}

// lostWrite is the end of a transaction whose end was lost.
func (c *coordinator) lostWrite(id int64) offsetWrite {
	p := c.offsets.producers[id]
	c.voids(id)
	return offsetWrite{txn: &txnWrite{producer: id, epoch: p.epoch, end: true, coordinator: max(p.coordinator, 0), start: p.start, seq: c.w.steps}}
}

// voids notes that answers about a producer's transactions are worthless from now on:
// who waits for them was there before one of them ended.
func (c *coordinator) voids(id int64) {
	for _, a := range c.asked {
		if a.m.ProducerID == id {
			a.ended = true
		}
	}
}

// expectMarker says what becomes of a marker.
func (c *coordinator) expectMarker(req *kmsg.WriteTxnMarkersRequest) verdict {
	m := &req.Markers[0]
	p, known := c.offsets.producers[m.ProducerID]
	start, tv2, out := markerStart(m), m.TransactionVersion >= 2, verdict{codes: []int16{0}}
	same := known && m.ProducerEpoch == p.epoch
	switch {
	case known && m.ProducerEpoch < p.epoch:
		out.codes[0] = codeInvalidEpoch
	case known && m.CoordinatorEpoch < p.coordinator:
		out.codes[0] = codeCoordinatorFenced
	case same && tv2 && p.open:
		out.codes[0] = codeInvalidEpoch
		c.w.Count("late marker spares the next transaction")
	case same && tv2:
		c.w.Count("repeated marker")
	case same && p.open && start < p.start:
		c.w.Count("late marker spares the next transaction")
	case same && !p.open && start == p.ended && m.CoordinatorEpoch == p.coordinator:
		c.w.Count("repeated marker")
		out.maybe = p.loaded
	default:
		// A higher epoch is of a later transaction, even if a clock was behind.
		out.ends, out.lost = true, p.open && start != p.start
		out.groups = c.offsets.groupsOf(m.ProducerID)
		c.w.moment(momentMarker)
	}
	return out
}

func markerStart(m *kmsg.WriteTxnMarkersRequestMarker) int64 {
	return int64(machine.TxnStartOf(&m.UnknownTags))
}

// markerWrites returns what a marker did to offsets.
func (c *coordinator) markerWrites(req *kmsg.WriteTxnMarkersRequest, wants *verdict) []offsetWrite {
	if !wants.ends {
		return nil
	}
	var out []offsetWrite
	m := &req.Markers[0]
	if wants.lost {
		out = append(out, c.lostWrite(m.ProducerID))
	}
	if m.TransactionVersion < 2 {
		c.voids(m.ProducerID)
	}
	return append(out, offsetWrite{txn: &txnWrite{
		producer: m.ProducerID, epoch: m.ProducerEpoch, end: true, commit: m.Committed, coordinator: m.CoordinatorEpoch, start: markerStart(m), seq: c.w.steps,
	}})
}

// checkSends checks that a transaction coordinator is asked when it must be, and
// what.
func (c *coordinator) checkSends(why cause, wants *verdict, sends []machine.Send) {
	if (len(sends) == 1) != wants.asks || len(sends) > 1 {
		c.w.Violated("%d questions are asked, should be one %t", len(sends), wants.asks)
	}
	for _, s := range sends {
		m := why.request.msg.(*kmsg.TxnOffsetCommitRequest)
		t := s.Msg.(*kmsg.AddPartitionsToTxnRequest).Transactions[0]
		if t.TransactionalID != m.TransactionalID || t.ProducerID != m.ProducerID || t.ProducerEpoch != m.ProducerEpoch || t.VerifyOnly != (m.Version < 5) {
			c.w.Violated("%s has %+v asked", why.request, t)
		}
		c.asked[s.ID] = &asked{q: why.request, m: m, at: c.w.Now}
	}
}

// checkGivenUp checks which requests are given up because no one answered.
func (c *coordinator) checkGivenUp(why cause, e *entry) {
	if why.timer == nil || why.timer.Kind != group.TimerAsk {
		return
	}
	for _, h := range e.replies {
		for id, a := range c.asked {
			if a.q != h.request {
				continue
			}
			if want := int16(codeLoadInProgress); c.w.Now < a.at+10*time.Second || codeOf(h.msg) != want && (a.m.Version >= 2 || codeOf(h.msg) != codeNotAvailable) {
				c.w.Violated("%s is given up after %s with %d", h.request, c.w.Now-a.at, codeOf(h.msg))
			}
			delete(c.asked, id)
			c.w.Count("question given up")
		}
	}
	for _, a := range c.asked {
		if why.current && c.w.Now > a.at+10*time.Second+maxLate {
			c.w.Violated("%s is not given up", a.q)
		}
	}
}

// viewsOf returns the views of groups.
func (c *coordinator) viewsOf(groups []string) []*view {
	var out []*view
	for _, id := range slices.Compact(slices.Sorted(slices.Values(groups))) {
		out = append(out, c.view(id))
	}
	return out
}

// byMarker says that the step is about a marker.
func (st *stepped) byMarker() bool {
	return st.why.request != nil && st.why.request.ask.key == kmsg.WriteTxnMarkers.Int16() || st.wants.lost
}

// fencedInTxn is who is told that another has its place.
func (st *stepped) fencedInTxn() (out []stale) {
	if st.why.request == nil {
		return nil
	}
	m, ok := st.why.request.msg.(*kmsg.TxnOffsetCommitRequest)
	if ok && m.Group == st.v.id && m.MemberID != "" && slices.Contains(st.wants.codes, kerr.FencedInstanceID.Code) {
		out = append(out, stale{*m.InstanceID, m.MemberID})
	}
	return out
}
