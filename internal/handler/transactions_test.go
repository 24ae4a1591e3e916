package handler_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/record"
)

// initTxn gives a transactional id a producer.
func (w *world) initTxn(id string) (pid int64, epoch int16) {
	w.t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &id, 60_000
	resp := w.request(req).(*kmsg.InitProducerIDResponse)
	assert.MustEqual(w.t, resp.ErrorCode, 0, "init: error")
	return resp.ProducerID, resp.ProducerEpoch
}

// add adds partitions of topic t to a transaction.
func (w *world) add(id string, pid int64, epoch int16, topic string, parts ...int32) []int16 {
	w.t.Helper()
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = 3, id, pid, epoch
	req.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: topic, Partitions: parts}, {Topic: "t", Partitions: []int32{1}}}
	var codes []int16
	for _, t := range w.request(req).(*kmsg.AddPartitionsToTxnResponse).Topics {
		for _, p := range t.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	return codes
}

// txnBatch is a batch of a transaction.
func txnBatch(t testing.TB, pid int64, epoch int16, sequence int32) []byte {
	t.Helper()
	from := record.PlainTemplate()
	from.ProducerID, from.ProducerEpoch, from.BaseSequence, from.Transactional = pid, epoch, sequence, true
	b, err := record.Build(from, []record.Record{{Value: []byte("v")}})
	must(t, err)
	return b
}

// produceTxn produces batches to the partitions of t in order.
func (w *world) produceTxn(version int16, id *string, batches ...[]byte) []kmsg.ProduceResponseTopicPartition {
	w.t.Helper()
	req := w.produceRequest(version)
	req.TransactionID = id
	for i, b := range batches {
		req.Topics[0].Partitions = append(req.Topics[0].Partitions, kmsg.ProduceRequestTopicPartition{Partition: int32(i), Records: b})
	}
	return w.request(req).(*kmsg.ProduceResponse).Topics[0].Partitions
}

func (w *world) end(id string, pid int64, epoch int16, commit bool) int16 {
	w.t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = 4, id, pid, epoch, commit
	return w.request(req).(*kmsg.EndTxnResponse).ErrorCode
}

// fetched reads partition 0 of t.
func (w *world) fetched(isolation int8) kmsg.FetchResponseTopicPartition {
	w.t.Helper()
	req := waitingFetch(0)
	req.IsolationLevel = isolation
	req.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
	return w.request(req).(*kmsg.FetchResponse).Topics[0].Partitions[0]
}

// decided waits until partition 0 of t has so many stable offsets.
func (w *world) decided(n int64) {
	w.t.Helper()
	for w.m.Get("t", 0).LastStableOffset() < n {
		runtime.Gosched()
	}
}

// begun has a transaction x with one batch in partition 0 of t.
func begun(t *testing.T) (w *world, pid int64, epoch int16) {
	t.Helper()
	w = newWorld(t)
	pid, epoch = w.initTxn("x")
	assert.MustEqualSlices(t, w.add("x", pid, epoch, "t", 0), []int16{0, 0}, "added")
	id := "x"
	if got := w.produceTxn(11, &id, txnBatch(t, pid, epoch, 0)); got[0].ErrorCode != 0 {
		t.Fatalf("produced: %+v", got)
	}
	return w, pid, epoch
}

