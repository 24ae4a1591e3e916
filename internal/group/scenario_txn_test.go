package group

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// producerArgs reads pid=1 [epoch=0].
func (a args) producer() (id int64, epoch int16) {
	return int64(a.Number("pid", 1)), int16(a.Number("epoch", 0))
}

// txn-commit a [id=x] [pid=1] [epoch=0] [generation=-1] [member=] [instance=i] [offsets=(t:0=5)] [v=3]
// By default the client names no member.
func (s *scenario) txnCommit(d *datadriven.TestData) {
	a := s.args(d)
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version = int16(a.Number("v", 3))
	req.TransactionalID, req.Group, req.MemberID, req.InstanceID = a.Text("id", "x"), a.Text("group", "g"), a.Text("member", ""), a.pointer("instance")
	req.ProducerID, req.ProducerEpoch = a.producer()
	req.Generation = int32(a.Number("generation", -1))
	for _, o := range a.List("offsets") {
		tp, at, _ := strings.Cut(o, "=")
		topic, part, _ := strings.Cut(tp, ":")
		at, metadata, ok := strings.Cut(at, "/")
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.LeaderEpoch = int32(harness.ParseInt(s.T, part)), int64(harness.ParseInt(s.T, at)), int32(a.Number("leader-epoch", -1))
		if text, times, repeated := strings.Cut(metadata, "*"); repeated {
			metadata = strings.Repeat(text, harness.ParseInt(s.T, times))
		}
		if ok {
			p.Metadata = &metadata
		}
		req.Topics = append(req.Topics, kmsg.TxnOffsetCommitRequestTopic{Topic: topic, Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}})
	}
	p := s.shard.txns.producers[req.ProducerID]
	s.request(a.Who(), req)
	// The coordinator of a transaction that is open here says again what it said.
	if p != nil && p.open != nil && p.epoch == req.ProducerEpoch && p.open.id == req.TransactionalID && len(s.sends) > 0 && !d.HasArg("unanswered") {
		last := s.sends[len(s.sends)-1]
		s.sends = s.sends[:len(s.sends)-1]
		s.step(machine.Sent{ID: last.ID, Msg: answerTo(last.Msg.(*kmsg.AddPartitionsToTxnRequest), 0, cmp.Or(p.open.start, machine.NoTxnStart))})
	}
}

// markerOf reads commit|abort [pid=1] [epoch=0] [coordinator=0] [tv=0] [start=5].
func (a args) marker() *kmsg.WriteTxnMarkersRequest {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = 2
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.Committed = a.D.HasArg("commit")
	m.ProducerID, m.ProducerEpoch = a.producer()
	m.CoordinatorEpoch, m.TransactionVersion = int32(a.Number("coordinator", 0)), int8(a.Number("tv", 0))
	machine.TxnStart(a.Number("start", -1)).Set(&m.UnknownTags)
	m.Topics = []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: metadata.OffsetsTopic, Partitions: []int32{1}}}
	req.Markers = append(req.Markers, m)
	return req
}

// marker a commit|abort [pid=1] [epoch=0] [coordinator=0] [tv=0] [start=5]
func (s *scenario) marker(d *datadriven.TestData) {
	a := s.args(d)
	s.request(a.Who(), a.marker())
}

// marker-while-loading a commit|abort …: what the runtime answers for a shard that
// is not loaded.
func (s *scenario) markerWhileLoading(d *datadriven.TestData) {
	a := s.args(d)
	req := a.marker()
	kind := Definition(func() kind.Config { return s.cfg })
	if kind.WhileLoading(req) != nil {
		s.T.Error("answered without waiting for the load")
	}
	s.Printf("%s ← %s\n", a.Who(), s.showReply(a.Who(), s.Wire(req, kind.Fail(req, kerr.CoordinatorLoadInProgress))))
}

