package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// writeMarkers handles WriteTxnMarkers for this shard's partition of
// __consumer_offsets, versions 1 and 2. The shard is the only writer of its
// partition, so that markers come in order with commits. The answer goes out when
// the marker is durable, and what it decides can be read by then.
func (x step) writeMarkers(r *machine.Request, m *kmsg.WriteTxnMarkersRequest) {
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	resp.Version = m.Version
	for i := range m.Markers {
		var code int16
		if err := x.writeMarker(&m.Markers[i]); err != nil {
			code = err.Code
		}
		resp.Markers = append(resp.Markers, markerAnswer(&m.Markers[i], code))
	}
	x.Reply(r.ID, resp)
}

// bumpsEpoch is the version of transactions in which each has an epoch of its own
// (KIP-890): its marker carries the next one.
const bumpsEpoch = 2

// writeMarker ends a transaction. A marker that has been written already, or is of
// an earlier transaction than the one that is open, is left out where that is
// certain.
func (x step) writeMarker(m *kmsg.WriteTxnMarkersRequestMarker) *kerr.Error {
	if m.ProducerID < 0 || m.ProducerEpoch < 0 {
		return kerr.InvalidRequest
	}
	if machine.StoreRunOf(&m.UnknownTags).Differs(x.shard.run) {
		// The store may have lost the decision since. A coordinator that is told so looks.
		return kerr.TransactionCoordinatorFenced
	}
	if m.CoordinatorEpoch < 0 {
		m = x.ownWord(m)
	}
	start := max(machine.TxnStartOf(&m.UnknownTags), 0)
	if p := x.shard.txns.producers[m.ProducerID]; p != nil {
		if done, err := p.accepts(m, start); done || err != nil {
			return err
		}
		x.endLost(p, p.epoch, p.startOfLater(m, start))
	}
	x.appendMarker(&machine.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch, Transactional: true},
		&machine.Control{Commit: m.Committed, CoordinatorEpoch: m.CoordinatorEpoch}, start)
	if m.TransactionVersion < bumpsEpoch {
		x.shard.txns.parked.end(m.ProducerID)
	}
	return nil
}

// ownWord is the marker of a transaction that no coordinator knows, by which this
// broker ends it itself. It goes under the epoch of the coordinator that was last heard
// of: the partition, which found the transaction, may have forgotten that with its idle
// producers.
func (x step) ownWord(m *kmsg.WriteTxnMarkersRequestMarker) *kmsg.WriteTxnMarkersRequestMarker {
	own := *m
	own.CoordinatorEpoch = 0
	if p := x.shard.txns.producers[m.ProducerID]; p != nil {
		own.CoordinatorEpoch = max(p.coordinatorEpoch, 0)
	}
	return &own
}

// accepts says whether a marker may be written, or need not be any more.
func (p *producer) accepts(m *kmsg.WriteTxnMarkersRequestMarker, start machine.TxnStart) (done bool, err *kerr.Error) {
	same := m.ProducerEpoch == p.epoch
	switch {
	case m.ProducerEpoch < p.epoch:
		return false, kerr.InvalidProducerEpoch
	case m.CoordinatorEpoch < p.coordinatorEpoch:
		return false, kerr.TransactionCoordinatorFenced
	case same && m.TransactionVersion >= bumpsEpoch && p.open != nil:
		return false, kerr.InvalidProducerEpoch // It ended the transaction before this one.
	case same && m.TransactionVersion >= bumpsEpoch:
		return true, nil
	case p.open != nil:
		return same && start > 0 && p.open.start > 0 && start < p.open.start, nil
	}
	return same && start > 0 && start == p.ended && m.CoordinatorEpoch == p.coordinatorEpoch, nil
}

// startOfLater is the start of the transaction that a marker ends, such that it is
// later than that of the open one if and only if the transaction is. A higher epoch
// with another start is of a later one, even if the clock was behind when that began.
func (p *producer) startOfLater(m *kmsg.WriteTxnMarkersRequestMarker, start machine.TxnStart) machine.TxnStart {
	if p.open != nil && m.ProducerEpoch > p.epoch && start > 0 && start < p.open.start {
		return p.open.start + 1
	}
	return start
}

// endLost aborts a transaction whose end was lost: its producer's next one is known
// to have begun, which it can only once all markers are written. It takes a store
// that has lost the end of its log. Else the offsets of both would share one fate.
func (x step) endLost(p *producer, epoch int16, start machine.TxnStart) {
	if p.open == nil || epoch <= p.epoch && (start <= p.open.start || p.open.start == 0) {
		return
	}
	start = p.open.start
	x.appendMarker(&machine.Producer{ID: p.id, Epoch: p.epoch, Transactional: true},
		&machine.Control{CoordinatorEpoch: max(p.coordinatorEpoch, 0)}, start)
	x.shard.txns.parked.end(p.id)
}

// appendMarker appends a marker, after all that came before, and has it take
// effect.
func (x step) appendMarker(by *machine.Producer, c *machine.Control, start machine.TxnStart) {
	x.Emit()
	x.Out.Batches = append(x.Out.Batches, machine.Batch{Producer: by, Control: c})
	if c.Commit {
		x.tellCommitted(by.ID)
	}
	if p := x.shard.applyMarker(by, c); start > 0 {
		p.ended = start
	}
}

// tellCommitted tells which offsets the end of a producer's transaction is about to
// commit: those that nothing has overtaken.
func (x step) tellCommitted(producer int64) {
	p := x.shard.txns.producers[producer]
	if p == nil || p.open == nil {
		return
	}
	var told Committed
	for _, key := range p.open.keys() {
		for _, u := range x.Groups[key.group].Common().Unstable[key.TopicPartition] {
			if u.Producer == producer && !u.Overtaken {
				told = append(told, CommittedOffset{Group: key.group, Topic: key.Topic, Partition: key.Partition, Offset: u.Value.Offset})
			}
		}
	}
	if len(told) > 0 {
		x.Out.Notes = append(x.Out.Notes, told)
	}
}

func markerAnswer(m *kmsg.WriteTxnMarkersRequestMarker, code int16) kmsg.WriteTxnMarkersResponseMarker {
	out := kmsg.NewWriteTxnMarkersResponseMarker()
	out.ProducerID = m.ProducerID
	for i := range m.Topics {
		t := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
		t.Topic = m.Topics[i].Topic
		for _, p := range m.Topics[i].Partitions {
			e := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
			e.Partition, e.ErrorCode = p, code
			t.Partitions = append(t.Partitions, e)
		}
		out.Topics = append(out.Topics, t)
	}
	return out
}

// failMarkers answers that the partition cannot take markers now, which has the
// transaction coordinator look up its leader again and go on.
func failMarkers(req *kmsg.WriteTxnMarkersRequest, resp *kmsg.WriteTxnMarkersResponse, _ int16) {
	for i := range req.Markers {
		resp.Markers = append(resp.Markers, markerAnswer(&req.Markers[i], kerr.NotLeaderForPartition.Code))
	}
}