func TestATransactionIsSeenWhenItIsDecided(t *testing.T) {
	w, pid, epoch := begun(t)
	if got := w.fetched(1); len(got.RecordBatches) > 0 || got.LastStableOffset != 0 || got.HighWatermark != 1 || got.AbortedTransactions == nil {
		t.Errorf("committed records while it is open: %+v", got)
	}
	if got := w.fetched(0); len(got.RecordBatches) == 0 || got.LastStableOffset != 0 || got.AbortedTransactions != nil {
		t.Errorf("all records while it is open: %+v", got)
	}
	producers := kmsg.NewPtrDescribeProducersRequest()
	producers.Topics = []kmsg.DescribeProducersRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	describe := func() kmsg.DescribeProducersResponseTopicPartitionActiveProducer {
		return w.request(producers).(*kmsg.DescribeProducersResponse).Topics[0].Partitions[0].ActiveProducers[0]
	}
	if got := describe(); got.CurrentTxnStartOffset != 0 || got.CoordinatorEpoch != -1 || got.ProducerID != pid {
		t.Errorf("producer %+v", got)
	}
	assert.MustEqual(t, w.end("x", pid, epoch, false), 0)
	w.decided(2)
	got := w.fetched(1)
	if want := []kmsg.FetchResponseTopicPartitionAbortedTransaction{{ProducerID: pid, FirstOffset: 0}}; len(got.RecordBatches) == 0 || !slices.EqualFunc(got.AbortedTransactions, want, sameAborted) {
		t.Errorf("committed records after an abort: %+v", got)
	}
	if got := w.fetched(0); got.AbortedTransactions != nil {
		t.Errorf("a reader of all records is told what to skip: %+v", got)
	}
	if got := describe(); got.CurrentTxnStartOffset != -1 || got.CoordinatorEpoch != 0 {
		t.Errorf("producer %+v", got)
	}
}

func sameAborted(a, b kmsg.FetchResponseTopicPartitionAbortedTransaction) bool {
	return a.ProducerID == b.ProducerID && a.FirstOffset == b.FirstOffset
}

func TestBatchesOfATransactionNeedItsIDAndOneProducer(t *testing.T) {
	w := newWorld(t)
	plain := []byte(batch(t, 1))
	id := "x"
	for _, tt := range []struct {
		id      *string
		batches [][]byte
		want    *kerr.Error
	}{
		{nil, [][]byte{plain, txnBatch(t, 5, 0, 0)}, kerr.TransactionalIDAuthorizationFailed},
		{&id, [][]byte{txnBatch(t, 5, 0, 0), txnBatch(t, 6, 0, 0)}, kerr.InvalidProducerIDMapping},
	} {
		for _, version := range []int16{9, 12} {
			for _, p := range w.produceTxn(version, tt.id, tt.batches...) {
				assert.True(t, p.ErrorCode == tt.want.Code, "v%d, partition %d: error %d, want %v", version, p.Partition, p.ErrorCode, tt.want)
			}
		}
	}
	assert.Equal(t, w.m.Get("t", 0).LogEndOffset(), 0, "records were appended")
}

func TestABatchOfSomebodyElsesTransactionIsRefused(t *testing.T) {
	w, pid, epoch := begun(t)
	id, other := "x", "y"
	stranger, _ := w.initTxn(other)
	for _, tt := range []struct {
		id    *string
		batch []byte
	}{
		{&other, txnBatch(t, pid+1000, 0, 0)},     // a producer that was never given
		{&id, txnBatch(t, stranger, 0, 0)},        // another's id
		{&id, txnBatch(t, pid, epoch+1, 0)},       // an epoch that was never given
		{&other, txnBatch(t, stranger, epoch, 0)}, // not added
	} {
		if got := w.produceTxn(11, tt.id, tt.batch); got[0].ErrorCode == 0 {
			t.Errorf("%s: %+v", *tt.id, got)
		}
	}
	assert.Equal(t, w.m.Get("t", 0).LogEndOffset(), 1, "the log ends")
}

func TestQuestionsAboutTransactionsAreForBrokersOnly(t *testing.T) {
	w, pid, epoch := begun(t)
	for _, version := range []int16{4, 5} {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.Version = version
		req.Transactions = []kmsg.AddPartitionsToTxnRequestTransaction{{
			TransactionalID: "x", ProducerID: pid, ProducerEpoch: epoch, VerifyOnly: true,
			Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: "t", Partitions: []int32{0}}},
		}}
		if got := w.request(req).(*kmsg.AddPartitionsToTxnResponse); got.ErrorCode != kerr.ClusterAuthorizationFailed.Code || len(got.Transactions) != 0 {
			t.Errorf("v%d of a client: %+v", version, got)
		}
		got := w.byBroker(req).(*kmsg.AddPartitionsToTxnResponse)
		assert.True(t, got.ErrorCode == 0 && len(got.Transactions) == 1 && got.Transactions[0].Topics[0].Partitions[0].ErrorCode == 0, "v%d: %+v", version, got)
		if start := machine.TxnStartOf(&got.Transactions[0].Topics[0].Partitions[0].UnknownTags); start <= 0 {
			t.Errorf("v%d: the transaction began at %d", version, start)
		}
	}
}

