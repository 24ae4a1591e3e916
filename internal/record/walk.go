package record

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// Walked is a record that Walk came by. What it points to is there for the call only.
type Walked struct {
	Record
	KeySize, ValueSize int // As they are in the log; 0 for null.
	Size               int // Of the record.
	// Cut says that the record has more bytes than are here: of key and value the
	// beginning at most, and none of the headers.
	Cut bool
}

// Walk calls fn with every record in order, as Each does, but holds no more than one
// of a packed batch in memory at a time, and of that no more than most bytes: for
// those who look at batches of others, which may unpack to very much. The unpacked
// bytes go through a reader of the caller, who can thus end it. It stops at fn's
// first error.
func (b Batch) Walk(most int, through func(io.Reader) io.Reader, fn func(*Walked) error) error {
	if b.Codec() == None {
		return b.walkPlain(fn)
	}
	unpack := unpacker
	if b.Codec() == ZSTD {
		unpack = walkZSTD
	}
	src, done, err := unpack(b.Codec(), b[HeaderSize:])
	if err != nil {
		return fmt.Errorf("%w: unpack %s: %w", ErrCorrupt, b.Codec(), err)
	}
	defer done()
	in := &scanner{r: readers.Get().(*bufio.Reader)}
	defer readers.Put(in.r)
	in.r.Reset(through(src))
	defer in.r.Reset(nil)
	var body []byte
	for i := range b.Count() {
		w, err := b.walkRecord(in, most, &body)
		if err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if err := fn(&w); err != nil {
			return err
		}
	}
	return nil
}

// walkRecord reads the next record, or as much of it as may be held.
func (b Batch) walkRecord(in *scanner, most int, body *[]byte) (w Walked, err error) {
	size := in.varint()
	if in.err != nil || size < 0 {
		return w, fmt.Errorf("%w: a record of %d bytes: %w", ErrCorrupt, size, in.err)
	}
	held := min(size, int64(most))
	if int64(cap(*body)) < held {
		*body = in.take(held) // It takes no more memory than there are bytes.
	} else {
		*body = (*body)[:held]
		var n int
		n, in.err = io.ReadFull(in.r, *body)
		in.n += int64(n)
	}
	in.skip(size - held)
	if in.err != nil {
		return w, in.failed()
	}
	w.Size = int(size)
	err = b.decodeWalked(*body, &w)
	return w, err
}

// walkPlain is Walk of a batch that is not packed: what is in memory anyway is shown whole.
func (b Batch) walkPlain(fn func(*Walked) error) error {
	d := decoder{b: b[HeaderSize:]}
	for i := range b.Count() {
		size := d.varint()
		body := d.bytes(size)
		if d.bad {
			return fmt.Errorf("%w: record %d", ErrCorrupt, i)
		}
		w := Walked{Size: int(size)}
		if err := b.decodeWalked(body, &w); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
		if err := fn(&w); err != nil {
			return err
		}
	}
	if len(d.b) != 0 {
		return fmt.Errorf("%w: %d bytes follow the last record", ErrCorrupt, len(d.b))
	}
	return nil
}

// decodeWalked reads a record of which so many bytes are there, without its headers if it
// has very many.
func (b Batch) decodeWalked(body []byte, w *Walked) error {
	if len(body) < w.Size || headersIn(body) > maxWalkedHeaders {
		return b.decodeCut(body, w)
	}
	err := b.decodeRecord(body, &w.Record)
	w.KeySize, w.ValueSize = len(w.Key), len(w.Value)
	return err
}

// maxWalkedHeaders is how many headers of a record are held. They take twenty times the
// memory of the bytes that they are in.
const maxWalkedHeaders = 1000

// headersIn says how many headers a record has.
func headersIn(body []byte) int64 {
	d := decoder{b: body}
	d.bytes(1)
	d.varint()
	d.varint()
	d.beginning(d.varint())
	d.beginning(d.varint())
	if n := d.varint(); !d.bad {
		return n
	}
	return 0
}

// decodeCut reads the beginning of a record.
func (b Batch) decodeCut(body []byte, w *Walked) error {
	d := decoder{b: body}
	d.bytes(1)
	ts, delta := d.varint(), d.varint()
	key := d.varint()
	if d.bad || delta < 0 || delta > int64(b.LastOffsetDelta()) {
		return ErrCorrupt
	}
	w.Cut, w.Offset, w.OffsetDelta, w.Timestamp = true, b.BaseOffset()+delta, int32(delta), b.BaseTimestamp()+ts
	if b.LogAppendTime() {
		w.Timestamp = b.MaxTimestamp()
	}
	if w.Key, w.KeySize = d.beginning(key); d.bad || len(w.Key) < w.KeySize {
		w.Value = []byte{}
		return nil
	}
	value := d.varint()
	if d.bad {
		value = 0
	}
	w.Value, w.ValueSize = d.beginning(value)
	return nil
}

// beginning returns as much of a field as is there, and how large it is.
func (d *decoder) beginning(n int64) (b []byte, size int) {
	if n < 0 {
		return nil, 0
	}
	return d.bytes(min(n, int64(len(d.b)))), int(n)
}

// smallWindow is how much of what it unpacked a decoder of zstd may always keep: as much as
// RFC 8878 asks of all of them.
const smallWindow = 8 << 20

// WalkMemory says how many bytes Walk may hold of a batch besides one record: of snappy all
// that it unpacks to, of zstd a window.
func (b Batch) WalkMemory() int64 {
	switch b.Codec() {
	case Snappy:
		return snappyGrows * int64(len(b))
	case ZSTD:
		return int64(zstdWindow(b[HeaderSize:]))
	}
	return 0
}

// zstdWindow is the largest window that may be in packed bytes: the one that the first frame
// asks for, unless that is small. A decoder takes memory for all of it before it unpacks a
// single byte.
func zstdWindow(src []byte) uint64 {
	var h zstd.Header
	_ = h.Decode(src) // What cannot be read cannot be unpacked either.
	asks := h.WindowSize
	if h.SingleSegment {
		asks = h.FrameContentSize
	}
	return min(max(asks, smallWindow), MaxDecompressed)
}

// walkDecoders are those whose windows are small: others are not kept.
var walkDecoders = sync.Pool{New: newDecoder}

// walkZSTD is unpacker for zstd, with no larger window than WalkMemory says, whatever the
// frames after the first ask for.
func walkZSTD(_ Codec, src []byte) (r io.Reader, done func(), err error) {
	window := zstdWindow(src)
	d := walkDecoders.Get().(*zstd.Decoder)
	if err := d.ResetWithOptions(bytes.NewReader(src), zstd.WithDecoderMaxWindow(window)); err != nil {
		return nil, nil, err
	}
	return d, func() {
		if window <= smallWindow {
			walkDecoders.Put(d)
		}
	}, nil
}
