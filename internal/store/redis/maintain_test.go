package redis

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// fillLog appends batches of ten records of about 100 bytes.
func (b *bed) fillLog(l store.Pipelined, batches int) {
	b.Helper()
	var all sync.WaitGroup
	for i := range batches {
		var values []string
		for j := range 10 {
			values = append(values, fmt.Sprintf("%06d %s", i*10+j, strings.Repeat("v", 60)))
		}
		all.Add(1)
		l.Begin(b.ctx, b.valued(values...), func(_ store.Appended, err error) {
			if err != nil {
				b.Error(err)
			}
			all.Done()
		})
	}
	all.Wait()
}

// wantTail demands that the log holds the last records of those that fillLog
// appended, and says how many.
func (b *bed) wantTail(l store.Log, of int) int {
	b.Helper()
	got := b.values(l)
	for i, value := range got {
		if !strings.HasPrefix(value, fmt.Sprintf("%06d ", of-len(got)+i)) {
			b.Fatalf("record %d of %d is %q", i, len(got), value)
		}
	}
	return len(got)
}

func TestRetentionOfAStreamBySizeDropsMuchAtOnce(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	b.fillLog(l, 2000)
	size := l.Size()
	_, end := l.Bounds()
	must(t, l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: size / 4, NextOffset: end}))
	n := b.wantTail(l, 20000)
	if n < 5000 || n > 5200 || l.Size() < size/4 || l.Size() > size/4+size/50 {
		t.Errorf("%d records and %d of %d bytes remain", n, l.Size(), size)
	}
	start, _ := l.Bounds()
	l = b.open(2)
	if again, _ := l.Bounds(); again != start {
		t.Errorf("the log starts at %d, did at %d", again, start)
	}
	b.wantTail(l, 20000)
	if epochs := l.Epochs(); len(epochs) != 1 || epochs[0].Start != start {
		t.Errorf("epochs %v of a log that starts at %d", epochs, start)
	}
}

func TestRetentionOfAStreamKeepsWhatIsNotToGo(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	b.fillLog(l, 400)
	keepFrom := b.content(l)[1000].Offset
	b.fillLog(l, 400)
	must(t, l.Retain(b.ctx, store.Retention{Now: time.Now().Add(time.Hour), MaxAge: time.Minute, MaxBytes: 0, NextOffset: keepFrom}))
	if got := b.content(l); len(got) != 7000 || got[0].Offset != keepFrom {
		t.Errorf("%d records from %d on, want 7000 from %d on", len(got), got[0].Offset, keepFrom)
	}
}

func TestRetentionOfAStreamByTimeGoesByIDsFirst(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	b.fillLog(l, 300)
	_, end := l.Bounds()
	now := time.Now()
	for _, c := range []struct {
		age  time.Duration
		want int
	}{{time.Hour, 3000}, {0, 0}} {
		must(t, l.Retain(b.ctx, store.Retention{Now: now.Add(time.Minute), MaxAge: c.age, MaxBytes: -1, NextOffset: end}))
		if n := b.wantTail(l, 3000); n != c.want {
			t.Errorf("%d records remain after %v, want %d", n, c.age, c.want)
		}
	}
	b.append(l, b.valued("next"))
	if got := b.values(l); !slices.Equal(got, []string{"next"}) {
		t.Errorf("values %q", got)
	}
}

