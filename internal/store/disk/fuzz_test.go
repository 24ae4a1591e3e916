package disk

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/vfs"
)

func FuzzIndex(f *testing.F) {
	sum := summary{size: 1000, next: 42, maxTS: 7, print: 9, epochs: []store.EpochStart{{Epoch: 1, Start: 3}, {Epoch: 5, Start: 9}}}
	entries := []indexEntry{{0, 0, -1}, {5, 100, 6}, {9, 600, 7}}
	f.Add(encodeIndex(sum, entries), false)
	f.Add(encodeIndex(summary{}, nil), true)
	f.Add(encodeIndex(sum, entries)[:50], true)
	f.Fuzz(func(t *testing.T, b []byte, repair bool) {
		if repair {
			b = repairIndex(b)
		}
		head, n, at, headErr := decodeIndexHead(b)
		sum, entries, err := decodeIndex(b)
		if err != nil {
			return
		}
		if headErr != nil || n != len(entries) || at > len(b) || !reflect.DeepEqual(head, sum) {
			t.Fatalf("head alone: %+v with %d entries (%v); whole: %+v with %d", head, n, headErr, sum, len(entries))
		}
		assert.MustTrue(t, bytes.Equal(encodeIndex(sum, entries), b), "%x decodes as %+v %v, which encodes otherwise", b, sum, entries)
		if e := entryAtOrBefore(entries, math.MaxUint32); len(entries) == 0 && e != (indexEntry{}) {
			t.Fatalf("entry %+v of an empty index", e)
		}
		entryBeforeTimestamp(entries, sum.maxTS)
		lastEntryWithin(entries, 0, sum.size)
	})
}

// repairIndex gives bytes the magic number and checksums of an index, so that
// the fuzzer gets past them.
func repairIndex(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < indexFixedSize {
		return b
	}
	binary.BigEndian.PutUint32(b, indexMagic)
	at := indexFixedSize + int(binary.BigEndian.Uint32(b[4:]))*epochSize + 4
	if at > len(b) {
		return b
	}
	binary.BigEndian.PutUint32(b[at-4:], crc32.Checksum(b[:at-4], crcTable))
	if end := at + int(binary.BigEndian.Uint32(b[8:]))*entrySize; end+4 <= len(b) {
		b = b[:end+4]
		binary.BigEndian.PutUint32(b[end:], crc32.Checksum(b[at:end], crcTable))
	}
	return b
}

func FuzzProducers(f *testing.F) {
	f.Add(encodeSnapshot(nil, nil), false)
	f.Add(encodeSnapshot([]store.Producer{
		{ID: 1, Epoch: 2, LastTimestamp: 3},
		{ID: -4, Epoch: -5, LastTimestamp: -6, Batches: []store.ProducerBatch{
			{BaseSequence: 1, LastSequence: 2, BaseOffset: 3, LastOffset: 4, Timestamp: 5}, {BaseOffset: 6, LastOffset: 9, Timestamp: -1},
		}},
		{ID: 7, CoordinatorEpoch: 8, TxnFirst: 9},
	}, []store.Aborted{{ProducerID: 7, FirstOffset: 8, LastOffset: 9}}), false)
	f.Add([]byte("MUSP\x00\x00\x00\x02 and more than that"), true)
	f.Fuzz(func(t *testing.T, b []byte, repair bool) {
		if repair && len(b) >= 12 {
			b = bytes.Clone(b)
			binary.BigEndian.PutUint32(b, snapshotMagic)
			binary.BigEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], crcTable))
		}
		producers, aborted, err := decodeSnapshot(b)
		if err == nil && binary.BigEndian.Uint32(b) == snapshotMagic && !bytes.Equal(encodeSnapshot(producers, aborted), b) {
			t.Fatalf("%x decodes as %+v and %+v, which encode otherwise", b, producers, aborted)
		}
	})
}

// FuzzNames demands that a name which is understood is the one that the engine
// would give.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"00000000000000000042.log", "00000000000000000000.index", "+0000000000000000001.log", "09223372036854775807.snapshot",
		"00000000000000000000-00000000000000000007.swap", "00000000000000000009-00000000000000000007.swap", "-.swap", "--.swap",
		"orders-0", "orders-1-2", "-1", "orders-007", "orders-+1", "orders-2147483648", "clean-shutdown",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, suffix := range []string{logSuffix, indexSuffix, snapshotSuffix, ""} {
			if o, ok := parseOffsetName(name, suffix); ok && (o < 0 || fmt.Sprintf("%020d%s", o, suffix) != name) {
				t.Errorf("%q with %q is taken for offset %d", name, suffix, o)
			}
		}
		if from, to, ok := parseSwapName(name); ok && (from < 0 || to <= from || fmt.Sprintf("%020d-%020d%s", from, to, swapSuffix) != name) {
			t.Errorf("%q is taken for a swap of %d to %d", name, from, to)
		}
		if tp, ok := parseFolderName(name); ok && (tp.Topic == "" || tp.Partition < 0 || folderName(tp) != name) {
			t.Errorf("%q is taken for %+v", name, tp)
		}
	})
}

