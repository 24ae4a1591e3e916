package record

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

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

// scanning bounds how many packed batches are scanned at a time. A small batch
// may unpack to very much, and a client that sends such batches must leave some of
// the processor to others.
var scanning = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))

// readers are used again, since most batches are much smaller than a reader.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 32<<10) }}

// Scan calls fn with every record in order, without holding any of them in
// memory: for batches of clients that may be hostile. It stops at fn's first
// error.
func (b Batch) Scan(fn func(Meta) error) error {
	return b.stream(func(in *scanner) error {
		m, err := b.scanRecord(in, nil)
		if err != nil {
			return err
		}
		return fn(m)
	})
}

// stream calls one for every record, to read it.
func (b Batch) stream(one func(*scanner) error) error {
	if b.Codec() != None {
		scanning <- struct{}{}
		defer func() { <-scanning }()
	}
	src, done, err := unpacker(b.Codec(), b[HeaderSize:])
	if err != nil {
		return fmt.Errorf("%w: unpack %s: %w", ErrCorrupt, b.Codec(), err)
	}
	defer done()
	in := &scanner{r: readers.Get().(*bufio.Reader)}
	defer readers.Put(in.r)
	in.r.Reset(src)
	defer in.r.Reset(nil)
	for i := range b.Count() {
		if err := one(in); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

// Keyed is what ScanKeys tells of a record.
type Keyed struct {
	Meta
	// Key is the record's key, or what stands for it if it is large. It is there
	// for the call only.
	Key       []byte
	Tombstone bool // the record deletes its key
}

// largeKey is from what size on another key stands for a key.
const largeKey = 4 << 10

// ScanKeys is Scan with keys.
func (b Batch) ScanKeys(fn func(*Keyed) error) error {
	var k Keyed
	return b.stream(func(in *scanner) error {
		m, err := b.scanRecord(in, &k)
		if err != nil {
			return err
		}
		k.Meta = m
		return fn(&k)
	})
}

// scanRecord reads one record, with its key if k is not nil.
func (b Batch) scanRecord(in *scanner, k *Keyed) (m Meta, err error) {
	size := in.varint()
	end := in.n + size
	in.skip(1) // Record attributes.
	ts, delta, key := in.varint(), in.varint(), in.varint()
	if in.err == nil && (size < 0 || in.n > end || delta < 0 || delta > int64(b.LastOffsetDelta()) || key > end-in.n) {
		return m, ErrCorrupt
	}
	if k != nil {
		in.key(key, k)
		k.Tombstone = in.varint() < 0
		if in.err == nil && in.n > end {
			return m, ErrCorrupt
		}
	}
	in.skip(end - in.n)
	if in.err != nil {
		return m, in.failed()
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

// failed says what went wrong, if something did.
func (s *scanner) failed() error {
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, s.err)
}

// take returns the next bytes. It takes no more memory than there are bytes,
// however many are asked for.
func (s *scanner) take(n int64) []byte {
	var b bytes.Buffer
	s.copy(&b, n)
	return b.Bytes()
}

func (s *scanner) copy(to io.Writer, n int64) {
	if s.err == nil && s.n+n > MaxDecompressed {
		s.err = ErrTooLarge
	}
	if s.err != nil || n < 0 {
		return
	}
	var done int64
	done, s.err = io.CopyN(to, s.r, n)
	s.n += done
}

// key reads a key of a size, or one that stands for it.
func (s *scanner) key(n int64, k *Keyed) {
	k.Key = k.Key[:0]
	if n > largeKey {
		sum := sha256.New()
		s.copy(sum, n)
		k.Key = sum.Sum(append(k.Key, "sha256:"...))
		return
	}
	if n < 0 || s.err != nil {
		return
	}
	k.Key = slices.Grow(k.Key, int(n))[:n]
	var done int
	done, s.err = io.ReadFull(s.r, k.Key)
	s.n += int64(done)
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
