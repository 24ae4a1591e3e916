package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/consumer"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// txnCommit handles TxnOffsetCommit, versions 0 to 5: offsets that count when the
// transaction does. Version 2 adds the leader epoch, 3 the member and its
// generation (KIP-447), 4 knows TRANSACTION_ABORTABLE, and 5 has us add the
// partition to the transaction (KIP-890). Partitions that do not exist have been
// taken out before.
func (x step) txnCommit(r *machine.Request, m *kmsg.TxnOffsetCommitRequest) {
	p := x.shard.txns.producers[m.ProducerID]
	switch {
	case m.Group == "":
		x.replyTxnCommit(r, m, kerr.InvalidGroupID)
	case m.TransactionalID == "" || m.ProducerID < 0 || m.ProducerEpoch < 0:
		x.replyTxnCommit(r, m, kerr.InvalidRequest)
	case p != nil && m.ProducerEpoch < p.epoch:
		x.replyTxnCommit(r, m, kerr.InvalidProducerEpoch)
	case p != nil && p.open != nil && p.epoch == m.ProducerEpoch && p.open.id == m.TransactionalID && m.Version >= addsItself:
		// It was asked before. Older clients do not change their epoch: what is open may
		// be a transaction whose end was lost.
		x.commitInTxn(r, m, p.open.start)
	default:
		if err := x.ask(r, m); err != nil {
			x.replyTxnCommit(r, m, err)
		}
	}
}

