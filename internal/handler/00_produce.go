// Produce (key 0) appends record batches.
//
//	v3   message format v2        v8   error message and record errors
//	v5   log start offset         v9   flexible
//	v7   zstd                     v10  leader hints
//	v13  topic ids
//
// From version 12 on a transactional batch adds its partition to the transaction
// (KIP-890); before, the partition must have been added. Version 11 has
// TRANSACTION_ABORTABLE.
//
// Left out: versions below 3 (older message formats).

package handler

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/quota"
	"muster/internal/record"
)

// errAcksZero ends the connection of a producer that does not want answers, so
// that it learns of a failure at all.
var errAcksZero = errors.New("produce with acks=0 failed")

// produceCall collects the outcomes of one Produce request. Partitions report
// theirs from wherever the disk's answer reaches them; the last one completes
// the response.
type produceCall struct {
	*call
	request  protocol.Request // the frame behind call is gone by then
	how      partition.Produce
	outcomes []*produceOutcome
	bytes    int // of all batches
	open     atomic.Int32
	resp     *protocol.Response
	settled  chan struct{} // closed at the end; only for acks=0
	throttle int32         // milliseconds for which the connection is not read
	share    *share        // of what its client may send, nil if there is no quota
	image    *metadata.Image
	h        *Handler
}

type produceOutcome struct {
	topic   string
	topicID [16]byte
	first   bool
	index   int32
	result  partition.Appended
	name    string               // of the topic, in every version
	records []byte               // until they are appended
	part    *partition.Partition // that they go to, nil if they are refused
	counted producedBatch
}

// outcomeSize is about the memory of an outcome and its place in the answer, which
// is counted for so many outcomes at a time.
const (
	outcomeSize   = 384
	countOutcomes = 64
)

func (h *Handler) produce(ctx context.Context, c *call) (*protocol.Response, error) {
	req, err := c.ParseProduce()
	if err != nil {
		return nil, err
	}
	p := &produceCall{call: c, request: c.Request, resp: protocol.NewPending(), image: c.image, h: h}
	p.how = partition.Produce{Acks: req.Acks, Version: c.Version}
	if req.TransactionalID != nil {
		p.how.TransactionalID = *req.TransactionalID
	}
	p.request.Body = nil
	for part, ok := req.Next(); ok; part, ok = req.Next() {
		p.outcomes = append(p.outcomes, &produceOutcome{topic: part.Topic, topicID: part.TopicID, first: part.First, index: part.Index, records: part.Records})
		if len(p.outcomes)%countOutcomes == 0 && !c.origin.Conn.Hold(countOutcomes*outcomeSize) {
			return nil, protocol.ErrMemory
		}
	}
	if err := req.Err(); err != nil {
		return nil, err
	}
	p.share = h.share(c, quota.Produced)
	p.throttle = c.throttle(quota.Produced, p.share.take(c.Size))
	p.resp.Weigh(len(p.outcomes) * outcomeSize)
	p.open.Store(int32(len(p.outcomes)) + 1) // One is this function's, until all partitions are begun.
	refused := c.checkProducers(p.how.TransactionalID, p.outcomes)
	for _, o := range p.outcomes {
		p.bytes += len(o.records)
		o.part = p.destination(o, refused)
	}
	p.appendAll(ctx)
	p.throttle = c.charge(p.throttle)
	if p.how.Acks == 0 {
		// There is no answer, but what comes next on the connection comes after
		// it, and a failure must be known by then.
		p.settled = make(chan struct{})
		p.done()
		<-p.settled
		return nil, p.failure()
	}
	p.done()
	return p.resp, nil
}

const (
	// appendShare is how many partitions a goroutine is worth that appends to some of many.
	appendShare = 32
	// smallShare is how large the batches of a request are, on average, that are all
	// written before the first is made durable. Larger ones keep the disk busy meanwhile.
	smallShare = 16 << 10
)

