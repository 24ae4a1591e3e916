package record

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Packing is a codec with its level, in the codec's own scale as Kafka has it.
type Packing struct {
	Codec Codec
	Level int
}

// The levels that Kafka takes if none is set.
const (
	DefaultGzipLevel = -1
	DefaultLZ4Level  = 9
	DefaultZSTDLevel = 3
)

// Repack returns the batch with its records packed in another way, and all else
// as it was; the batch itself if its codec is already the one that is asked for,
// at whatever level. It fails with ErrTooLarge if the result would have more
// than maxSize bytes. The records are never in memory as a whole, packed or not,
// except in the result.
func (b Batch) Repack(to Packing, maxSize int) (Batch, error) {
	if b.Codec() == to.Codec {
		return b, nil
	}
	scanning <- struct{}{}
	defer func() { <-scanning }()
	src, done, err := unpacker(b.Codec(), b[HeaderSize:])
	if err != nil {
		return nil, fmt.Errorf("%w: unpack %s: %w", ErrCorrupt, b.Codec(), err)
	}
	defer done()
	out := &bounded{max: maxSize, b: slices.Clone(b[:HeaderSize])}
	dst, finish, err := packer(to, out)
	if err != nil {
		return nil, err
	}
	defer finish()
	if err := b.copyRecords(dst, src); err != nil {
		return nil, err
	}
	if err := dst.Close(); err != nil {
		return nil, err
	}
	nb := Batch(out.b)
	binary.BigEndian.PutUint32(nb[8:], uint32(len(nb)-lengthOverhead))
	binary.BigEndian.PutUint16(nb[21:], uint16(b.Attributes())&^codecMask|uint16(to.Codec))
	nb.seal()
	return nb, nil
}

// copyRecords copies unpacked records, and makes sure that they are records, as
// many as the header says.
func (b Batch) copyRecords(dst io.Writer, src io.Reader) error {
	in := &scanner{r: readers.Get().(*bufio.Reader)}
	defer readers.Put(in.r)
	in.r.Reset(io.TeeReader(src, dst))
	defer in.r.Reset(nil)
	for i := range b.Count() {
		if _, err := b.scanRecord(in, nil); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	switch _, err := in.r.ReadByte(); {
	case err == nil:
		return fmt.Errorf("%w: bytes follow the last record", ErrCorrupt)
	case errors.Is(err, io.EOF):
		return nil
	default:
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
}

// bounded is a buffer that takes no more than so many bytes.
type bounded struct {
	b   []byte
	max int
}

func (w *bounded) Write(p []byte) (int, error) {
	if len(p) > w.max-len(w.b) {
		return 0, fmt.Errorf("%w: more than %d", ErrTooLarge, w.max)
	}
	w.b = append(w.b, p...)
	return len(p), nil
}

// packer returns a writer that packs what is written to it. It must be closed,
// and done be called after that.
func packer(p Packing, to io.Writer) (w io.WriteCloser, done func(), err error) {
	nothing := func() {}
	switch p.Codec {
	case None:
		return plain{to}, nothing, nil
	case Gzip:
		w, err = gzip.NewWriterLevel(to, p.Level)
		return w, nothing, err
	case Snappy:
		return &xerialWriter{to: to}, nothing, nil
	case LZ4:
		w := lz4.NewWriter(to)
		err := w.Apply(lz4.CompressionLevelOption(lz4Level(p.Level)), lz4.BlockSizeOption(lz4.Block64Kb), lz4.ConcurrencyOption(1))
		return w, nothing, err
	case ZSTD:
		level := zstdLevel(p.Level)
		e := zstdWriters[level].Get().(*zstd.Encoder)
		e.Reset(to)
		return e, func() { e.Reset(nil); zstdWriters[level].Put(e) }, nil
	}
	return nil, nil, fmt.Errorf("%w: unknown compression codec %d", ErrInvalid, p.Codec)
}

// plain packs nothing.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// lz4Level translates a level. Kafka's default is the fast compressor, and all
// others, from 1 to 17, are levels of the slow one, of which there are nine here.
func lz4Level(level int) lz4.CompressionLevel {
	if level == DefaultLZ4Level {
		return lz4.Fast
	}
	levels := [...]lz4.CompressionLevel{lz4.Level1, lz4.Level2, lz4.Level3, lz4.Level4, lz4.Level5, lz4.Level6, lz4.Level7, lz4.Level8, lz4.Level9}
	return levels[min(max(level, 1), len(levels))-1]
}

// zstdLevel translates a level; 0 is the default, as in the library that Kafka
// uses.
func zstdLevel(level int) zstd.EncoderLevel {
	if level == 0 {
		level = DefaultZSTDLevel
	}
	return zstd.EncoderLevelFromZstd(level)
}

// zstdWriters holds encoders by their level, since they are costly to make.
var zstdWriters = map[zstd.EncoderLevel]*sync.Pool{
	zstd.SpeedFastest:           zstdPool(zstd.SpeedFastest),
	zstd.SpeedDefault:           zstdPool(zstd.SpeedDefault),
	zstd.SpeedBetterCompression: zstdPool(zstd.SpeedBetterCompression),
	zstd.SpeedBestCompression:   zstdPool(zstd.SpeedBestCompression),
}

func zstdPool(level zstd.EncoderLevel) *sync.Pool {
	return &sync.Pool{New: func() any {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(level), zstd.WithWindowSize(1<<20))
		if err != nil {
			panic("zstd encoder options are fixed: " + err.Error())
		}
		return e
	}}
}

// xerialBlock is how much Java's snappy library packs into one block.
const xerialBlock = 32 << 10

// xerialWriter writes the framing that Java's snappy library puts around blocks,
// which is what Kafka's own broker and clients write.
type xerialWriter struct {
	to      io.Writer
	started bool
	block   bytes.Buffer
}

func (w *xerialWriter) Write(p []byte) (n int, err error) {
	n = len(p)
	for len(p) > 0 {
		part := p[:min(len(p), xerialBlock-w.block.Len())]
		w.block.Write(part)
		p = p[len(part):]
		if w.block.Len() == xerialBlock {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (w *xerialWriter) flush() error {
	var out []byte
	if !w.started {
		w.started = true
		out = append(out, xerialMagic...)
		out = binary.BigEndian.AppendUint32(out, 1) // Version, and the oldest that can read it.
		out = binary.BigEndian.AppendUint32(out, 1)
	}
	packed := snappy.Encode(nil, w.block.Bytes())
	w.block.Reset()
	out = binary.BigEndian.AppendUint32(out, uint32(len(packed)))
	_, err := w.to.Write(append(out, packed...))
	return err
}

// Close writes what is left.
func (w *xerialWriter) Close() error {
	if w.block.Len() == 0 && w.started {
		return nil
	}
	return w.flush()
}
