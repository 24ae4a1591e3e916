package lag

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"unsafe"
)

// checkBytes counts anew what a tracker holds.
func checkBytes(t testing.TB, tr *Tracker) {
	t.Helper()
	var want int64
	rings, groupRings, users := 0, 0, 0
	for _, g := range tr.all {
		if g.behind != nothing {
			want += behindSize
		}
		want += groupSize + int64(len(g.name)) + int64(cap(g.positions))*placeSize
		want += int64(len(g.deaths)) * deathsSize
		if g.ring != nil {
			want += groupRingSize
			groupRings++
		}
		for _, p := range g.positions {
			want += positionSize
			users++
			if p.ring != nil {
				want += partitionRingSize
				rings++
			}
		}
	}
	for _, l := range tr.allLogs {
		want += logSize + int64(len(l.Topic)) + int64(cap(l.table.points))*pointSize
		users -= int(l.users)
	}
	if tr.Bytes() != want || tr.partitions.count != rings || tr.groupRings.count != groupRings {
		t.Fatalf("%d bytes, %d and %d rings are counted; there are %d, %d and %d", tr.Bytes(), tr.partitions.count, tr.groupRings.count, want, rings, groupRings)
	}
	if users != 0 || len(tr.all) != len(tr.groups) || len(tr.allLogs) != len(tr.logs) {
		t.Fatalf("%d positions too many, %d of %d groups, %d of %d logs", users, len(tr.all), len(tr.groups), len(tr.allLogs), len(tr.logs))
	}
	for _, list := range [][]tick{restOrder(&tr.partitions), restOrder(&tr.groupRings)} {
		if !slices.IsSorted(list) {
			t.Fatalf("rings are not in the order of their rest: %v", list)
		}
	}
}

func restOrder[T any](l *rest[T]) []tick {
	var out []tick
	for n := l.first; n != nil; n = n.next {
		out = append(out, n.moved)
	}
	if len(out) != l.count {
		out = []tick{2, 1}
	}
	return out
}

func TestSizesAreWhatGoAllocates(t *testing.T) {
	for _, c := range []struct {
		name        string
		size, count uintptr
		make        func() any
	}{
		{"a group", unsafe.Sizeof(group{}), groupSize - mapPlace, func() any { return new(group) }},
		{"what a group has committed", unsafe.Sizeof(behind{}), behindSize, func() any { return new(behind) }},
		{"a log", unsafe.Sizeof(log{}), logSize - mapPlace, func() any { return new(log) }},
		{"a position", unsafe.Sizeof(position{}), positionSize, func() any { return new(position) }},
		{"deaths", unsafe.Sizeof(deaths{}), deathsSize - deathsPlace, func() any { return new(deaths) }},
		{"a group's ring", unsafe.Sizeof(groupRing{}), groupRingSize, func() any { return newGroupRing(nil) }},
		{"a partition's ring", unsafe.Sizeof(partitionRing{}), partitionRingSize, func() any { return newPartitionRing(nil, 0) }},
		{"a point", unsafe.Sizeof(point{}), pointSize, nil},
	} {
		if c.size > c.count || c.size+c.size/8+16 < c.count {
			t.Errorf("%s takes %d bytes, and %d are counted", c.name, c.size, c.count)
		}
		if c.make == nil {
			continue
		}
		// What is allocated is counted for the whole process: the least of some tries is ours.
		took := min(allocated(c.make), allocated(c.make), allocated(c.make))
		if took < uint64(c.count) || took > uint64(c.count)+8 {
			t.Errorf("%s: Go allocates %d bytes, and %d are counted", c.name, took, c.count)
		}
	}
}