// appendAll begins the append of every batch that is not refused. If they are many that is
// done side by side, since writing them takes longest; those of a partition stay in order.
// Small ones are made durable when all are written, so that this is done together.
func (p *produceCall) appendAll(ctx context.Context) {
	workers := int32(max(1, min(runtime.GOMAXPROCS(0), len(p.outcomes)/appendShare)))
	var others beside
	for w := int32(1); w < workers; w++ {
		others.Go(func() { p.appendSome(ctx, w, workers) })
	}
	p.appendSome(ctx, 0, workers)
	others.Wait()
}

// appendSome does one of so many shares of that.
func (p *produceCall) appendSome(ctx context.Context, share, of int32) {
	how := p.how
	if n := len(p.outcomes); n > 1 && p.bytes/n <= smallShare {
		how.Later = &partition.Flushes{}
		defer how.Later.Begin()
	}
	for _, o := range p.outcomes {
		if o.part == nil || o.index%of != share {
			continue
		}
		records := o.records
		o.records = nil // They lie in the frame.
		o.part.Append(ctx, records, how, func(a partition.Appended) { p.report(o, a) })
	}
}

// report takes an outcome.
func (p *produceCall) report(o *produceOutcome, a partition.Appended) {
	o.result = a
	o.count(p.origin.Number)
	p.done()
}

// destination returns the partition that a batch goes to, or nil if it is refused.
func (p *produceCall) destination(o *produceOutcome, refused *kerr.Error) *partition.Partition {
	refuse := func(err *kerr.Error, msg string) *partition.Partition {
		o.records = nil
		p.report(o, partition.Appended{Err: err, Message: msg, BaseOffset: -1, LogAppendTime: -1, LogStartOffset: -1})
		return nil
	}
	if refused != nil {
		return refuse(refused, "")
	}
	name := o.topic
	if p.Version >= 13 {
		var ok bool
		if name, ok = topicName(p.image, o.topicID); !ok {
			return refuse(kerr.UnknownTopicID, "")
		}
	}
	p.h.countProduced(p.image, name, o.records, o)
	if !p.may(auth.Write, auth.Topic, name) {
		return refuse(kerr.TopicAuthorizationFailed, "")
	}
	if acks := p.how.Acks; acks < -1 || acks > 1 {
		return refuse(kerr.InvalidRequiredAcks, fmt.Sprintf("acks must be -1, 0 or 1, not %d", acks))
	}
	if err, msg := checkBatch(o.records, p.Version); err != nil {
		return refuse(err, msg)
	}
	if metadata.IsInternal(name) {
		return refuse(kerr.InvalidTopicException, fmt.Sprintf("topic %q is internal; clients may not produce to it", name))
	}
	o.name = name
	part, err := p.h.find(p.image, name, o.index)
	if err != nil {
		return refuse(err, "")
	}
	if record.Batch(o.records).Transactional() {
		if err, msg := p.h.holds(p.image.Topic(name)); err != nil {
			return refuse(err, msg)
		}
	}
	return part
}

// checkProducers checks what depends on all batches of a request together, and
// returns the error for all of them. Batches that are cut short say nothing; they
// are refused each for itself.
func (c *call) checkProducers(transactionalID string, outcomes []*produceOutcome) *kerr.Error {
	producer, any := int64(0), false
	for _, o := range outcomes {
		if len(o.records) < record.HeaderSize {
			continue
		}
		b := record.Batch(o.records)
		switch {
		case !b.Transactional():
		case transactionalID == "" || !c.may(auth.Write, auth.TransactionalID, transactionalID):
			return kerr.TransactionalIDAuthorizationFailed
		case any && b.ProducerID() != producer:
			return kerr.InvalidProducerIDMapping
		default:
			producer, any = b.ProducerID(), true
		}
	}
	return nil
}

