package lag

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"
)

var heapGroups = flag.Int("heapgroups", 4000, "with how many groups the heap is measured")

// A tracker of very many groups takes as much of the heap as it says, and no more than it
// may. Of 100,000 groups with ten partitions each the default of 128 MiB has room for what
// is known now and for few rings; so have fewer groups in their share of it.
func TestTheHeapOfVeryManyGroupsIsWithinTheBound(t *testing.T) {
	const partitions, each = 10, (128 << 20) / 100_000
	n := *heapGroups
	bound := int64(n) * each
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("group-%06d", i)
	}
	facts := Group{Positions: make([]Position, partitions)}
	before := heapNow()
	tr := NewTracker(Limits{bound, 0}, nil)
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	for pass := range int64(12) {
		tr.Begin(now.Add(time.Duration(pass) * 10 * time.Second))
		for p := range int32(partitions) {
			tr.Log(Log{Topic: "orders", Partition: p, Bounds: Bounds{0, 100 + pass}, LastStable: None, Added: 100 + pass})
		}
		for _, name := range names {
			facts.Name = name
			for p := range facts.Positions {
				facts.Positions[p] = Position{Topic: "orders", Partition: int32(p), Committed: 2 * pass}
			}
			tr.Group(facts)
		}
		tr.End()
	}
	took := heapNow() - before
	t.Logf("%d groups: the heap has %.1f MB more, %.1f MB are counted, of %.1f MB; %d groups have a ring", n, float64(took)/1e6, float64(tr.Bytes())/1e6, float64(bound)/1e6, tr.groupRings.count)
	if tr.Bytes() > bound {
		t.Errorf("%d bytes are counted, of %d", tr.Bytes(), bound)
	}
	if tr.groupRings.count == 0 {
		t.Error("no group has a ring")
	}
	// Maps and lists that grow have room to spare, and the heap is not the tracker's alone.
	if took > bound+bound/8+1<<20 {
		t.Errorf("the heap has %d bytes more, and the bound is %d", took, bound)
	}
	runtime.KeepAlive(tr)
	runtime.KeepAlive(names)
}

func heapNow() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
