package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"muster/internal/store"
)

// keptSnapshots is how many snapshots stay, in case the newest is torn.
const keptSnapshots = 2

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

// LeaveProducers implements store.Leaver. If a loss of power takes the snapshot, the one
// before it is still there, and so are the batches since.
func (h *handle) LeaveProducers(ctx context.Context, producers []store.Producer, nextOffset int64) error {
	l := h.log
	if l.store.boot == "" {
		return h.SaveProducers(ctx, producers, nextOffset)
	}
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if err := h.mayChange(); err != nil || !l.made {
		return err
	}
	if err := l.writeProducers(producers, nextOffset, false); err != nil {
		return l.storageError("save producers", err)
	}
	return nil
}

// putSnapshot writes a snapshot file, durably. appendMu is held.
func (l *log) putSnapshot(producers []store.Producer, nextOffset int64) error {
	if err := l.writeProducers(producers, nextOffset, true); err != nil {
		return err
	}
	l.covered = max(l.covered, nextOffset)
	return nil
}

// writeProducers does so, with a sync or not.
func (l *log) writeProducers(producers []store.Producer, nextOffset int64, sync bool) error {
	aborted, err := l.abortedBelow(nextOffset)
	if err != nil {
		return err
	}
	name := path.Join(l.dir, fmt.Sprintf("%020d%s", nextOffset, snapshotSuffix))
	return writeFile(l.store.fs, name, encodeSnapshot(producers, aborted), sync)
}

// replaceSnapshots writes a snapshot and removes all others, durably. appendMu is
// held.
func (l *log) replaceSnapshots(producers []store.Producer, nextOffset int64) error {
	if err := l.putSnapshot(producers, nextOffset); err != nil {
		return err
	}
	offsets, err := l.snapshots()
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(offsets, func(o int64) bool { return o == nextOffset })
	if err := l.removeSnapshots(others); err != nil {
		return err
	}
	return l.store.fs.SyncDir(l.dir)
}

// writeSnapshot writes a snapshot and removes those that are not needed any
// more. appendMu is held.
func (l *log) writeSnapshot(producers []store.Producer, nextOffset int64) error {
	if err := l.putSnapshot(producers, nextOffset); err != nil {
		return err
	}
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
// is. The aborted transactions in it become the log's if it has none yet.
// appendMu is held.
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
		if producers, aborted, err := decodeSnapshot(b); err == nil {
			l.takeAborted(aborted)
			return producers, o, nil
		}
	}
	l.takeAborted(nil)
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
