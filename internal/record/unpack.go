package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Unpack returns the batch's unpacked records, for EachIn. They are in dst, whose capacity
// bounds them: it fails with ErrTooLarge if they need more. No other memory depends on what
// the batch says of itself. Records that are not packed stay where they are.
func (b Batch) Unpack(dst []byte) ([]byte, error) {
	src := b[HeaderSize:]
	if b.Codec() == None {
		return src, nil
	}
	dst, err := unpackTo(dst[:0], b.Codec(), src)
	if err != nil && !errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%w: unpack %s: %w", ErrCorrupt, b.Codec(), err)
	}
	return dst, err
}

func unpackTo(dst []byte, c Codec, src []byte) ([]byte, error) {
	switch c {
	case Gzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		return readInto(dst, r)
	case LZ4:
		return readInto(dst, lz4.NewReader(bytes.NewReader(src)))
	case Snappy:
		n, err := snappySize(src)
		if err == nil && n > cap(dst) {
			err = ErrTooLarge
		}
		if err != nil {
			return nil, err
		}
		return decodeSnappy(dst, src)
	case ZSTD:
		d := cappedDecoders.Get().(*zstd.Decoder)
		defer cappedDecoders.Put(d)
		out, err := d.DecodeAll(src, dst)
		// The decoder has no value for a block that does not fit into what is left of dst.
		if errors.Is(err, zstd.ErrDecoderSizeExceeded) || err != nil && strings.HasPrefix(err.Error(), "output bigger than max block size") {
			err = ErrTooLarge
		}
		return out, err
	}
	return nil, fmt.Errorf("%w: unknown compression codec %d", ErrCorrupt, c)
}

// cappedDecoders unpack into the buffer that they are given, and never beyond it. That
// buffer is their window too, so none is allocated however large a frame wants it.
var cappedDecoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDecompressed), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("zstd decoder options are fixed: " + err.Error())
	}
	return d
}}

// readInto reads everything into dst's capacity.
func readInto(dst []byte, r io.Reader) ([]byte, error) {
	n, err := io.ReadFull(r, dst[:cap(dst)])
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && n < cap(dst):
		return dst[:n], endOf(r)
	case err != nil:
		return nil, err
	}
	if err := endOf(r); err != nil {
		return nil, err
	}
	return dst[:n], nil
}

// endOf says whether a reader is at its end. A stream that was cut short is told from one
// that ends by asking again.
func endOf(r io.Reader) error {
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return ErrTooLarge
	case errors.Is(err, io.EOF):
		return nil
	default:
		return err
	}
}

// snappySize says how many bytes packed ones unpack to, without unpacking them.
func snappySize(src []byte) (int, error) {
	size := 0
	err := eachSnappyBlock(src, func(block []byte) error {
		n, err := snappy.DecodedLen(block)
		if err != nil {
			return err
		}
		// A larger claim is a lie; believing it would allocate what the sender likes.
		if n > MaxDecompressed-size || n > snappyGrows*len(block) {
			return ErrTooLarge
		}
		size += n
		return nil
	})
	return size, err
}