// answer [question] [code=120] [start=5] [lost]: the transaction coordinator
// answers the question that has waited for longest, or that of this number among
// those that wait.
func (s *scenario) answer(d *datadriven.TestData) {
	a := s.args(d)
	i := a.Number("question", 0)
	if i >= len(s.sends) {
		d.Fatalf(s.T, "nobody was asked")
	}
	q := s.sends[i]
	s.sends = append(s.sends[:i:i], s.sends[i+1:]...)
	if s.answerShare(d, q) {
		return
	}
	if d.HasArg("lost") {
		s.step(machine.Sent{ID: q.ID, Err: errLost})
		return
	}
	s.step(machine.Sent{ID: q.ID, Msg: answerTo(q.Msg.(*kmsg.AddPartitionsToTxnRequest), int16(a.Number("code", 0)), machine.TxnStart(a.Number("start", -1)))})
}

// answerTo is what a coordinator says to a question.
func answerTo(req *kmsg.AddPartitionsToTxnRequest, code int16, start machine.TxnStart) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
	q := req.Transactions[0]
	t := kmsg.NewAddPartitionsToTxnResponseTransaction()
	t.TransactionalID = q.TransactionalID
	p := kmsg.NewAddPartitionsToTxnResponseTransactionTopicPartition()
	p.Partition, p.ErrorCode = q.Topics[0].Partitions[0], code
	start.Set(&p.UnknownTags)
	t.Topics = []kmsg.AddPartitionsToTxnResponseTransactionTopic{{Topic: q.Topics[0].Topic, Partitions: []kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{p}}}
	resp.Transactions = append(resp.Transactions, t)
	return resp
}

var errLost = errors.New("lost")

func showSend(m machine.Send) string {
	if create, ok := m.Msg.(*kmsg.CreateTopicsRequest); ok {
		return showCreate(create)
	}
	q := m.Msg.(*kmsg.AddPartitionsToTxnRequest).Transactions[0]
	what := "to add"
	if q.VerifyOnly {
		what = "about"
	}
	return fmt.Sprintf("broker %d %s %s-%d of %s, producer %d/%d", m.To, what, q.Topics[0].Topic, q.Topics[0].Partitions[0], q.TransactionalID, q.ProducerID, q.ProducerEpoch)
}

// showBatches shows what is appended, a line for each record.
func (s *scenario) showBatches(batches []machine.Batch) (out []string) {
	for _, b := range batches {
		suffix := ""
		if p := b.Producer; p != nil {
			suffix = fmt.Sprintf(" in a transaction of %d/%d", p.ID, p.Epoch)
		}
		for _, r := range b.Records {
			text := s.showRecord(r) + suffix
			if o, ok := r.(*schema.OffsetRecord); ok && o.Value != nil && o.Value.Start > 0 {
				text += fmt.Sprintf(" begun at %d", o.Value.Start)
			}
			out = append(out, text)
		}
		if b.Control != nil {
			end := "abort"
			if b.Control.Commit {
				end = "commit"
			}
			out = append(out, fmt.Sprintf("%s of %d/%d by coordinator %d", end, b.Producer.ID, b.Producer.Epoch, b.Control.CoordinatorEpoch))
		}
	}
	return out
}

func (s *scenario) showTxn(msg kmsg.Response) string {
	switch m := msg.(type) {
	case *kmsg.TxnOffsetCommitResponse:
		out := "txn-commit:"
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				out += fmt.Sprintf(" %s:%d %s", t.Topic, p.Partition, harness.ErrorName(p.ErrorCode))
			}
		}
		return out
	case *kmsg.WriteTxnMarkersResponse:
		out := "marker:"
		for _, e := range m.Markers {
			for _, t := range e.Topics {
				for _, p := range t.Partitions {
					out += fmt.Sprintf(" %d on %s-%d %s", e.ProducerID, t.Topic, p.Partition, harness.ErrorName(p.ErrorCode))
				}
			}
		}
		return out
	}
	return fmt.Sprintf("%T", msg)
}

// parseBatch reads a line of the replay command.
func (s *scenario) parseBatch(a args) machine.Batch {
	var b machine.Batch
	if a.D.HasArg("pid") {
		id, epoch := a.producer()
		b.Producer = &machine.Producer{ID: id, Epoch: epoch, Transactional: true}
	}
	if a.D.Cmd == "commit" || a.D.Cmd == "abort" {
		b.Control = &machine.Control{Commit: a.D.Cmd == "commit", CoordinatorEpoch: int32(a.Number("coordinator", 0))}
		return b
	}
	b.Records = []machine.Record{s.parseRecord(a)}
	return b
}
