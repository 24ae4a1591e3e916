package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec is a compression codec as numbered in batch attributes.
type Codec int8

// The codecs.
const (
	None Codec = iota
	Gzip
	Snappy
	LZ4
	ZSTD
)

// String returns the codec's name in compression.type.
func (c Codec) String() string {
	names := [...]string{"none", "gzip", "snappy", "lz4", "zstd"}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("codec(%d)", int8(c))
	}
	return names[c]
}

// ParseCodec returns the codec of a name in compression.type.
func ParseCodec(name string) (Codec, bool) {
	switch name {
	case "uncompressed", "none":
		return None, true
	case "gzip":
		return Gzip, true
	case "snappy":
		return Snappy, true
	case "lz4":
		return LZ4, true
	case "zstd":
		return ZSTD, true
	}
	return None, false
}

// MaxDecompressed bounds what a batch may unpack to, so that a small batch
// cannot make the broker allocate without bound.
const MaxDecompressed = 256 << 20

// ErrTooLarge says that a batch unpacks to more than MaxDecompressed.
var ErrTooLarge = errors.New("record batch unpacks to too many bytes")

var zstdDecoders = sync.Pool{New: newDecoder}

func newDecoder() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxDecompressed))
	if err != nil {
		panic("zstd decoder options are fixed: " + err.Error())
	}
	return d
}

// decompress unpacks src.
func decompress(c Codec, src []byte) ([]byte, error) {
	switch c {
	case None:
		return src, nil
	case Gzip:
		r, err := gzip.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		return readBounded(r, MaxDecompressed)
	case Snappy:
		n, err := snappySize(src)
		if err != nil {
			return nil, err
		}
		return decodeSnappy(make([]byte, 0, n), src)
	case LZ4:
		return readBounded(lz4.NewReader(bytes.NewReader(src)), MaxDecompressed)
	case ZSTD:
		d := zstdDecoders.Get().(*zstd.Decoder)
		defer zstdDecoders.Put(d)
		if err := d.Reset(bytes.NewReader(src)); err != nil {
			return nil, err
		}
		return readBounded(d, MaxDecompressed)
	}
	return nil, fmt.Errorf("%w: unknown compression codec %d", ErrCorrupt, c)
}

// readBounded reads all that there is, unless that is more than so much.
func readBounded(r io.Reader, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > most {
		return nil, ErrTooLarge
	}
	return b, nil
}

// xerialMagic starts the framing that Java's snappy library puts around blocks.
// Other clients send one bare block.
var xerialMagic = []byte{0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

// snappyGrows is how many times its size snappy unpacks to at most: an element of three
// bytes yields 64.
const snappyGrows = 64

// eachSnappyBlock calls fn with every block.
func eachSnappyBlock(src []byte, fn func(block []byte) error) error {
	if !bytes.HasPrefix(src, xerialMagic) || len(src) < xerialHeader {
		return fn(src)
	}
	for src = src[xerialHeader:]; len(src) > 0; {
		if len(src) < 4 {
			return ErrTruncated
		}
		n := int(int32(binary.BigEndian.Uint32(src)))
		if n < 0 || n > len(src)-4 {
			return ErrTruncated
		}
		if err := fn(src[4 : 4+n]); err != nil {
			return err
		}
		src = src[4+n:]
	}
	return nil
}

// decodeSnappy appends what src unpacks to, of which dst has room for snappySize.
func decodeSnappy(dst, src []byte) ([]byte, error) {
	err := eachSnappyBlock(src, func(block []byte) error {
		plain, err := snappy.Decode(dst[len(dst):cap(dst)], block)
		dst = dst[:len(dst)+len(plain)]
		return err
	})
	return dst, err
}

var zstdEncoders = sync.Pool{New: func() any {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic("zstd encoder options are fixed: " + err.Error())
	}
	return e
}}

// compress packs src; the result of None is src itself.
func compress(c Codec, src []byte) ([]byte, error) {
	var out bytes.Buffer
	var w io.WriteCloser
	switch c {
	case None:
		return src, nil
	case Gzip:
		w = gzip.NewWriter(&out)
	case Snappy:
		return snappy.Encode(nil, src), nil
	case LZ4:
		w = lz4.NewWriter(&out)
	case ZSTD:
		e := zstdEncoders.Get().(*zstd.Encoder)
		defer zstdEncoders.Put(e)
		return e.EncodeAll(src, nil), nil
	default:
		return nil, fmt.Errorf("%w: unknown compression codec %d", ErrInvalid, c)
	}
	if _, err := w.Write(src); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