// checkBatch checks what depends on the request: that there is exactly one
// batch, in a form that the version allows.
func checkBatch(records []byte, version int16) (*kerr.Error, string) {
	n, err := record.Peek(records)
	switch {
	case len(records) == 0:
		return kerr.InvalidRecord, "no record batch"
	case errors.Is(err, record.ErrMagic):
		return kerr.InvalidRecord, "only message format v2 is supported: " + err.Error()
	case err != nil || n > len(records):
		return kerr.CorruptMessage, "the record batch is cut short"
	case n < len(records):
		return kerr.InvalidRecord, "more than one record batch for a partition"
	case len(records) >= record.HeaderSize && record.Batch(records).Codec() == record.ZSTD && version < 7:
		return kerr.UnsupportedCompressionType, "zstd needs Produce version 7"
	}
	return nil, ""
}

// done counts one report; the last completes the response.
func (p *produceCall) done() {
	if p.open.Add(-1) > 0 {
		return
	}
	p.chargeStored()
	if p.how.Acks != 0 {
		p.resp.Complete(&p.request, p.response())
	} else if p.settled != nil {
		close(p.settled)
	}
}

// chargeStored counts what is stored beyond what was sent: packed records are unpacked where
// each is an entry of its own. The next request waits for it.
func (p *produceCall) chargeStored() {
	if p.share == nil {
		return
	}
	var stored int64
	for _, o := range p.outcomes {
		stored += o.result.Stored
	}
	if more := stored - int64(p.request.Size); more > 0 {
		p.throttle = max(p.throttle, int32(p.share.take(int(more))/time.Millisecond))
	}
}

// failure returns an error if a partition refused.
func (p *produceCall) failure() error {
	for _, o := range p.outcomes {
		if o.result.Err != nil {
			return fmt.Errorf("%w: %s-%d: %w", errAcksZero, o.topic, o.index, o.result.Err)
		}
	}
	return nil
}

func (p *produceCall) response() kmsg.Response {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version, resp.ThrottleMillis = p.request.Version, p.throttle
	for _, o := range p.outcomes {
		if o.first {
			t := kmsg.NewProduceResponseTopic()
			t.Topic, t.TopicID = o.topic, o.topicID
			resp.Topics = append(resp.Topics, t)
		}
		out := kmsg.NewProduceResponseTopicPartition()
		out.Partition = o.index
		out.ErrorCode = errCode(o.result.Err)
		out.BaseOffset = o.result.BaseOffset
		out.LogAppendTime = o.result.LogAppendTime
		out.LogStartOffset = o.result.LogStartOffset
		if o.result.Err != nil && o.result.Message != "" {
			out.ErrorMessage = &o.result.Message
		}
		for i := range o.result.Records {
			bad := kmsg.NewProduceResponseTopicPartitionErrorRecord()
			bad.RelativeOffset, bad.ErrorMessage = o.result.Records[i].Index, &o.result.Records[i].Message
			out.ErrorRecords = append(out.ErrorRecords, bad)
		}
		p.addHint(resp, &out, o)
		t := &resp.Topics[len(resp.Topics)-1]
		t.Partitions = append(t.Partitions, out)
	}
	return resp
}

// addHint tells who leads a partition instead of this broker, from version 10 on.
func (p *produceCall) addHint(resp *kmsg.ProduceResponse, out *kmsg.ProduceResponseTopicPartition, o *produceOutcome) {
	hint, ok := p.h.hint(p.origin.Listener, o.name, o.index, o.result.Err)
	if !ok || resp.Version < 10 {
		return
	}
	out.CurrentLeader.LeaderID, out.CurrentLeader.LeaderEpoch = hint.Leader, hint.LeaderEpoch
	if slices.ContainsFunc(resp.Brokers, func(b kmsg.ProduceResponseBroker) bool { return b.NodeID == hint.Leader }) {
		return
	}
	b := kmsg.NewProduceResponseBroker()
	b.NodeID, b.Host, b.Port = hint.Leader, hint.endpoint.Host, hint.endpoint.Port
	if hint.broker.Rack != "" {
		b.Rack = &hint.broker.Rack
	}
	resp.Brokers = append(resp.Brokers, b)
}
