package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// txnRecord is how large the value of a record is.
const txnRecord = 1 << 10

// txnProducer is a client that makes transactions, or sends as many records at a
// time without.
type txnProducer struct {
	client        *kgo.Client
	transactional bool
	partitions    int
	next          int // partition
	value         []byte
	failed        atomic.Pointer[error] // why a record was not written
	added         atomic.Bool           // partitions were added by a request of their own
}

// newTxnProducer makes a client with a transactional id, or without for "".
// Nothing is sent before it is flushed, so that the batches are the same in
// each transaction.
func newTxnProducer(addr, topic, id string, partitions int, seed uint64) (*txnProducer, error) {
	p := &txnProducer{transactional: id != "", partitions: partitions, next: int(seed) % partitions, value: make([]byte, txnRecord)}
	random := rand.New(rand.NewPCG(seed, 2))
	for i := range p.value {
		p.value[i] = byte(random.Uint32())
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.ManualFlushing(), kgo.WithHooks(p),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()),
	}
	if p.transactional {
		opts = append(opts, kgo.TransactionalID(id))
	}
	var err error
	p.client, err = kgo.NewClient(opts...)
	return p, err
}

// OnBrokerWrite looks at what the client sends. A client of transaction version
// 2 has no need to add partitions.
func (p *txnProducer) OnBrokerWrite(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, _ error) {
	if key == int16(kmsg.AddPartitionsToTxn) {
		p.added.Store(true)
	}
}

// put writes some records to the partitions in turn, in a transaction if the
// client makes them.
func (p *txnProducer) put(ctx context.Context, records int, end kgo.TransactionEndTry) error {
	if p.transactional {
		if err := p.client.BeginTransaction(); err != nil {
			return err
		}
	}
	for range records {
		p.client.Produce(ctx, &kgo.Record{Partition: int32(p.next), Value: p.value}, p.written)
		p.next = (p.next + 1) % p.partitions
	}
	if err := p.client.Flush(ctx); err != nil {
		return err
	}
	if failed := p.failed.Load(); failed != nil {
		return fmt.Errorf("produce: %w", *failed)
	}
	if !p.transactional {
		return nil
	}
	if p.added.Load() {
		return errors.New("the client does not use transaction version 2")
	}
	return p.client.EndTransaction(ctx, end)
}

func (p *txnProducer) written(_ *kgo.Record, err error) {
	if err != nil {
		p.failed.CompareAndSwap(nil, &err)
	}
}

// TxnCrew is as many clients as a task wants.
type TxnCrew struct {
	*Bench
	TxnTask
	topic         string
	transactional bool
	producers     []*txnProducer
	made          int // transactions, or what is measured beside them
}

// NewTxnCrew makes the clients, whose transactional ids begin with a prefix, and
// a topic for them. Without a prefix they make no transactions.
func (b *Bench) NewTxnCrew(p *Process, t TxnTask, topic, prefix string) (*TxnCrew, error) {
	crew := &TxnCrew{Bench: b, TxnTask: t, topic: topic, transactional: prefix != ""}
	err := b.withProcess(p, func(c net.Conn) error { return b.NewTopic(c, topic, t.Partitions) })
	for i := 0; i < t.IDs && err == nil; i++ {
		id := ""
		if prefix != "" {
			id = fmt.Sprintf("%s-%d", prefix, i)
		}
		var producer *txnProducer
		if producer, err = newTxnProducer(p.Addr, topic, id, t.Partitions, uint64(i)); err == nil {
			crew.producers = append(crew.producers, producer)
		}
	}
	if err != nil {
		crew.Close()
	}
	return crew, err
}

func (w *TxnCrew) Close() {
	for _, p := range w.producers {
		p.client.Close()
	}
}

// each runs fn for all clients at the same time, and ends them all when one
// fails.
func (w *TxnCrew) each(fn func(ctx context.Context, i int, p *txnProducer) error) error {
	ctx, cancel := context.WithCancelCause(w.Context)
	defer cancel(nil)
	var running sync.WaitGroup
	for i, p := range w.producers {
		running.Go(func() {
			if err := fn(ctx, i, p); err != nil {
				cancel(err)
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// ProduceFor makes transactions for a while, one after the other with each
// client, and returns how many.
func (w *TxnCrew) ProduceFor(d time.Duration) (int, error) {
	var made atomic.Int64
	end := time.Now().Add(d)
	err := w.each(func(ctx context.Context, _ int, p *txnProducer) error {
		for n := 0; n == 0 || time.Now().Before(end); n++ {
			if err := p.put(ctx, w.Records, kgo.TryCommit); err != nil {
				return err
			}
			made.Add(1)
		}
		return nil
	})
	w.made += int(made.Load())
	return int(made.Load()), err
}

// Check checks that the topic has all records, and all markers: none more, so
// that nothing was written twice.
func (w *TxnCrew) Check(c net.Conn) error {
	want := w.made * w.Records
	if w.transactional {
		want += w.made * w.markers()
	}
	return w.AwaitSum(c, w.topic, w.Partitions, int64(want))
}

// AwaitSum waits until the log end offsets of a topic make a sum. The answer to
// EndTxn does not wait for the markers.
func (b *Bench) AwaitSum(c net.Conn, topic string, partitions int, want int64) error {
	all := make([]int32, partitions)
	for i := range all {
		all[i] = int32(i)
	}
	return b.Await(func() error {
		ends, err := ListOffsets(c, topic, all, latest)
		if err != nil {
			return err
		}
		sum := int64(0)
		for _, end := range ends {
			sum += end
		}
		switch {
		case sum < want:
			return fmt.Errorf("%s has %d records and markers, expected %d: %w", topic, sum, want, kerr.OffsetNotAvailable)
		case sum > want:
			return fmt.Errorf("%s has %d records and markers, expected %d", topic, sum, want)
		}
		return nil
	})
}