// markers is a request to abort a transaction in partitions.
func markers(pid int64, epoch int16, topic string, parts ...int32) *kmsg.WriteTxnMarkersRequest {
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = 1
	req.Markers = []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: pid, ProducerEpoch: epoch, Topics: []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: topic, Partitions: parts}}}}
	return req
}

func (w *world) marked(req *kmsg.WriteTxnMarkersRequest) (codes []int16) {
	w.t.Helper()
	return codesOf(w.request(req))
}

// codesOf are the errors of an answer to markers.
func codesOf(resp kmsg.Response) (codes []int16) {
	for _, m := range resp.(*kmsg.WriteTxnMarkersResponse).Markers {
		for _, topic := range m.Topics {
			for _, p := range topic.Partitions {
				codes = append(codes, p.ErrorCode)
			}
		}
	}
	return codes
}

func TestTheStartInAMarkerIsBelievedOfBrokersOnly(t *testing.T) {
	w, pid, epoch := begun(t)
	late := func() *kmsg.WriteTxnMarkersRequest {
		req := markers(pid, epoch, "t", 0)
		machine.TxnStart(1).Set(&req.Markers[0].UnknownTags) // Of a transaction long ago.
		return req
	}
	if codes := codesOf(w.byBroker(late())); !slices.Equal(codes, []int16{0}) || w.m.Get("t", 0).LastStableOffset() != 0 {
		t.Errorf("a late marker: %v, and the last stable offset is %d", codes, w.m.Get("t", 0).LastStableOffset())
	}
	if codes := w.marked(late()); !slices.Equal(codes, []int16{0}) || w.m.Get("t", 0).LastStableOffset() != 2 {
		t.Errorf("a marker of an administrator: %v, and the last stable offset is %d", codes, w.m.Get("t", 0).LastStableOffset())
	}
}

func TestMarkersAreForPartitionsThatExistAndAreNotTheBrokersOwn(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		topic string
		part  int32
		want  *kerr.Error
	}{
		{"none", 0, kerr.UnknownTopicOrPartition}, {"t", -1, kerr.UnknownTopicOrPartition}, {"t", 2, kerr.UnknownTopicOrPartition},
		{metadata.TransactionsTopic, 0, kerr.TopicAuthorizationFailed}, {metadata.OffsetsTopic, 3, kerr.UnknownTopicOrPartition},
		{metadata.OffsetsTopic, 0, nil}, {"t", 0, nil},
	} {
		got := w.marked(markers(7, 0, tt.topic, tt.part))
		assert.True(t, len(got) == 1 && kerr.TypedErrorForCode(got[0]) == tt.want, "%s-%d: %v, want %v", tt.topic, tt.part, got, tt.want)
	}
	assert.Equal(t, w.m.Get(metadata.TransactionsTopic, 0).LogEndOffset(), 0, "records in the log of transactions")
}

func TestARequestOfABrokerDoesNotHoldUpTheNext(t *testing.T) {
	w := newWorld(t)
	w.store.flushes = make(chan func(), 1)
	req := markers(7, 0, "t", 0)
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, req, 7)[4:]
	resp, err := w.h.Serve(t.Context(), aBroker, frame)
	must(t, err)
	clear(frame) // It is used again.
	flush := <-w.store.flushes
	assert.True(t, resp.Pending(), "it is answered before the marker is durable")
	flush()
	got := w.decode(req, resp).(*kmsg.WriteTxnMarkersResponse).Markers
	assert.True(t, len(got) == 1 && got[0].ProducerID == 7 && got[0].Topics[0].Partitions[0].ErrorCode == 0, "%+v", got)
}

