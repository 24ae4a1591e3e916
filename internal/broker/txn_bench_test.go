package broker_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/broker"
	"muster/internal/record"
)

// BenchmarkTransaction counts what one transaction of version 2 with a record in
// each of some partitions takes, from the socket on. Topics are in memory, so that it
// is not about the disk. The client is as small as one can be.
func BenchmarkTransaction(b *testing.B) {
	for _, partitions := range []int{1, 12} {
		b.Run(fmt.Sprintf("%d partitions", partitions), func(b *testing.B) {
			c := dialTxn(b, partitions)
			b.ReportAllocs()
			for b.Loop() {
				c.transaction(b, partitions)
			}
		})
	}
}

// txnConn is a transactional producer that knows nothing but how to write.
type txnConn struct {
	net.Conn
	id    string
	pid   int64
	epoch int16
	in    []byte
}

func dialTxn(b *testing.B, partitions int) *txnConn {
	broker, err := broker.Open(b.Context(), broker.Config{
		Properties: map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem", "num.partitions": fmt.Sprint(partitions)},
		Logger:     slog.New(slog.DiscardHandler),
	})
	must(b, err)
	b.Cleanup(func() { _ = broker.Close() })
	conn, err := net.Dial("tcp", broker.Addr())
	must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	c := &txnConn{Conn: conn, id: "bench"}
	create := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "t", int32(partitions), 1
	create.Version, create.Topics = 4, append(create.Topics, topic)
	c.do(b, create)
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.Version, find.CoordinatorType, find.CoordinatorKeys = 4, 1, []string{c.id}
	c.do(b, find)
	init := kmsg.NewPtrInitProducerIDRequest()
	init.Version, init.TransactionalID, init.TransactionTimeoutMillis = 4, &c.id, 60_000
	for {
		resp := c.do(b, init).(*kmsg.InitProducerIDResponse)
		if resp.ErrorCode == 0 {
			c.pid, c.epoch = resp.ProducerID, resp.ProducerEpoch
			return c
		}
	}
}

func (c *txnConn) transaction(b *testing.B, partitions int) {
	from := record.PlainTemplate()
	from.ProducerID, from.ProducerEpoch, from.BaseSequence, from.Transactional = c.pid, c.epoch, 0, true
	batch, err := record.Build(from, []record.Record{{Value: []byte("v")}})
	must(b, err)
	produce := kmsg.NewPtrProduceRequest()
	produce.Version, produce.TransactionID, produce.Acks, produce.TimeoutMillis = 12, &c.id, -1, 10_000
	topic := kmsg.ProduceRequestTopic{Topic: "t", Partitions: make([]kmsg.ProduceRequestTopicPartition, partitions)}
	for i := range topic.Partitions {
		topic.Partitions[i].Partition, topic.Partitions[i].Records = int32(i), batch
	}
	produce.Topics = []kmsg.ProduceRequestTopic{topic}
	for len(produce.Topics[0].Partitions) > 0 {
		// The markers of the transaction before may take a while.
		produce.Topics[0].Partitions = c.concurrent(b, produce, c.do(b, produce).(*kmsg.ProduceResponse))
	}
	end := kmsg.NewPtrEndTxnRequest()
	end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = 5, c.id, c.pid, c.epoch, true
	ended := c.do(b, end).(*kmsg.EndTxnResponse)
	if ended.ErrorCode != 0 {
		b.Fatal("end: error", ended.ErrorCode)
	}
	c.pid, c.epoch = ended.ProducerID, ended.ProducerEpoch
}

// concurrent returns what is to be produced again, because the transaction before has
// not ended yet.
func (c *txnConn) concurrent(b *testing.B, req *kmsg.ProduceRequest, resp *kmsg.ProduceResponse) (again []kmsg.ProduceRequestTopicPartition) {
	for i, p := range resp.Topics[0].Partitions {
		switch p.ErrorCode {
		case 0:
		case kerr.ConcurrentTransactions.Code:
			again = append(again, req.Topics[0].Partitions[i])
		default:
			b.Fatal("produce: error", p.ErrorCode)
		}
	}
	return again
}

// do sends a request and reads the answer.
func (c *txnConn) do(b *testing.B, req kmsg.Request) kmsg.Response {
	frame := binary.BigEndian.AppendUint16(make([]byte, 4, 512), uint16(req.Key()))
	frame = binary.BigEndian.AppendUint16(frame, uint16(req.GetVersion()))
	frame = append(frame, 0, 0, 0, 1, 0xff, 0xff) // the correlation id, and no client id
	if req.IsFlexible() {
		frame = append(frame, 0)
	}
	frame = req.AppendTo(frame)
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := c.Write(frame); err != nil {
		b.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		b.Fatal(err)
	}
	if n := int(binary.BigEndian.Uint32(size[:])); cap(c.in) < n {
		c.in = make([]byte, n)
	} else {
		c.in = c.in[:n]
	}
	if _, err := io.ReadFull(c, c.in); err != nil {
		b.Fatal(err)
	}
	resp, body := req.ResponseKind(), c.in[4:]
	if req.IsFlexible() {
		body = body[1:]
	}
	must(b, resp.ReadFrom(body))
	return resp
}
