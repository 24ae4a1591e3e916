package redis

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"muster/internal/buffer"
	"muster/internal/record"
	"muster/internal/store"
)

// bomb makes a batch of records of zeros, which take next to nothing while they are packed.
func (b *bed) bomb(codec record.Codec, records, size int, headers ...record.Header) record.Batch {
	b.Helper()
	tmpl := record.PlainTemplate()
	tmpl.Codec = codec
	recs := make([]record.Record, records)
	value := make([]byte, size)
	for i := range recs {
		recs[i] = record.Record{OffsetDelta: int32(i), Timestamp: 5, Value: value, Headers: headers}
	}
	batch, err := record.Build(tmpl, recs)
	must(b.T, err)
	return batch
}

func TestWhatUnpacksToTooMuchIsRefusedAndHoldsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it unpacks hundreds of MB, one batch at a time")
	}
	b := newBed(t, inStreams)
	l := b.open(1)
	bad := map[string]record.Batch{
		"many bytes":   b.bomb(record.ZSTD, 1, maxUnpacked+1),
		"many records": b.bomb(record.ZSTD, maxEntries/recordMemory+1, 0),
		"many headers": b.bomb(record.ZSTD, 1000, 0, make([]record.Header, 5000)...),
		"plain":        b.bomb(record.None, maxEntries/recordMemory+1, 0),
	}
	var before, after runtime.MemStats
	for name, batch := range bad {
		runtime.GC()
		runtime.ReadMemStats(&before)
		_, err := l.Append(b.ctx, batch)
		if !errors.Is(err, store.ErrTooLarge) || !errors.Is(err, store.ErrInvalidBatch) {
			t.Errorf("%s: %v", name, err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		t.Logf("%s: %d KB packed, %d MB allocated on the way", name, len(batch)>>10, (after.TotalAlloc-before.TotalAlloc)>>20)
		if got := after.TotalAlloc - before.TotalAlloc; got > 2*entryMemory {
			t.Errorf("%s: %d MB allocated", name, got>>20)
		}
	}
	if b.store.memory.free != entryMemory {
		t.Errorf("%d of %d bytes are free", b.store.memory.free, entryMemory)
	}
	b.append(l, b.valued("good"))
	if got := b.values(l); len(got) != 1 || got[0] != "good" {
		t.Errorf("the log has %d records", len(got))
	}
}

// What unpacks to much, but not to too much, is stored, whatever the first guess was, and
// is counted for what it takes in Redis.
func TestPackedBatchesOfAllSizesAreStored(t *testing.T) {
	for codec := record.Gzip; codec <= record.ZSTD; codec++ {
		b := newBed(t, inStreams)
		l := b.open(1)
		want := 0
		for _, size := range []int{0, 10, 1000, 100_000} {
			batch := b.bomb(codec, 30, size, record.Header{Key: "h"}, record.Header{Key: "h"}, record.Header{Key: "h"})
			at := b.append(l, batch)
			want += 30
			if at.Bytes < int64(30*size) {
				t.Errorf("%s: %d bytes are stored of records of %d", codec, at.Bytes, size)
			}
		}
		if got := b.content(l); len(got) != want || len(got[want-1].Value) != 100_000 {
			t.Errorf("%s: %d records of %d", codec, len(got), want)
		}
		if b.store.memory.free != entryMemory {
			t.Errorf("%s: %d of %d bytes are free", codec, b.store.memory.free, entryMemory)
		}
	}
}

// Many logs share what there is, and none of them waits for ever.
func TestLogsShareTheMemoryOfAppends(t *testing.T) {
	b := newBed(t, inStreams)
	batch := b.bomb(record.ZSTD, 4, 4<<20)
	var all sync.WaitGroup
	for i := range 8 {
		b.at.Topic = fmt.Sprint("orders-", i)
		l := b.open(1)
		all.Go(func() {
			var begun sync.WaitGroup
			for range 3 {
				begun.Add(1)
				l.Begin(b.ctx, append(record.Batch(nil), batch...), func(_ store.Appended, err error) {
					if err != nil {
						t.Error(err)
					}
					begun.Done()
				})
			}
			begun.Wait()
		})
	}
	all.Wait()
	if b.store.memory.free != entryMemory {
		t.Errorf("%d of %d bytes are free", b.store.memory.free, entryMemory)
	}
}

func TestMemoryIsGivenInOrderAndSmallAmountsDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.wait(maxEntries)
		var order []int
		var all sync.WaitGroup
		for i, n := range []int64{maxEntries, smallEntries + 1} {
			all.Go(func() {
				m.wait(n)
				order = append(order, i)
			})
			synctest.Wait()
		}
		if m.try(smallEntries + 1) {
			t.Error("a large amount came before others that wait, and took what is for small ones")
		}
		if !m.try(smallEntries) {
			t.Error("a small amount has to wait for large ones")
		}
		m.give(smallEntries, nil)
		if synctest.Wait(); len(order) != 0 {
			t.Fatalf("%v went on", order)
		}
		m.give(maxEntries, nil)
		synctest.Wait()
		if len(order) != 1 || order[0] != 0 {
			t.Fatalf("%v went on", order)
		}
		m.give(maxEntries, nil)
		all.Wait()
		m.give(smallEntries+1, nil)
		if m.free != entryMemory {
			t.Errorf("%d free in the end", m.free)
		}
		for range smallMemory / smallEntries * 4 {
			m.wait(smallEntries)
		}
		all.Go(func() { m.wait(smallEntries) })
		synctest.Wait()
		if m.try(smallEntries) || m.try(1) {
			t.Error("there was more than there is")
		}
		m.give(smallEntries, nil)
		all.Wait()
	})
}

