package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path"
	"slices"

	"muster/internal/store"
)

const (
	snapshotMagic = 0x4d555350 // MUSP
	// keptSnapshots is how many snapshots stay, in case the newest is torn.
	keptSnapshots = 2
)

// SaveProducers implements store.Log. The snapshot is synced, since compaction
// may remove the batches it was made from.
func (h *handle) SaveProducers(_ context.Context, producers []store.Producer, nextOffset int64) error {
	l := h.log
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil {
		return err
	}
	if !l.made {
		return nil
	}
	if err := l.writeSnapshot(producers, nextOffset); err != nil {
		return l.storageError("save producers", err)
	}
	return nil
}

// writeSnapshot writes a snapshot and removes those that are not needed any
// more. appendMu is held.
func (l *log) writeSnapshot(producers []store.Producer, nextOffset int64) error {
	name := path.Join(l.dir, fmt.Sprintf("%020d%s", nextOffset, snapshotSuffix))
	if err := writeFile(l.store.fs, name, encodeProducers(producers), true); err != nil {
		return err
	}
	l.covered = max(l.covered, nextOffset)
	offsets, err := l.snapshots()
	if err != nil {
		return err
	}
	if extra := len(offsets) - keptSnapshots; extra > 0 {
		return l.removeSnapshots(offsets[:extra])
	}
	return nil
}

// Producers implements store.Log.
func (l *log) Producers(context.Context) ([]store.Producer, int64, error) {
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.shutDown {
		return nil, 0, store.ErrClosed
	}
	producers, next, err := l.lastSnapshot()
	if err != nil {
		return nil, 0, l.storageError("load producers", err)
	}
	logStart, _ := l.Bounds()
	return producers, max(next, logStart), nil
}

// lastSnapshot reads the newest snapshot that is whole, and of which offset it
// is. appendMu is held.
func (l *log) lastSnapshot() ([]store.Producer, int64, error) {
	_, logEnd := l.Bounds()
	offsets, err := l.snapshots()
	if err != nil {
		return nil, 0, err
	}
	for _, o := range slices.Backward(offsets) {
		if o > logEnd {
			continue
		}
		b, err := readFile(l.store.fs, path.Join(l.dir, fmt.Sprintf("%020d%s", o, snapshotSuffix)), -1)
		if err != nil {
			return nil, 0, err
		}
		if producers, err := decodeProducers(b); err == nil {
			return producers, o, nil
		}
	}
	return nil, 0, nil
}

// snapshots lists the offsets of the snapshot files in order.
func (l *log) snapshots() ([]int64, error) {
	entries, err := l.store.fs.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var offsets []int64
	for _, e := range entries {
		if o, ok := parseOffsetName(e.Name(), snapshotSuffix); ok {
			offsets = append(offsets, o)
		}
	}
	slices.Sort(offsets)
	return offsets, err
}

func (l *log) removeSnapshots(offsets []int64) error {
	for _, o := range offsets {
		name := path.Join(l.dir, fmt.Sprintf("%020d%s", o, snapshotSuffix))
		if err := removeIfThere(l.store.fs, name); err != nil {
			return err
		}
	}
	return nil
}

// dropSnapshotsAbove removes, durably, snapshots of a future that recovery cut
// off: once the log has grown past them again, they would be wrong.
func (l *log) dropSnapshotsAbove(logEnd int64) error {
	offsets, err := l.snapshots()
	if err != nil {
		return err
	}
	i, _ := slices.BinarySearch(offsets, logEnd+1)
	if i == len(offsets) {
		return nil
	}
	if err := l.removeSnapshots(offsets[i:]); err != nil {
		return err
	}
	return l.store.fs.SyncDir(l.dir)
}

func encodeProducers(producers []store.Producer) []byte {
	b := binary.BigEndian.AppendUint32(nil, snapshotMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(producers)))
	for _, p := range producers {
		b = binary.BigEndian.AppendUint64(b, uint64(p.ID))
		b = binary.BigEndian.AppendUint16(b, uint16(p.Epoch))
		b = binary.BigEndian.AppendUint64(b, uint64(p.LastTimestamp))
		b = append(b, byte(len(p.Batches)))
		for _, x := range p.Batches {
			b = binary.BigEndian.AppendUint32(b, uint32(x.BaseSequence))
			b = binary.BigEndian.AppendUint32(b, uint32(x.LastSequence))
			b = binary.BigEndian.AppendUint64(b, uint64(x.BaseOffset))
			b = binary.BigEndian.AppendUint64(b, uint64(x.LastOffset))
			b = binary.BigEndian.AppendUint64(b, uint64(x.Timestamp))
		}
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, crcTable))
}

var errSnapshot = errors.New("producer snapshot is torn")

const (
	producerSize      = 19
	producerBatchSize = 32
)

func decodeProducers(b []byte) ([]store.Producer, error) {
	if len(b) < 12 || binary.BigEndian.Uint32(b) != snapshotMagic {
		return nil, errSnapshot
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	n := binary.BigEndian.Uint32(b[4:])
	if crc32.Checksum(body, crcTable) != sum || int64(n)*producerSize > int64(len(b)) {
		return nil, errSnapshot
	}
	out := make([]store.Producer, n)
	body = body[8:]
	for i := range out {
		if len(body) < producerSize {
			return nil, errSnapshot
		}
		p := &out[i]
		p.ID = int64(binary.BigEndian.Uint64(body))
		p.Epoch = int16(binary.BigEndian.Uint16(body[8:]))
		p.LastTimestamp = int64(binary.BigEndian.Uint64(body[10:]))
		p.CoordinatorEpoch, p.TxnFirst = -1, store.NoTxn
		k := int(body[18])
		body = body[producerSize:]
		if len(body) < k*producerBatchSize {
			return nil, errSnapshot
		}
		for range k {
			p.Batches = append(p.Batches, store.ProducerBatch{
				BaseSequence: int32(binary.BigEndian.Uint32(body)),
				LastSequence: int32(binary.BigEndian.Uint32(body[4:])),
				BaseOffset:   int64(binary.BigEndian.Uint64(body[8:])),
				LastOffset:   int64(binary.BigEndian.Uint64(body[16:])),
				Timestamp:    int64(binary.BigEndian.Uint64(body[24:])),
			})
			body = body[producerBatchSize:]
		}
	}
	if len(body) != 0 {
		return nil, errSnapshot
	}
	return out, nil
}
