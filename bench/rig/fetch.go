package rig

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// What a consumer asks for by default.
const (
	FetchMaxBytes     = 50 << 20
	PartitionMaxBytes = 1 << 20
)

// pieceSize is how much of a partition fits into an answer, in whole batches.
func pieceSize(batchSize int) int { return PartitionMaxBytes / batchSize * batchSize }

// Fetcher reads a topic from the broker, all partitions at a time.
type Fetcher struct {
	Conn    net.Conn
	in      *bufio.Reader
	topic   string
	shape   Shape
	batch   int     // size of a batch
	End     int64   // offset at which the partitions end
	Offsets []int64 // to read next
	Verify  bool    // look at every batch
	Grows   bool    // more is produced meanwhile
	Read    int64   // bytes of batches
}

// NewFetcher reads what a load has produced.
func NewFetcher(c net.Conn, topic string, l *Load, end int64) *Fetcher {
	return &Fetcher{Conn: c, in: bufio.NewReaderSize(c, 1<<20), topic: topic, shape: l.Shape, batch: l.BatchSize, End: end}
}

// brokerFetch reads everything back from the broker.
func (r *dataRound) brokerFetch(ph phase) error {
	l := newLoad(topicFor(flushFirst), -1)
	n := r.requests(l)
	conns, err := r.Connect(r.broker, 1)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	f := NewFetcher(conns[0], topicFor(flushFirst), l, int64((n+n/20)*BatchRecords))
	// The first pass warms up, and looks at every batch.
	f.Verify = true
	if err := f.Pass(); err != nil {
		return err
	}
	f.Verify, f.Read = false, 0
	return r.measure(ph, broker, r.broker, func() (int64, error) {
		for range fetchPasses {
			if err := f.Pass(); err != nil {
				return 0, err
			}
		}
		return f.Read, nil
	})
}

// Pass reads all partitions from the beginning to the end.
func (f *Fetcher) Pass() error {
	f.Offsets = make([]int64, f.shape.Partitions)
	for slices.Min(f.Offsets) < f.End {
		if err := f.Fetch(); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
	}
	return nil
}

// FetchRequest asks for no partition of a topic yet.
func FetchRequest(topic string, maxBytes int) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version = 11
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes = 500, 1, int32(maxBytes)
	req.SessionEpoch = -1 // no session
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	req.Topics = append(req.Topics, t)
	return req
}

func FetchPartition(index int32, offset int64, maxBytes int) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = index, offset, int32(maxBytes)
	p.CurrentLeaderEpoch = -1
	return p
}

func (f *Fetcher) Fetch() error {
	req := FetchRequest(f.topic, FetchMaxBytes)
	t := &req.Topics[0]
	for i, offset := range f.Offsets {
		if offset < f.End {
			t.Partitions = append(t.Partitions, FetchPartition(int32(i), offset, PartitionMaxBytes))
		}
	}
	if _, err := f.Conn.Write(RequestFrame(req, 1)); err != nil {
		return err
	}
	return f.answer(len(t.Partitions))
}

// answer reads a Fetch answer of version 11 without keeping its records.
func (f *Fetcher) answer(want int) error {
	before := f.Read
	if err := readFetched(f.in, f.topic, want, f.partition); err != nil {
		return err
	}
	if f.Read == before {
		return errors.New("an answer without records")
	}
	return nil
}

// fetched is what a Fetch answer tells of a partition, before its records.
type fetched struct {
	index int32
	high  int64 // watermark
	size  int   // of the records, which follow
}