func TestClientsCannotAddInternalTopicsToTransactions(t *testing.T) {
	w := newWorld(t)
	pid, epoch := w.initTxn("x")
	for _, name := range []string{metadata.OffsetsTopic, metadata.TransactionsTopic} {
		want := []int16{kerr.TopicAuthorizationFailed.Code, kerr.OperationNotAttempted.Code}
		assert.EqualSlices(t, w.add("x", pid, epoch, name, 0), want, "%s", name)
	}
	assert.EqualSlices(t, w.add("x", pid, epoch, "none", 0), []int16{kerr.UnknownTopicOrPartition.Code, kerr.OperationNotAttempted.Code}, "a topic that does not exist")
}

func TestOffsetsInATransactionForAPartitionThatDoesNotExistAreRefusedForThemselves(t *testing.T) {
	w := newWorld(t)
	pid, epoch := w.initTxn("x")
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = 5, "x", "g", pid, epoch
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{
		{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Partition: 5}, {Partition: 1, Offset: 4}}}, {Topic: "none", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{}}},
	}
	var codes []int16
	for _, topic := range w.request(req).(*kmsg.TxnOffsetCommitResponse).Topics {
		for _, p := range topic.Partitions {
			codes = append(codes, p.ErrorCode)
		}
	}
	if missing := kerr.UnknownTopicOrPartition.Code; !slices.Equal(codes, []int16{missing, 0, missing}) {
		t.Errorf("%v", codes)
	}
	fetch := &kmsg.OffsetFetchRequest{Version: 8, RequireStable: true, Groups: []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: "t", Partitions: []int32{1}}}}}}
	if got := w.request(fetch).(*kmsg.OffsetFetchResponse).Groups[0].Topics[0].Partitions[0]; got.ErrorCode != kerr.UnstableOffsetCommit.Code {
		t.Errorf("a stable offset while the transaction is open: %+v", got)
	}
}

func TestAMarkerForOffsetsIsTheGroupCoordinatorsToWrite(t *testing.T) {
	w := newWorld(t)
	pid, epoch := w.initTxn("x")
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch = 5, "x", "g", pid, epoch
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 4}}}}
	if got := w.request(req).(*kmsg.TxnOffsetCommitResponse).Topics[0].Partitions[0]; got.ErrorCode != 0 {
		t.Fatalf("%+v", got)
	}
	commit := markers(pid, epoch, metadata.OffsetsTopic, coordinator.PartitionFor("g", 3))
	commit.Markers[0].Committed = true
	assert.MustEqualSlices(t, w.marked(commit), []int16{0})
	fetch := &kmsg.OffsetFetchRequest{Version: 8, RequireStable: true, Groups: []kmsg.OffsetFetchRequestGroup{{Group: "g"}}}
	got := w.request(fetch).(*kmsg.OffsetFetchResponse).Groups[0].Topics
	assert.True(t, len(got) == 1 && got[0].Partitions[0].Offset == 4 && got[0].Partitions[0].ErrorCode == 0, "committed are %+v", got)
}

func TestProducerIDsInBlocksAreThisBrokersOwn(t *testing.T) {
	w := newWorld(t)
	frame := kmsg.NewRequestFormatter().AppendRequest(nil, kmsg.NewPtrAllocateProducerIDsRequest(), 7)[4:]
	if _, err := w.h.Serve(t.Context(), handler.Origin{Listener: "L"}, frame); err == nil {
		t.Error("a client was given producer ids")
	}
	resp, err := w.h.Do(t.Context(), kmsg.NewPtrAllocateProducerIDsRequest())
	assert.True(t, err == nil && resp.(*kmsg.AllocateProducerIDsResponse).ProducerIDLen >= 1, "%+v, %v", resp, err)
}