// Whoever waited unpacks into what was given back, so that what many hold one after the other
// is not more than what they may hold at once, also if no garbage is collected in between.
func TestLargeBuffersGoFromOneToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.wait(maxEntries)
		first := m.buffer(maxUnpacked)
		var all sync.WaitGroup
		var second []byte
		all.Go(func() {
			m.wait(maxEntries)
			if b := m.buffer(maxUnpacked / 4); cap(b) != maxUnpacked/4 || &b[:1][0] == &first[:1][0] {
				t.Errorf("a buffer of %d bytes of %d is lost for a small one", maxUnpacked, cap(b))
			}
			second = m.buffer(maxUnpacked - 1)
		})
		synctest.Wait()
		m.give(maxEntries, first)
		all.Wait()
		if cap(second) != maxUnpacked || &second[:1][0] != &first[:1][0] {
			t.Errorf("a buffer of %d bytes is another one, or takes more than it seems to", cap(second))
		}
		for range 2 {
			all.Go(func() { m.wait(maxEntries) })
		}
		synctest.Wait()
		m.give(0, make([]byte, 0, maxEntries))
		m.give(0, make([]byte, 0, 2*buffer.Most))
		if len(m.spare) != 1 {
			t.Errorf("%d spare buffers", len(m.spare))
		}
		m.give(maxEntries, nil)
		synctest.Wait()
		m.give(maxEntries, nil)
		all.Wait()
		m.give(maxEntries, second)
		if len(m.spare) != 0 || m.free != entryMemory {
			t.Errorf("%d spare buffers in the end, %d bytes free", len(m.spare), m.free)
		}
	})
}

// A used buffer that is larger than what an append may hold does not let it hold more.
func TestALargerBufferDoesNotMakeABatchLarger(t *testing.T) {
	tmpl := record.PlainTemplate()
	tmpl.Codec = record.ZSTD
	batch, err := record.Build(tmpl, []record.Record{{Value: make([]byte, 5<<20)}})
	must(t, err)
	m := newMemory()
	m.spare = [][]byte{make([]byte, 0, 6<<20)}
	p := &pending{batch: batch}
	if err := p.encode(4<<20, m); !errors.Is(err, errMore) {
		t.Errorf("5 MB in 4: %v", err)
	}
	if cap(p.unpacked) != 6<<20 || len(m.spare) != 0 {
		t.Errorf("it has a buffer of %d bytes, and %d are spare", cap(p.unpacked), len(m.spare))
	}
}

// What a batch unpacks to and the words that point to it are held at once.
func TestTheWordsOfEntriesAndTheirBytesAreCountedTogether(t *testing.T) {
	tmpl := record.PlainTemplate()
	tmpl.Codec = record.ZSTD
	for headers, want := range []error{nil, errMore} {
		batch, err := record.Build(tmpl, []record.Record{{Value: []byte("v"), Headers: make([]record.Header, headers)}})
		must(t, err)
		p := &pending{batch: batch}
		if err := p.encode(32<<10+recordMemory+usualWords*wordMemory, newMemory()); !errors.Is(err, want) {
			t.Errorf("with %d headers: %v", headers, err)
		}
	}
}