// readFetched reads a Fetch answer of version 11, for one topic. It has fn read
// the records of each partition.
func readFetched(in *bufio.Reader, topic string, want int, fn func(fetched) error) error {
	// length, correlation id, throttle, error, session, topics, name
	head := make([]byte, 4+4+4+2+4+4+2+len(topic)+4)
	if _, err := io.ReadFull(in, head); err != nil {
		return err
	}
	left := int(binary.BigEndian.Uint32(head)) + 4 - len(head)
	if err := kerr.ErrorForCode(int16(binary.BigEndian.Uint16(head[12:]))); err != nil {
		return err
	}
	topics, got := binary.BigEndian.Uint32(head[18:]), int(binary.BigEndian.Uint32(head[len(head)-4:]))
	if topics != 1 || string(head[24:24+len(topic)]) != topic || got != want {
		return fmt.Errorf("answer for %d topics and %d partitions, asked for 1 and %d", topics, got, want)
	}
	for range got {
		// index, error, high watermark, last stable offset, log start offset,
		// aborted transactions, preferred replica, length of records
		var head [4 + 2 + 8 + 8 + 8 + 4 + 4 + 4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		if err := kerr.ErrorForCode(int16(binary.BigEndian.Uint16(head[4:]))); err != nil {
			return err
		}
		p := fetched{int32(binary.BigEndian.Uint32(head[:])), int64(binary.BigEndian.Uint64(head[6:])), int(int32(binary.BigEndian.Uint32(head[38:])))}
		if p.size < 0 || p.size > PartitionMaxBytes {
			return fmt.Errorf("%d bytes of records for partition %d", p.size, p.index)
		}
		if err := fn(p); err != nil {
			return fmt.Errorf("partition %d: %w", p.index, err)
		}
		left -= len(head) + p.size
	}
	if left != 0 {
		return fmt.Errorf("%d bytes too many in the answer", left)
	}
	return nil
}

// partition reads one partition of an answer.
func (f *Fetcher) partition(p fetched) error {
	if p.index < 0 || int(p.index) >= len(f.Offsets) {
		return errors.New("not asked for")
	}
	if p.high != f.End && !(f.Grows && p.high > f.End) {
		return fmt.Errorf("high watermark %d, expected %d", p.high, f.End)
	}
	if err := f.records(p.index, p.size); err != nil {
		return err
	}
	// The last batch may be cut short: a broker need not look where one ends.
	f.Offsets[p.index] += int64(p.size / f.batch * f.shape.Records)
	f.Read += int64(p.size / f.batch * f.batch)
	return nil
}

func (f *Fetcher) records(index int32, n int) error {
	if n < f.batch {
		_, err := f.in.Discard(n)
		return err
	}
	if f.Verify {
		b := make([]byte, n)
		if _, err := io.ReadFull(f.in, b); err != nil {
			return err
		}
		_, err := CheckBatches(b[:n/f.batch*f.batch], f.Offsets[index])
		return err
	}
	first, err := f.in.Peek(8)
	if err != nil {
		return err
	}
	if base := int64(binary.BigEndian.Uint64(first)); base != f.Offsets[index] {
		return fmt.Errorf("records from offset %d, asked for %d", base, f.Offsets[index])
	}
	_, err = f.in.Discard(n)
	return err
}

// bareFetch does the same with the bare program, on the files it has written.
func (r *dataRound) bareFetch(ph phase) error {
	p, err := r.startBare("_source", filepath.Join(r.folder, "bare-"+flushFirst))
	if err != nil {
		return err
	}
	defer p.Kill()
	conns, err := r.Connect(p, 1)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	l := newLoad(topicFor(flushFirst), -1)
	n := r.requests(l)
	total := int64((n + n/20) * l.Bytes())
	in := bufio.NewReaderSize(conns[0], 1<<20)
	if err := barePass(conns[0], in, total, true); err != nil {
		return err
	}
	err = r.measure(ph, bare, p, func() (int64, error) {
		for range fetchPasses {
			if err := barePass(conns[0], in, total, false); err != nil {
				return 0, err
			}
		}
		return fetchPasses * total, nil
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, p.Stderr)
	}
	return p.Stop()
}

func barePass(c net.Conn, in *bufio.Reader, total int64, verify bool) error {
	request := RequestFrame(kmsg.NewPtrFetchRequest(), 1)
	for total > 0 {
		if _, err := c.Write(request); err != nil {
			return err
		}
		if verify {
			_, body, err := ReadFrame(in, nil)
			if err != nil {
				return err
			}
			if _, err := CheckBatches(body, -1); err != nil {
				return err
			}
			total -= int64(len(body))
			continue
		}
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(head[:])) - 4
		if _, err := in.Discard(n); err != nil {
			return err
		}
		total -= int64(n)
	}
	if total < 0 {
		return fmt.Errorf("the bare program sent %d bytes too many", -total)
	}
	return nil
}
