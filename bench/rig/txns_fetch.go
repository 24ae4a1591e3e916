package rig

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	txnTopic       = "bench-aborted"
	abortedRecords = 10 // in a transaction that is aborted
	abortedInRow   = 4  // of them before one that is committed
)

// FillTxns writes a topic of one partition, in which transactions of many clients
// lie among each other, and returns its end. A consumer reads it, to see that
// it gets what was committed and nothing else.
func (b *Bench) FillTxns(p *Process) (int64, error) {
	crew, err := b.NewTxnCrew(p, TxnTask{Partitions: 1, IDs: b.Txn.fillers}, txnTopic, "fill")
	if err != nil {
		return 0, err
	}
	defer crew.Close()
	rounds := b.Txn.aborted / abortedInRow
	many := max(1, (int(b.Txn.topic*1e9)/txnRecord-b.Txn.aborted*abortedRecords)/rounds)
	b.Say("filling a topic with %d aborted transactions", rounds*abortedInRow)
	var begun atomic.Int64
	err = crew.each(func(ctx context.Context, _ int, p *txnProducer) error {
		for begun.Add(1) <= int64(rounds) {
			for range abortedInRow {
				if err := p.put(ctx, abortedRecords, kgo.TryAbort); err != nil {
					return err
				}
			}
			if err := p.put(ctx, many, kgo.TryCommit); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	end := int64(rounds * (abortedInRow*(abortedRecords+1) + many + 1))
	if err := b.withProcess(p, func(c net.Conn) error { return b.AwaitSum(c, txnTopic, 1, end) }); err != nil {
		return 0, err
	}
	if err := b.consumeCommitted(p, end, rounds*many); err != nil {
		return 0, err
	}
	_, err = b.Settle(p) // What it still does about the writing is no part of reading.
	return end, err
}

// consumeCommitted counts what a consumer with read_committed gets.
func (b *Bench) consumeCommitted(p *Process, end int64, want int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Addr), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{txnTopic: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return err
	}
	defer client.Close()
	got := 0
	for next := int64(0); next < end; {
		fetches := client.PollFetches(b.Context)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			next = r.Offset + 1
			if !r.Attrs.IsControl() {
				got++
			}
		})
	}
	if got != want {
		return fmt.Errorf("a consumer got %d records, %d were committed", got, want)
	}
	return nil
}

// TxnReader reads the topic from beginning to end, as a consumer would that does
// nothing with the records.
type TxnReader struct {
	conn      net.Conn
	committed bool
	end       int64 // offset at which the topic ends
	aborted   int   // transactions that it has at least
	buf       []byte
}

// WithTxnReader runs fn with a reader that has read the topic for a while
// already, to warm up.
func (b *Bench) WithTxnReader(p *Process, end int64, committed bool, fn func(*TxnReader) error) error {
	return b.withProcess(p, func(c net.Conn) error {
		r := &TxnReader{conn: c, committed: committed, end: end, aborted: b.Txn.aborted / abortedInRow * abortedInRow}
		if _, err := r.ReadFor(b.Txn.Warm); err != nil {
			return err
		}
		return fn(r)
	})
}

// ReadFor reads the whole topic again and again for a while, and returns how many
// bytes of batches it got.
func (r *TxnReader) ReadFor(d time.Duration) (int64, error) {
	var total int64
	for end := time.Now().Add(d); total == 0 || time.Now().Before(end); {
		n, err := r.pass()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// pass reads the topic once. An answer that tells of no aborted transactions
// would be a fast one.
func (r *TxnReader) pass() (int64, error) {
	var total int64
	aborted := 0
	for offset := int64(0); offset < r.end; {
		p, err := r.fetch(offset)
		if err != nil {
			return 0, fmt.Errorf("fetch: %w", err)
		}
		next, size, err := batchesEnd(p.RecordBatches, offset)
		if err != nil {
			return 0, err
		}
		aborted += len(p.AbortedTransactions)
		offset, total = next, total+int64(size)
	}
	if r.committed && aborted < r.aborted || !r.committed && aborted > 0 {
		return 0, fmt.Errorf("read_committed %v: the answers tell of %d aborted transactions, of %d", r.committed, aborted, r.aborted)
	}
	return total, nil
}

func (r *TxnReader) fetch(offset int64) (*kmsg.FetchResponseTopicPartition, error) {
	req := FetchRequest(txnTopic, FetchMaxBytes)
	if r.committed {
		req.IsolationLevel = 1
	}
	req.Topics[0].Partitions = append(req.Topics[0].Partitions, FetchPartition(0, offset, PartitionMaxBytes))
	if _, err := r.conn.Write(RequestFrame(req, 1)); err != nil {
		return nil, err
	}
	_, body, err := ReadFrame(r.conn, r.buf)
	if err != nil {
		return nil, err
	}
	r.buf = body
	resp := kmsg.NewPtrFetchResponse()
	resp.Version = req.Version
	if err := resp.ReadFrom(body); err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, errors.New("an answer for other partitions than asked for")
	}
	p := &resp.Topics[0].Partitions[0]
	if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
		return nil, err
	}
	if p.LastStableOffset != r.end {
		return nil, fmt.Errorf("last stable offset %d, expected %d", p.LastStableOffset, r.end)
	}
	return p, nil
}

// batchesEnd goes over record batches, the last of which may be cut short, and
// returns the offset that follows the whole ones, and their size.
func batchesEnd(b []byte, offset int64) (next int64, size int, err error) {
	for len(b)-size >= HeaderSize {
		head := b[size:]
		n := int(binary.BigEndian.Uint32(head[8:])) + 12
		base, delta := int64(binary.BigEndian.Uint64(head)), int64(binary.BigEndian.Uint32(head[23:]))
		if n > len(head) {
			break
		}
		// The first one may begin before the offset that was asked for.
		if n < HeaderSize || size > 0 && base != offset || base+delta < offset {
			return 0, 0, fmt.Errorf("a batch of %d bytes at offset %d, expected %d", n, base, offset)
		}
		offset, size = base+delta+1, size+n
	}
	if size == 0 {
		return 0, 0, errors.New("an answer without records")
	}
	return offset, size, nil
}
