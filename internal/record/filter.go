package record

import (
	"encoding/binary"
	"io"
	"slices"
)

// Filter returns the batch with the records that keep wants, the batch itself if
// that is all of them, and nil if it is none. Nothing unpacked is held in memory: a small
// batch may unpack to very much.
func (b Batch) Filter(keep func(*Keyed) bool) (Batch, error) {
	var wanted []bool
	n, newest := 0, int64(NoTimestamp)
	err := b.ScanKeys(func(k *Keyed) error {
		wanted = append(wanted, keep(k))
		if wanted[len(wanted)-1] {
			n++
			newest = max(newest, k.Timestamp)
		}
		return nil
	})
	switch {
	case err != nil || n == 0:
		return nil, err
	case n == int(b.Count()):
		return b, nil
	}
	out := &bounded{max: MaxDecompressed, b: slices.Clone(b[:HeaderSize])}
	dst, finish, err := packer(Packing{Codec: b.Codec(), Level: defaultLevels[b.Codec()]}, out)
	if err != nil {
		return nil, err
	}
	defer finish()
	if err := b.copyWanted(struct{ io.Writer }{dst}, wanted); err != nil { // Without lz4's ReadFrom, which may be called once.
		return nil, err
	}
	if err := dst.Close(); err != nil {
		return nil, err
	}
	nb := Batch(out.b)
	binary.BigEndian.PutUint32(nb[8:], uint32(len(nb)-lengthOverhead))
	binary.BigEndian.PutUint64(nb[35:], uint64(newest))
	binary.BigEndian.PutUint32(nb[57:], uint32(n))
	nb.seal()
	return nb, nil
}

var defaultLevels = [...]int{Gzip: DefaultGzipLevel, LZ4: DefaultLZ4Level, ZSTD: DefaultZSTDLevel}

// copyWanted copies the records that are wanted, unpacked, as they are.
func (b Batch) copyWanted(dst io.Writer, wanted []bool) error {
	i := 0
	return b.stream(func(in *scanner) error {
		size := in.varint()
		i++
		if in.err != nil || size < 0 || !wanted[i-1] {
			in.skip(size)
			return in.failed()
		}
		if _, err := dst.Write(binary.AppendVarint(nil, size)); err != nil {
			return err
		}
		in.copy(dst, size)
		return in.failed()
	})
}

// Emptied returns the batch without its records, as compaction leaves it where the
// producer's sequence must be found again. Its offsets, sequences and timestamps
// are those that it had.
func (b Batch) Emptied() Batch {
	e := slices.Clone(b[:HeaderSize])
	binary.BigEndian.PutUint32(e[8:], MinBatchLength)
	binary.BigEndian.PutUint16(e[21:], uint16(b.Attributes())&^codecMask)
	binary.BigEndian.PutUint32(e[57:], 0)
	e.seal()
	return e
}