// allocated is how many bytes Go allocates for a thing, and what others allocate meanwhile.
func allocated(thing func() any) uint64 {
	held := make([]any, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range held {
		held[i] = thing()
	}
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(held)
	return (after.TotalAlloc - before.TotalAlloc) / uint64(len(held))
}

// crowd is groups with a partition each, of which those with even numbers move.
func crowd(t *testing.T, groups int, bytes int64) *world {
	w := newWorld(t, bytes)
	for i := range groups {
		l := w.log("t", int32(i), 0)
		w.produce(l, 20_000, w.now)
		w.commit(w.group(fmt.Sprintf("g%03d", i)), l, 10)
	}
	w.pass()
	return w
}

func (w *world) move(group int, n int) {
	w.commit(w.group(fmt.Sprintf("g%03d", group)), w.log("t", int32(group), 0), n)
}

// ringsOf tells which rings a group has.
func (w *world) ringsOf(group int) (of, partition bool) {
	g := w.tracker.groups[fmt.Sprintf("g%03d", group)]
	return g.ring != nil, g.positions[0].ring != nil
}

func TestRingsAreMadeAtTheFirstChange(t *testing.T) {
	w := crowd(t, 4, 1<<20)
	for range 10 {
		w.step()
		w.pass()
	}
	for i := range 4 {
		if of, partition := w.ringsOf(i); of || partition {
			t.Errorf("group %d has a ring and has not moved", i)
		}
	}
	w.move(2, 5)
	w.step()
	w.pass()
	w.produce(w.log("t", 3, 0), 1, w.now)
	w.step()
	w.pass()
	for i, want := range [][2]bool{2: {true, true}, 3: {true, false}} {
		if of, partition := w.ringsOf(i); of != want[0] || partition != want[1] {
			t.Errorf("group %d: %t, %t", i, of, partition)
		}
	}
	if got := w.tracker.History("g002", 0); len(got) != 2 || got[0].Lag != shorten(20_000-15).value() {
		t.Errorf("%v", got)
	}
	if got := w.tracker.PartitionHistory("g002", "t", 2); len(got) == 0 || got[0].Committed != 15 {
		t.Errorf("%v", got)
	}
	if w.tracker.PartitionHistory("g002", "t", 3) != nil || w.tracker.PartitionHistory("nobody", "t", 2) != nil || w.tracker.History("g002", 3) != nil || w.tracker.History("g000", 0) != nil {
		t.Error("there is a history of nothing")
	}
	w.tracker.Forget("g002")
	w.tracker.End()
	checkBytes(t, w.tracker)
}

func TestRingsThatRestLongestGiveWayPartitionsFirst(t *testing.T) {
	w := crowd(t, 20, 1<<20)
	floor := w.tracker.Bytes()
	w.tracker.max = floor + 20*groupRingSize + 3*partitionRingSize + 1000
	for i := range 8 {
		w.move(i, 5)
		w.step()
		w.pass()
		checkBytes(t, w.tracker)
	}
	for i := range 8 { // All have moved a moment ago: who was first stays, and groups take the place of partitions.
		if of, _ := w.ringsOf(i); !of {
			t.Errorf("group %d has no ring", i)
		}
	}
	for range 70 { // Now they rest.
		w.step()
		w.pass()
	}
	w.tracker.max = w.tracker.Bytes()
	before := w.tracker.partitions.first.item.owner.log.Partition
	w.move(9, 5)
	w.step()
	w.pass()
	checkBytes(t, w.tracker)
	if _, partition := w.ringsOf(int(before)); partition {
		t.Error("the one that rested longest has not given way")
	}
	if of, _ := w.ringsOf(9); !of {
		t.Error("a new one got no room")
	}
	if w.tracker.Bytes() > w.tracker.max {
		t.Errorf("%d bytes, though %d is the bound", w.tracker.Bytes(), w.tracker.max)
	}
}

func TestBusyRingsDoNotEvictOneAnother(t *testing.T) {
	w := crowd(t, 20, 1<<20)
	w.tracker.max = w.tracker.Bytes() + 5*(groupRingSize+partitionRingSize) + 20*1000
	made := map[int]int{}
	for pass := range 100 {
		for i := range 20 {
			w.move(i, 1)
		}
		w.step()
		w.pass()
		for i := range 20 {
			if of, _ := w.ringsOf(i); of {
				made[i]++
			}
		}
		if w.tracker.Bytes() > w.tracker.max {
			t.Fatalf("pass %d: %d bytes of %d", pass, w.tracker.Bytes(), w.tracker.max)
		}
	}
	for i, n := range made {
		if n < 90 {
			t.Errorf("group %d had a ring at %d of 100 passes", i, n)
		}
	}
	if len(made) < 5 || len(made) == 20 {
		t.Errorf("%d groups have a ring", len(made))
	}
}

func TestHistoryStaysWithinItsBound(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := crowd(t, 60, 1<<20)
	bound := w.tracker.Bytes() + 60*leastTable*pointSize + 30*(groupRingSize+partitionRingSize)
	w.tracker.max = bound
	for range 500 {
		for range r.IntN(20) {
			w.move(r.IntN(60), r.IntN(40))
			w.produce(w.log("t", int32(r.IntN(60)), 0), r.IntN(40), w.now)
		}
		w.step()
		w.pass()
		checkBytes(t, w.tracker)
		if over := w.tracker.Bytes() - bound; over > 60*3*growth*pointSize {
			t.Fatalf("%d bytes beyond the bound of %d", over, bound)
		}
	}
}

// Very many groups may be deleted at once.
func TestForgettingAGroupLooksAtNoOther(t *testing.T) {
	w := crowd(t, 10, 1<<20)
	all := slices.Clone(w.tracker.all)
	w.tracker.Forget("g003")
	if !slices.Equal(w.tracker.all, all) {
		t.Error("the list of all groups has changed")
	}
	names := func() (out []string) {
		for g := range w.tracker.Groups() {
			out = append(out, g.Name)
		}
		return out
	}
	if got := names(); len(got) != 9 || slices.Contains(got, "g003") {
		t.Errorf("there are %v", got)
	}
	w.move(3, 5) // Another one of that name.
	w.step()
	w.pass()
	if got := names(); len(got) != 10 || !slices.IsSorted(got) || slices.Contains(w.tracker.all, all[3]) {
		t.Errorf("then there are %v", got)
	}
	if got := w.tracker.PartitionHistory("g003", "t", 3); got != nil {
		t.Errorf("it has a past: %v", got)
	}
	checkBytes(t, w.tracker)
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	w := crowd(t, 10, 1<<20)
	for i := range 10 {
		w.move(i, 7)
	}
	w.step()
	w.pass()
	delete(w.groups, "g003")
	delete(w.logs, key{"t", 3})
	w.step()
	w.pass()
	if _, ok := w.tracker.Of("g003"); ok || w.tracker.Partitions("g003") != nil {
		t.Error("a group that was not seen is shown")
	}
	for range 58 {
		w.step()
		w.pass()
	}
	if w.tracker.groups["g003"] == nil {
		t.Error("a group is forgotten before ten minutes")
	}
	w.step()
	w.pass()
	if w.tracker.groups["g003"] != nil || len(w.tracker.logs) != 9 {
		t.Error("a group is kept for ever")
	}
	w.now = w.now.Add(-2 * time.Hour)
	w.pass()
	if len(w.tracker.groups) != 9 || w.tracker.groupRings.count != 0 {
		t.Error("the clock went back for hours, and the past is still there")
	}
	checkBytes(t, w.tracker)
}
