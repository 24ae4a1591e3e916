package rig

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// gapReader reads some partitions of a topic whose offsets may have gaps, as
// those of layout stream have.
type gapReader struct {
	conn       net.Conn
	in         *bufio.Reader
	topic      string
	partitions []int32
	want       int // records in each partition
	at         map[int32]*gapPosition
	verify     bool // look at every batch
}

// gapPosition is how far a partition was read.
type gapPosition struct {
	offset  int64 // to read next
	records int   // read so far
}

func newGapReader(c net.Conn, topic string, partitions []int32, want int) *gapReader {
	return &gapReader{conn: c, in: bufio.NewReaderSize(c, 1<<20), topic: topic, partitions: partitions, want: want}
}

// pass reads all partitions from the beginning to the end.
func (g *gapReader) pass(verify bool) error {
	g.at, g.verify = map[int32]*gapPosition{}, verify
	starts, err := ListOffsets(g.conn, g.topic, g.partitions, Earliest)
	if err != nil {
		return err
	}
	for p, start := range starts {
		g.at[p] = &gapPosition{offset: start}
	}
	for {
		req := FetchRequest(g.topic, FetchMaxBytes)
		t := &req.Topics[0]
		for _, p := range g.partitions {
			if at := g.at[p]; at.records < g.want {
				t.Partitions = append(t.Partitions, FetchPartition(p, at.offset, PartitionMaxBytes))
			}
		}
		if len(t.Partitions) == 0 {
			return nil
		}
		if _, err := g.conn.Write(RequestFrame(req, 1)); err != nil {
			return err
		}
		if err := readFetched(g.in, g.topic, len(t.Partitions), g.partition); err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
	}
}

// partition reads the batches of a partition.
func (g *gapReader) partition(p fetched) error {
	at := g.at[p.index]
	if at == nil {
		return errors.New("not asked for")
	}
	for left := p.size; left > 0; {
		if left < HeaderSize {
			_, err := g.in.Discard(left)
			return err
		}
		head, err := g.in.Peek(HeaderSize)
		if err != nil {
			return err
		}
		base, size := int64(binary.BigEndian.Uint64(head)), int(binary.BigEndian.Uint32(head[8:]))+12
		delta, records := int64(binary.BigEndian.Uint32(head[23:])), int(binary.BigEndian.Uint32(head[57:]))
		if size > left { // The last one may be cut short.
			_, err := g.in.Discard(left)
			return err
		}
		if base < at.offset || size < HeaderSize {
			return fmt.Errorf("a batch of %d bytes at offset %d, asked for %d", size, base, at.offset)
		}
		if err := g.batch(size); err != nil {
			return err
		}
		at.offset, at.records, left = base+delta+1, at.records+records, left-size
	}
	if at.records > g.want {
		return fmt.Errorf("%d records, expected %d", at.records, g.want)
	}
	return nil
}

func (g *gapReader) batch(size int) error {
	if !g.verify {
		_, err := g.in.Discard(size)
		return err
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(g.in, b); err != nil {
		return err
	}
	_, err := CheckBatches(b, -1)
	return err
}
