package disk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

// history is what transactions did to a log, by the offsets of their records.
type history struct {
	txns []*ended
	of   map[int64]*ended
	next map[int64]int32 // sequences
}

// ended is a transaction; its marker is at -1 if it has none.
type ended struct {
	id, first, marker int64
	commit            bool
}

// play does the same to every file system: transactions of three producers, with
// everything that takes batches away between them. It ends at the first error.
func play(fs *vfs.Mem) (h *history, err error) {
	h = &history{of: map[int64]*ended{}, next: map[int64]int32{}}
	st, err := openStore(fs)
	if err != nil {
		return h, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	l, err := st.Open(context.Background(), store.TopicPartition{Topic: "orders"}, 0, worldConfig)
	if err != nil {
		return h, err
	}
	producers := store.NewProducerMap(nil)
	for i := range 44 {
		id := int64(1 + i%3)
		err := h.append(l, producers, id, i)
		if err == nil && i%3 == 2 {
			err = flush(l)
		}
		_, end := l.Bounds()
		switch {
		case err != nil:
		case i == 13 || i == 30:
			err = l.SaveProducers(context.Background(), producers.List(), end)
		case i == 17 || i == 26 || i == 38:
			stable := h.stable(end)
			err = l.Compact(context.Background(), store.Compaction{Now: time.UnixMilli(int64(i) * 1000), NextOffset: stable, DeleteRetention: 5 * time.Second})
		case i == 22 || i == 33:
			err = l.Trim(context.Background(), end/4)
		}
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

// append appends what comes next: two batches of a producer, then a marker, then
// a record of no one.
func (h *history) append(l store.Log, producers store.ProducerMap, id int64, i int) error {
	var b record.Batch
	var err error
	kind := (i / 3) % 3
	switch recs := []record.Record{{Timestamp: int64(i), Key: fmt.Append(nil, "k", i%4), Value: []byte(strings.Repeat("v", 90))}}; {
	case kind < 2:
		t := record.PlainTemplate()
		t.ProducerID, t.ProducerEpoch, t.BaseSequence, t.Transactional = id, 0, h.next[id], true
		h.next[id]++
		b, err = record.Build(t, recs)
	case i%7 == 0:
		b, err = record.Build(record.PlainTemplate(), recs)
	default:
		b, err = record.BuildMarker(id, 0, record.Marker{Commit: i%2 == 0}, int64(i))
	}
	if err != nil {
		return err
	}
	at, err := l.Append(context.Background(), b)
	if err != nil {
		return err
	}
	h.note(b, at.BaseOffset)
	aborted, err := producers.Note(b, b.MaxTimestamp())
	if err != nil || aborted == nil {
		return err
	}
	return l.NoteAborted(context.Background(), []store.Aborted{*aborted})
}

func (h *history) note(b record.Batch, at int64) {
	open := func(t *ended) bool { return t.id == b.ProducerID() && t.marker < 0 }
	i := slices.IndexFunc(h.txns, open)
	switch m, _, _ := b.Marker(); {
	case b.Control() && i >= 0:
		h.txns[i].marker, h.txns[i].commit = at, m.Commit
	case b.Control() || !b.Transactional():
	case i < 0:
		h.txns = append(h.txns, &ended{id: b.ProducerID(), first: at, marker: -1})
		i = len(h.txns) - 1
		fallthrough
	default:
		h.of[at] = h.txns[i]
	}
}

// open says whether a transaction has not ended in a log that ends at an offset.
func (t *ended) open(end int64) bool { return t.first < end && (t.marker < 0 || t.marker >= end) }

func (h *history) stable(end int64) int64 {
	next := end
	for _, t := range h.txns {
		if t.open(end) {
			next = min(next, t.first)
		}
	}
	return next
}

// check opens the log as its owner does, and holds what it says against the
// history: the open transactions, and what a reader of committed records gets.
func (h *history) check(fs *vfs.Mem) (err error) {
	st, err := openStore(fs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	l, err := st.Open(context.Background(), store.TopicPartition{Topic: "orders"}, 0, worldConfig)
	if err != nil {
		return err
	}
	producers, _, err := completeProducers(l)
	if err != nil {
		return err
	}
	start, end := l.Bounds()
	for id, p := range producers {
		want := store.NoTxn
		for _, t := range h.txns {
			if t.id == id && t.open(end) {
				want = t.first
			}
		}
		if p.TxnFirst != want {
			return fmt.Errorf("producer %+v: its transaction began at %d, the log ends at %d", p, want, end)
		}
	}
	raw, err := rawBatches(l)
	if err != nil {
		return err
	}
	for from := start; from < end; from++ {
		if err := h.checkReader(l, raw, from, max(start, h.stable(end))); err != nil {
			return fmt.Errorf("log from %d to %d: %w", start, end, err)
		}
	}
	return nil
}

func (h *history) checkReader(l store.Log, raw []record.Batch, from, next int64) error {
	queue, err := l.Aborted(context.Background(), from, next)
	if err != nil {
		return err
	}
	for _, a := range queue {
		if !slices.ContainsFunc(raw, func(b record.Batch) bool {
			m, ok, _ := b.Marker()
			return b.Control() && ok && !m.Commit && b.ProducerID() == a.ProducerID && b.LastOffset() == a.LastOffset
		}) {
			return fmt.Errorf("%+v is listed, and its marker is not there", a)
		}
	}
	skip := map[int64]bool{}
	for _, b := range raw {
		if b.LastOffset() < from || b.LastOffset() >= next {
			continue
		}
		for len(queue) > 0 && queue[0].FirstOffset <= b.LastOffset() {
			skip[queue[0].ProducerID], queue = true, queue[1:]
		}
		if m, ok, _ := b.Marker(); b.Control() && ok && !m.Commit {
			delete(skip, b.ProducerID())
		}
		if b.Control() || b.Count() == 0 {
			continue
		}
		t := h.of[b.BaseOffset()]
		if committed := t == nil || t.commit; committed == (b.Transactional() && skip[b.ProducerID()]) {
			return fmt.Errorf("reading from %d: batch at %d, committed %v", from, b.BaseOffset(), committed)
		}
	}
	return nil
}

func rawBatches(l store.Log) (out []record.Batch, err error) {
	at, end := l.Bounds()
	for at < end {
		r, err := l.Read(context.Background(), store.ReadRequest{Offset: at, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		if err != nil {
			return nil, err
		}
		b, err := r.Load()
		r.Release()
		if err != nil || len(b) == 0 {
			return out, err
		}
		for len(b) > 0 {
			var one record.Batch
			if one, b, err = record.Next(b); err != nil {
				return nil, err
			}
			out, at = append(out, one), one.LastOffset()+1
		}
	}
	return out, nil
}

// TestPowerLossWithTransactions stops at every operation on the file system.
func TestPowerLossWithTransactions(t *testing.T) {
	fs := vfs.NewMem()
	h, err := play(fs)
	must(t, err)
	stride := 1
	if testing.Short() {
		stride = 31
	}
	for stop := 0; stop <= fs.Ops(); stop += stride {
		dying := vfs.NewMem()
		dying.StopAfter(stop)
		if _, err := play(dying); err != nil && !errors.Is(err, vfs.ErrStopped) && !errors.Is(err, store.ErrFailed) {
			t.Fatal(err)
		}
		for _, c := range crashes(2) {
			assert.NoError(t, h.check(c.do(dying)), "stopped after %d operations, %s", stop, c.name)
		}
	}
}

// damage spoils the newest n snapshots of the log.
func damage(t *testing.T, fs *vfs.Mem, n int) {
	t.Helper()
	dir := path.Join(worldRoot, "orders-0")
	entries, err := fs.ReadDir(dir)
	must(t, err)
	for _, e := range slices.Backward(entries) {
		if _, ok := parseOffsetName(e.Name(), snapshotSuffix); !ok || n == 0 {
			continue
		}
		n--
		f, err := fs.Open(path.Join(dir, e.Name()))
		must(t, err)
		size, _ := f.Size()
		must(t, errors.Join(f.Truncate(size-10), f.Close()))
	}
	assert.MustTrue(t, n <= 0, "%d snapshots too few", n)
}

// TestCompactionForgetsInAllSnapshots demands that no snapshot lists a transaction
// whose marker may be gone, and that one is known by then that no one has told of.
func TestCompactionForgetsInAllSnapshots(t *testing.T) {
	b := newBed(t, worldConfig)
	ctx := context.Background()
	producers := store.NewProducerMap(nil)
	for round := range int64(3) {
		h := &history{of: map[int64]*ended{}, next: map[int64]int32{}}
		for i := range 21 {
			if (i/3)%3 == 2 && i%2 == 1 && round == 0 {
				continue
			}
			b.must(h.append(b.log, producers, int64(1+i%3), i))
			_, end := b.log.Bounds()
			if i == 9 || i == 20 {
				b.must(b.log.SaveProducers(ctx, producers.List(), end))
			}
		}
		_, end := b.log.Bounds()
		b.must(b.log.Compact(ctx, store.Compaction{Now: time.UnixMilli(round * 10_000), NextOffset: h.stable(end), DeleteRetention: time.Second}))
	}
	l := b.log.(*handle).log
	offsets, err := l.snapshots()
	b.must(err)
	for _, o := range offsets {
		content, err := readFile(b.fs, path.Join(l.dir, fmt.Sprintf("%020d%s", o, snapshotSuffix)), -1)
		b.must(err)
		_, listed, err := decodeSnapshot(content)
		b.must(err)
		if len(listed) > 0 && listed[0].LastOffset < l.cleaned[0].NextOffset {
			t.Errorf("the snapshot as of %d lists %+v", o, listed[0])
		}
	}
}

func TestSnapshotRestartRebuildsIndex(t *testing.T) {
	for damaged := range 3 {
		b := newBed(t, worldConfig)
		producers := store.NewProducerMap(nil)
		h := &history{of: map[int64]*ended{}, next: map[int64]int32{}}
		for i := range 30 {
			b.must(h.append(b.log, producers, int64(1+i%3), i))
			if _, end := b.log.Bounds(); i%9 == 8 {
				b.must(b.log.SaveProducers(context.Background(), producers.List(), end))
			}
		}
		_, end := b.log.Bounds()
		want, err := b.log.Aborted(context.Background(), 0, end)
		b.must(err)
		b.must(b.st.Close())
		damage(t, b.fs, damaged)
		b.start()
		_, from, err := completeProducers(b.log)
		b.must(err)
		assert.Equal(t, from == 0, damaged == 2, "%d snapshots are damaged, and the state is as of %d", damaged, from)
		got, err := b.log.Aborted(context.Background(), 0, end)
		b.must(err)
		assert.True(t, len(want) >= 2 && reflect.DeepEqual(got, want), "%d snapshots are damaged: aborted are %+v, want %+v", damaged, got, want)
	}
}

// A folder written before there were transactions has snapshots without them.
func TestOldSnapshotsAreRead(t *testing.T) {
	old := binary.BigEndian.AppendUint32(nil, plainMagic)
	old = binary.BigEndian.AppendUint32(old, 1)
	old = binary.BigEndian.AppendUint64(old, 7)
	old = binary.BigEndian.AppendUint16(old, 3)
	old = binary.BigEndian.AppendUint64(old, 99)
	old = append(old, 1)
	for _, n := range []uint32{5, 6} {
		old = binary.BigEndian.AppendUint32(old, n)
	}
	for _, n := range []uint64{10, 11, 12} {
		old = binary.BigEndian.AppendUint64(old, n)
	}
	old = binary.BigEndian.AppendUint32(old, crc32.Checksum(old, crcTable))
	producers, aborted, err := decodeSnapshot(old)
	want := []store.Producer{{ID: 7, Epoch: 3, LastTimestamp: 99, CoordinatorEpoch: -1, TxnFirst: store.NoTxn,
		Batches: []store.ProducerBatch{{BaseSequence: 5, LastSequence: 6, BaseOffset: 10, LastOffset: 11, Timestamp: 12}}}}
	assert.True(t, err == nil && len(aborted) == 0 && reflect.DeepEqual(producers, want), "read %+v and %+v (%v), want %+v", producers, aborted, err, want)
	for cut := range old {
		if _, _, err := decodeSnapshot(old[:cut]); err == nil {
			t.Errorf("%d of %d bytes are read as a snapshot", cut, len(old))
		}
	}
}
