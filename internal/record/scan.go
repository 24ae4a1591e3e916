package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Meta is what Scan tells of a record.
type Meta struct {
	Offset    int64
	Timestamp int64
	HasKey    bool
}

// scanning bounds how many batches are scanned at a time. A small batch may
// unpack to very much, and who sends such batches must leave some of the
// processor to others.
var scanning = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// Scan calls fn with every record in order, without holding any of them in
// memory: for who must look into batches of clients that may mean ill. It stops
// at fn's first error.
func (b Batch) Scan(fn func(Meta) error) error {
	scanning <- struct{}{}
	defer func() { <-scanning }()
	src, done, err := unpacker(b.Codec(), b[HeaderSize:])
	if err != nil {
		return fmt.Errorf("%w: unpack %s: %w", ErrCorrupt, b.Codec(), err)
	}
	defer done()
	in := &scanner{r: bufio.NewReaderSize(src, 32<<10)}
	for i := range b.Count() {
		m, err := b.scanRecord(in)
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if err := fn(m); err != nil {
			return err
		}
	}
	return nil
}

func (b Batch) scanRecord(in *scanner) (m Meta, err error) {
	size := in.varint()
	end := in.n + size
	in.skip(1) // Record attributes.
	ts, delta, key := in.varint(), in.varint(), in.varint()
	if in.err == nil && (size < 0 || in.n > end || delta < 0 || delta > int64(b.LastOffsetDelta())) {
		return m, ErrCorrupt
	}
	in.skip(end - in.n)
	if in.err != nil {
		return m, fmt.Errorf("%w: %w", ErrCorrupt, in.err)
	}
	m = Meta{Offset: b.BaseOffset() + delta, Timestamp: b.BaseTimestamp() + ts, HasKey: key >= 0}
	if b.LogAppendTime() {
		m.Timestamp = b.MaxTimestamp()
	}
	return m, nil
}

// scanner reads unpacked bytes and counts them. After the first failure err is
// set and everything is zero.
type scanner struct {
	r   *bufio.Reader
	n   int64
	err error
}

// ReadByte implements io.ByteReader.
func (s *scanner) ReadByte() (byte, error) {
	s.n++
	return s.r.ReadByte()
}

func (s *scanner) varint() int64 {
	if s.err != nil {
		return 0
	}
	v, err := binary.ReadVarint(s)
	if err != nil {
		s.err = err
		return 0
	}
	return v
}

func (s *scanner) skip(n int64) {
	if s.err == nil && s.n+n > MaxDecompressed {
		s.err = ErrTooLarge
	}
	for n > 0 && s.err == nil {
		var d int
		d, s.err = s.r.Discard(int(min(n, 1<<20)))
		n -= int64(d)
		s.n += int64(d)
	}
}

// unpacker returns a reader of the unpacked bytes; done must be called after
// it. Snappy has no stream here, but unpacks to no more than 64 times its size.
func unpacker(c Codec, src []byte) (r io.Reader, done func(), err error) {
	nothing := func() {}
	switch c {
	case Gzip:
		r, err = gzip.NewReader(bytes.NewReader(src))
		return r, nothing, err
	case LZ4:
		return lz4.NewReader(bytes.NewReader(src)), nothing, nil
	case ZSTD:
		d := zstdDecoders.Get().(*zstd.Decoder)
		if err := d.Reset(bytes.NewReader(src)); err != nil {
			return nil, nil, err
		}
		return d, func() { zstdDecoders.Put(d) }, nil
	}
	b, err := decompress(c, src)
	return bytes.NewReader(b), nothing, err
}