// commitInTxn stores offsets of a transaction that is known to be open, and to
// have begun at start.
func (x step) commitInTxn(r *machine.Request, m *kmsg.TxnOffsetCommitRequest, start machine.TxnStart) {
	if p := x.shard.txns.producers[m.ProducerID]; p != nil {
		switch {
		case m.ProducerEpoch < p.epoch:
			x.replyTxnCommit(r, m, kerr.InvalidProducerEpoch)
			return
		case p.open != nil && m.ProducerEpoch == p.epoch && start > 0 && start < p.open.start:
			// The answer is about a transaction that is over.
			x.replyTxnCommit(r, m, refusal(kerr.TransactionAbortable, m.Version))
			return
		}
		x.endLost(p, m.ProducerEpoch, start)
	}
	if err := x.checkTxnCommit(r, m); err != nil {
		x.replyTxnCommit(r, m, err)
		return
	}
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.Version = m.Version
	by := machine.Producer{ID: m.ProducerID, Epoch: m.ProducerEpoch, Transactional: true}
	batch := openBatch{Batch: machine.Batch{Producer: &by}}
	for i := range m.Topics {
		t := &m.Topics[i]
		out := kmsg.NewTxnOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for j := range t.Partitions {
			p := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			p.Partition = t.Partitions[j].Partition
			rec, err := x.pendingRecord(m, t.Topic, &t.Partitions[j], start)
			if err != nil {
				p.ErrorCode = err.Code
			} else {
				x.forgetStale(rec)
				x.addTo(&batch, rec)
			}
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
	x.appendOpen(batch.Batch)
	if p := x.shard.txns.producers[m.ProducerID]; p != nil && len(batch.Records) > 0 {
		p.open.id = m.TransactionalID
	}
	x.Reply(r.ID, resp)
}

// checkTxnCommit says whether the client may commit now (KIP-447). Unlike a plain
// commit it may in the middle of a rebalance, and is no sign of life; and whoever
// names no member, as clients do up to version 2, is let in.
func (x step) checkTxnCommit(r *machine.Request, m *kmsg.TxnOffsetCommitRequest) *kerr.Error {
	g := x.Groups[m.Group]
	switch {
	case g == nil && m.Generation >= 0 && m.Version >= consumer.TxnCommitEpoch:
		return kerr.GroupIDNotFound
	case g == nil && m.Generation >= 0:
		return kerr.IllegalGeneration
	case g == nil:
		return nil
	}
	return g.CheckTxnCommit(x.Step, r, m)
}

// pendingRecord makes the record of one offset.
func (x step) pendingRecord(m *kmsg.TxnOffsetCommitRequest, topic string, p *kmsg.TxnOffsetCommitRequestTopicPartition, start machine.TxnStart) (*schema.OffsetRecord, *kerr.Error) {
	o := schema.Offset{Offset: p.Offset, LeaderEpoch: p.LeaderEpoch, CommitTimestamp: x.Now.UnixMilli(), ExpireTimestamp: -1, Start: start}
	rec := &schema.OffsetRecord{Group: m.Group, Topic: topic, Partition: p.Partition, Value: &o}
	return rec, x.fillOffset(rec, p.Metadata)
}

// forgetStale removes offsets that belong to an older topic of the same name, before
// it is noticed that the topic is gone: what removes them then would take the new
// one along.
func (x step) forgetStale(r *schema.OffsetRecord) {
	g := x.Groups[r.Group]
	if g == nil || x.Image == nil {
		return
	}
	now := x.Image.Topic(r.Topic)
	b := g.Common()
	o, ok := b.Offsets[r.Topic].Get(r.Partition)
	waits := b.Unstable[subscription.TopicPartition{Topic: r.Topic, Partition: r.Partition}]
	if ok && isStale(&o, now) || len(waits) > 0 && isStale(&waits[0].Value, now) {
		var gone offsetCount
		x.forgetTopic(g, r.Topic, b.Waiting(), &gone)
		if gone.all > 0 {
			x.noteCount(g, journal.KindOffsetsDeleted, gone, journal.CauseTopics, nil)
		}
	}
}

// isStale says that an offset is of a topic that is gone; now is the topic of the
// same name, if there is one.
func isStale(o *schema.Offset, now *metadata.Topic) bool {
	return now == nil || o.TopicID != (metadata.TopicID{}) && o.TopicID != now.ID
}

// openBatch is records of an open transaction, and how many bytes they take.
type openBatch struct {
	machine.Batch
	bytes int
}

// addTo adds a record to a batch, and appends what does not fit into one with it.
func (x step) addTo(b *openBatch, r *schema.OffsetRecord) {
	size := machine.RecordOverhead + r.Size()
	if x.MaxBatch > 0 && len(b.Records) > 0 && b.bytes+size > x.MaxBatch {
		x.appendOpen(b.Batch)
		b.Records, b.bytes = nil, 0
	}
	b.Records, b.bytes = append(b.Records, r), b.bytes+size
}

// appendOpen appends records of an open transaction, after all that came before.
func (x step) appendOpen(b machine.Batch) {
	if len(b.Records) == 0 {
		return
	}
	x.Emit()
	x.Out.Batches = append(x.Out.Batches, b)
	p := x.shard.applyOpen(b.Producer)
	for _, r := range b.Records {
		x.shard.applyPending(p, r)
	}
}

// replyTxnCommit answers that nothing was stored.
func (x step) replyTxnCommit(r *machine.Request, m *kmsg.TxnOffsetCommitRequest, err *kerr.Error) {
	resp := kmsg.NewPtrTxnOffsetCommitResponse()
	resp.Version = m.Version
	failTxnCommit(m, resp, err.Code)
	x.Reply(r.ID, resp)
}

// knowsLoading is the version of TxnOffsetCommit from which clients know
// COORDINATOR_LOAD_IN_PROGRESS.
const knowsLoading = 2

func failTxnCommit(req *kmsg.TxnOffsetCommitRequest, resp *kmsg.TxnOffsetCommitResponse, code int16) {
	if code == kerr.CoordinatorLoadInProgress.Code && req.Version < knowsLoading {
		code = kerr.CoordinatorNotAvailable.Code
	}
	for i := range req.Topics {
		t := &req.Topics[i]
		out := kmsg.NewTxnOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for j := range t.Partitions {
			p := kmsg.NewTxnOffsetCommitResponseTopicPartition()
			p.Partition, p.ErrorCode = t.Partitions[j].Partition, code
			out.Partitions = append(out.Partitions, p)
		}
		resp.Topics = append(resp.Topics, out)
	}
}