// segmentSeeds are segments whole and torn.
func segmentSeeds(f *testing.F) [][]byte {
	f.Helper()
	var whole []byte
	for i, n := range []int{1, 3, 2} {
		b := sample(n, strings.Repeat("v", 20*i))
		b.SetBaseOffset([]int64{100, 101, 200}[i])
		whole = append(whole, b...)
	}
	lying := bytes.Clone(whole)
	binary.BigEndian.PutUint32(lying[8:], math.MaxInt32-12)
	far := bytes.Clone(whole)
	binary.BigEndian.PutUint64(far, math.MaxInt64)
	return [][]byte{
		nil, whole, whole[:len(whole)-5], append(bytes.Clone(whole), make([]byte, 600)...),
		lying, far, append(bytes.Clone(whole), whole...), bytes.Repeat([]byte{2}, 200),
	}
}

func FuzzSalvage(f *testing.F) {
	for _, b := range segmentSeeds(f) {
		f.Add(b, int64(100))
	}
	f.Fuzz(func(t *testing.T, b []byte, base int64) {
		seg := newSegment("dir", base&math.MaxInt64>>4)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := seg.salvage(bytes.NewReader(b), int64(len(b)), 100)
		runtime.ReadMemStats(&after)
		must(t, err)
		// The window, a larger one for a large batch, and the index.
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(8*len(b))+64<<10 {
			t.Fatalf("%d bytes allocated for %d", n, len(b))
		}
		kept := checkKept(t, seg, b)
		again := newSegment("dir", seg.base)
		assert.Must(t, again.rebuild(bytes.NewReader(kept), int64(len(kept)), 100), "what was salvaged cannot be walked")
		if !reflect.DeepEqual(again, seg) {
			t.Fatalf("salvaged as %+v, rebuilt as %+v", seg, again)
		}
		// The headers of a closed segment are believed; at least they must not
		// be believed to be more than they are.
		_ = newSegment("dir", seg.base).rebuild(bytes.NewReader(b), int64(len(b)), 100)
	})
}

// checkKept demands that a segment kept whole good batches in order, and that
// it stopped at none that follows.
func checkKept(t *testing.T, seg *segment, b []byte) []byte {
	t.Helper()
	kept, next := b[:seg.sum.size], seg.base
	for rest := kept; len(rest) > 0; {
		batch, after, err := record.Next(rest)
		must(t, err)
		if err := batch.Check(); err != nil || batch.BaseOffset() < next {
			t.Fatalf("kept a batch at offset %d after %d: %v", batch.BaseOffset(), next, err)
		}
		next, rest = batch.LastOffset()+1, after
	}
	assert.MustTrue(t, seg.sum.next == next, "segment ends at %d, its batches at %d", seg.sum.next, next)
	return kept
}

// FuzzOpen opens a log whose files hold anything. It may refuse to; if not, the
// log must be fit for use.
func FuzzOpen(f *testing.F) {
	for _, b := range segmentSeeds(f) {
		seg := newSegment("dir", 100)
		must(f, seg.salvage(bytes.NewReader(b), int64(len(b)), 1))
		f.Add(b, encodeIndex(seg.sum, seg.index), encodeSnapshot([]store.Producer{{ID: 1}}, nil), "101", true)
		f.Add(b, []byte{}, []byte{}, "7", false)
	}
	f.Add([]byte{}, []byte{}, []byte{}, "99999999999999", false)
	f.Fuzz(func(t *testing.T, segment, index, snapshot []byte, start string, clean bool) {
		fs := vfs.NewMem()
		put := func(name string, content []byte) {
			must(t, fs.MkdirAll(path.Dir(name)))
			must(t, writeFile(fs, name, content, true))
		}
		put("data/t-0/00000000000000000100.log", segment)
		put("data/t-0/00000000000000000100.index", index)
		put("data/t-0/00000000000000000100.snapshot", snapshot)
		put("data/t-0/log-start", []byte(start))
		if clean {
			put("data/clean-shutdown", nil)
		}
		st, err := Open("data", Options{FS: fs})
		must(t, err)
		defer st.Close()
		l, err := st.Open(context.Background(), store.TopicPartition{Topic: "t"}, math.MaxInt32, store.LogConfig{})
		if err != nil {
			return
		}
		useOpened(t, l, clean)
	})
}

// useOpened uses a log in every way. If it was opened with a scan it must
// hold good batches only; without one, its files are believed.
func useOpened(t *testing.T, l store.Log, clean bool) {
	t.Helper()
	content, err := readContent(l)
	assert.MustFalse(t, err != nil && !clean && !strings.Contains(err.Error(), record.ErrCorrupt.Error()), "%v", err)
	_, _, _ = l.OffsetForTimestamp(context.Background(), 5)
	_, _, _ = l.MaxTimestamp(context.Background())
	if _, _, err := l.Producers(context.Background()); err != nil {
		t.Fatal(err)
	}
	a, err := l.Append(context.Background(), sample(2, "after"))
	must(t, err)
	must(t, flush(l))
	if after, err := readContent(l); !clean && err == nil && len(after) != len(content)+2 {
		t.Fatalf("%d records, two appended at %d, now %d", len(content), a.BaseOffset, len(after))
	}
}