// TestCompactionByRenamingWhileAppending rewrites the stream while appends go
// on, and others look at it.
func TestCompactionByRenamingWhileAppending(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.open(1)
	b.append(l, b.valued("first"))
	b.do("XGROUP", "CREATE", b.keys().stream, "readers", "0")
	b.do("XGROUP", "CREATECONSUMER", b.keys().stream, "readers", "ann")
	const batches = 300
	keyed := func(i int) record.Batch {
		return b.batchOf(
			record.Record{Timestamp: int64(i), Key: []byte("shared"), Value: fmt.Append(nil, i)},
			record.Record{Timestamp: int64(i), Key: fmt.Append(nil, "own", i), Value: fmt.Append(nil, i)})
	}
	done := make(chan struct{})
	var compactions int
	var all sync.WaitGroup
	all.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			_, end := l.Bounds()
			if err := l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: end}); err != nil {
				t.Error(err)
				return
			}
			compactions++
		}
	})
	var acks sync.WaitGroup
	for i := range batches {
		acks.Add(1)
		l.Begin(b.ctx, keyed(i), func(at store.Appended, err error) {
			if err != nil || at.LastOffset != int64(2*i+2) {
				t.Errorf("batch %d: %+v, %v", i, at, err)
			}
			acks.Done()
		})
		if i%3 == 0 {
			acks.Wait()
		}
	}
	acks.Wait()
	close(done)
	all.Wait()
	must(t, l.Compact(b.ctx, store.Compaction{Now: time.Now(), NextOffset: 2*batches + 1}))
	if compactions == 0 {
		t.Error("nothing was compacted")
	}
	l = b.open(2)
	shared, own := 0, 0
	for _, r := range b.content(l) {
		switch {
		case string(r.Key) == "shared":
			shared++
		case string(r.Key) == "own"+string(r.Value):
			own++
		}
	}
	if shared != 1 || own != batches {
		t.Errorf("%d records of the shared key and %d of %d others", shared, own, batches)
	}
	if groups := b.do("XINFO", "GROUPS", b.keys().stream); !strings.Contains(groups, "readers") {
		t.Errorf("groups are %s", groups)
	}
	if consumers := b.do("XINFO", "CONSUMERS", b.keys().stream, "readers"); !strings.Contains(consumers, "ann") {
		t.Errorf("consumers are %s", consumers)
	}
	if ttl := b.do("TTL", b.keys().stream); ttl != "-1" {
		t.Errorf("the stream goes away in %s s", ttl)
	}
	if keys := b.do("KEYS", "*"+b.prefix+"*:new*"); keys != "[]" {
		t.Errorf("keys %s remain", keys)
	}
	if l.Size() <= 0 || l.Size() > batches*200 {
		t.Errorf("size is %d", l.Size())
	}
}

func TestALargeBatch(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			var values []string
			for i := range 5000 {
				values = append(values, fmt.Sprintf("%d %s", i, strings.Repeat("v", 2000)))
			}
			b.append(l, b.valued("before"))
			at := b.append(l, b.valued(values...))
			b.append(l, b.valued("after"))
			if at.LastOffset-at.BaseOffset != 4999 {
				t.Errorf("appended at %+v", at)
			}
			if got := b.values(l); len(got) != 5002 || got[5000] != values[4999] {
				t.Errorf("%d records", len(got))
			}
			huge := b.valued(strings.Repeat("h", 20<<20))
			b.append(l, huge)
			if got := b.values(l); len(got) != 5003 || len(got[5002]) != 20<<20 {
				t.Errorf("%d records", len(got))
			}
		})
	}
}

// TestLogsAreListedWithoutReplicas kills the replicas of a cluster.
func TestLogsAreListedWithoutReplicas(t *testing.T) {
	s := redistest.CalmCluster(t)
	b := newBedAt(t, s.URL(), inBatches)
	for b.at.Partition = range int32(20) {
		b.open(1)
	}
	for _, n := range s.Nodes[3:] {
		n.Kill()
	}
	logs, err := b.store.List(b.ctx)
	if err != nil || len(logs) != 20 {
		t.Errorf("%d logs, %v", len(logs), err)
	}
}

// TestSearchCopesWithABatchThatCannotBeUnpacked has a client's batch whose
// records are garbage. Only those who read it have to know.
func TestSearchCopesWithABatchThatCannotBeUnpacked(t *testing.T) {
	b := newBed(t, store.LogConfig{Layout: store.LayoutLog})
	l := b.open(1)
	tmpl := record.PlainTemplate()
	tmpl.Codec = record.Gzip
	bad, err := record.Build(tmpl, []record.Record{{Timestamp: 1000, Value: []byte("lost")}})
	must(t, err)
	copy(bad[record.HeaderSize:], "garbage")
	b.append(l, bad)
	hit, found, err := l.OffsetForTimestamp(b.ctx, 500)
	if err != nil || !found || hit.Offset != 0 || hit.Timestamp != 1000 {
		t.Errorf("%+v, %t, %v", hit, found, err)
	}
}
