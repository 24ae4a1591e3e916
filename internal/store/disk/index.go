package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"sort"

	"muster/internal/store"
	"muster/internal/store/vfs"
)

// indexEntry points at a batch in a segment. Entries are sparse: one for the
// first batch, then one for the first batch after every index interval.
type indexEntry struct {
	rel uint32 // base offset of the batch, relative to the segment's
	pos uint32 // position of the batch in the file
	// before is the largest timestamp of all batches before this one.
	before int64
}

const (
	indexMagic     = 0x4d555349 // MUSI
	indexFixedSize = 40
	epochSize      = 12
	entrySize      = 16
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

var errIndex = errors.New("index file does not fit its segment")

// summary is what is kept in memory of every segment.
type summary struct {
	size   int64              // bytes in the file
	next   int64              // offset after the last record
	maxTS  int64              // largest timestamp, or record.NoTimestamp
	epochs []store.EpochStart // leader epochs that begin in the segment
	// print is a checksum over the batches' heads. It tells an index file from
	// that of another segment of the same name and size, since compaction gives
	// a name to several segments in turn.
	print uint32
}

// encodeIndex makes the content of an index file: a head with the summary and
// its own checksum, so that it can be read alone, then the entries and theirs.
func encodeIndex(sum summary, entries []indexEntry) []byte {
	b := make([]byte, 0, indexFixedSize+len(sum.epochs)*epochSize+len(entries)*entrySize+8)
	b = binary.BigEndian.AppendUint32(b, indexMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(sum.epochs)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(entries)))
	b = binary.BigEndian.AppendUint32(b, sum.print)
	b = binary.BigEndian.AppendUint64(b, uint64(sum.size))
	b = binary.BigEndian.AppendUint64(b, uint64(sum.next))
	b = binary.BigEndian.AppendUint64(b, uint64(sum.maxTS))
	for _, e := range sum.epochs {
		b = binary.BigEndian.AppendUint32(b, uint32(e.Epoch))
		b = binary.BigEndian.AppendUint64(b, uint64(e.Start))
	}
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
	start := len(b)
	for _, e := range entries {
		b = binary.BigEndian.AppendUint32(b, e.rel)
		b = binary.BigEndian.AppendUint32(b, e.pos)
		b = binary.BigEndian.AppendUint64(b, uint64(e.before))
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], crcTable))
}

// decodeIndexHead reads the summary and says how many entries follow it and
// where.
func decodeIndexHead(b []byte) (sum summary, entries, at int, err error) {
	if len(b) < indexFixedSize || binary.BigEndian.Uint32(b) != indexMagic {
		return sum, 0, 0, errIndex
	}
	nEpochs := int(binary.BigEndian.Uint32(b[4:]))
	at = indexFixedSize + nEpochs*epochSize + 4
	if nEpochs > len(b)/epochSize || at > len(b) {
		return sum, 0, 0, errIndex
	}
	if crc32.Checksum(b[:at-4], crcTable) != binary.BigEndian.Uint32(b[at-4:]) {
		return sum, 0, 0, errIndex
	}
	sum.print = binary.BigEndian.Uint32(b[12:])
	sum.size = int64(binary.BigEndian.Uint64(b[16:]))
	sum.next = int64(binary.BigEndian.Uint64(b[24:]))
	sum.maxTS = int64(binary.BigEndian.Uint64(b[32:]))
	for i := range nEpochs {
		e := b[indexFixedSize+i*epochSize:]
		sum.epochs = append(sum.epochs, store.EpochStart{
			Epoch: int32(binary.BigEndian.Uint32(e)), Start: int64(binary.BigEndian.Uint64(e[4:])),
		})
	}
	return sum, int(binary.BigEndian.Uint32(b[8:])), at, nil
}

// decodeIndex reads a whole index file.
func decodeIndex(b []byte) (summary, []indexEntry, error) {
	sum, n, at, err := decodeIndexHead(b)
	if err != nil {
		return sum, nil, err
	}
	if n > len(b)/entrySize || at+n*entrySize+4 != len(b) {
		return sum, nil, errIndex
	}
	body := b[at : at+n*entrySize]
	if crc32.Checksum(body, crcTable) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return sum, nil, errIndex
	}
	entries := make([]indexEntry, n)
	for i := range entries {
		e := body[i*entrySize:]
		entries[i] = indexEntry{
			rel: binary.BigEndian.Uint32(e), pos: binary.BigEndian.Uint32(e[4:]),
			before: int64(binary.BigEndian.Uint64(e[8:])),
		}
	}
	return sum, entries, nil
}

// writeFile replaces a file. Without sync, a crash may leave it torn, which
// its reader must notice.
func writeFile(fsys vfs.FS, name string, content []byte, sync bool) error {
	tmp := name + ".tmp"
	if err := removeIfThere(fsys, tmp); err != nil {
		return err
	}
	f, err := fsys.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, 0)
	if err == nil && sync {
		err = f.Datasync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	if sync {
		return fsys.SyncDir(path.Dir(name))
	}
	return nil
}

// readFile reads up to limit bytes of a file, all of it if limit is negative.
func readFile(fsys vfs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	size, err := f.Size()
	if err == nil && limit >= 0 {
		size = min(size, limit)
	}
	var b []byte
	if err == nil && size > 0 {
		b = make([]byte, size)
		_, err = f.ReadAt(b, 0)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// entryAtOrBefore returns the last entry whose batch starts at or before the
// relative offset. The first entry stands for the start of the segment.
func entryAtOrBefore(entries []indexEntry, rel uint32) indexEntry {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].rel > rel })
	if i == 0 {
		return indexEntry{}
	}
	return entries[i-1]
}

// lastEntryWithin returns the position of the last indexed batch that starts
// after from and not after to.
func lastEntryWithin(entries []indexEntry, from, to int64) (int64, bool) {
	i := sort.Search(len(entries), func(i int) bool { return int64(entries[i].pos) > to })
	if i == 0 || int64(entries[i-1].pos) <= from {
		return 0, false
	}
	return int64(entries[i-1].pos), true
}

// entryBeforeTimestamp returns the last entry before which no batch has a
// timestamp of ts or more.
func entryBeforeTimestamp(entries []indexEntry, ts int64) indexEntry {
	i := sort.Search(len(entries), func(i int) bool { return entries[i].before >= ts })
	if i == 0 {
		return indexEntry{}
	}
	return entries[i-1]
}
