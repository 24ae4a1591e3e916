package lag

import (
	"fmt"
	"slices"
	"testing"
)

// rows is one group that reads many partitions.
func rows(t *testing.T, partitions int) (*world, *worldGroup, []*worldLog) {
	w := newWorld(t, 1<<20)
	g := w.group("g")
	var logs []*worldLog
	for i := range partitions {
		l := w.log("t", int32(i), 0)
		w.produce(l, 10_000, w.now)
		w.commit(g, l, 10)
		logs = append(logs, l)
	}
	w.pass()
	w.asked = 0
	return w, g, logs
}

// ringed lists the partitions of a group that have a ring.
func (w *world) ringed(group string) []int32 {
	var out []int32
	for _, p := range w.tracker.groups[group].positions {
		if p.ring != nil {
			out = append(out, p.log.Partition)
		}
	}
	return out
}

func TestBusyPartitionsDoNotEvictOneAnother(t *testing.T) {
	w, g, logs := rows(t, 20)
	w.tracker.max = w.tracker.Bytes() + groupRingSize + 5*partitionRingSize
	var first []int32
	for pass := range 100 {
		for _, l := range logs {
			w.commit(g, l, 1)
		}
		w.step()
		w.pass()
		checkBytes(t, w.tracker)
		got := w.ringed("g")
		if pass == 0 {
			first = got
		}
		if w.tracker.Bytes() > w.tracker.max || len(got) != 5 || !slices.Equal(got, first) {
			t.Fatalf("pass %d: %v have a ring, at first %v, %d bytes of %d", pass, got, first, w.tracker.Bytes(), w.tracker.max)
		}
	}
}

func TestRingOfAGroupTakesThePlaceOfAnyPartition(t *testing.T) {
	w, g, logs := rows(t, 10)
	other := w.group("h")
	w.commit(other, logs[0], 5)
	w.pass()
	for _, l := range logs {
		w.commit(g, l, 1)
	}
	w.step()
	w.pass()
	w.tracker.max = w.tracker.Bytes()
	w.commit(g, logs[9], 1) // The others have moved a moment ago, but before it.
	w.commit(g, logs[0], 1)
	w.step()
	w.pass()
	w.commit(other, logs[0], 5)
	w.step()
	w.pass()
	checkBytes(t, w.tracker)
	if got := w.ringed("g"); w.tracker.groups["h"].ring == nil || !slices.Equal(got, []int32{0, 7, 8, 9}) {
		t.Errorf("%v have a ring", got)
	}
}

func TestPartitionNeverEvictsAGroup(t *testing.T) {
	w, g, logs := rows(t, 2)
	w.produce(logs[0], 5, w.now)
	for range 100 { // Its ring rests.
		w.step()
		w.pass()
	}
	if w.tracker.groups["g"].ring == nil {
		t.Fatal("the group has no ring")
	}
	w.tracker.max = w.tracker.Bytes()
	w.produce(logs[0], 5, w.now) // The lag stays as it is.
	w.commit(g, logs[0], 5)
	w.step()
	w.pass()
	if w.tracker.groups["g"].ring == nil || len(w.ringed("g")) != 0 {
		t.Error("a partition took the place of a group")
	}
}

func TestWhatNoLongerFitsIsEvictedThoughItIsBusy(t *testing.T) {
	w, g, logs := rows(t, 10)
	for _, l := range logs {
		w.commit(g, l, 1)
	}
	w.step()
	w.pass()
	w.tracker.max = w.tracker.Bytes() - 4*partitionRingSize
	w.step()
	w.pass()
	if len(w.ringed("g")) != 6 || w.tracker.groups["g"].ring == nil {
		t.Errorf("%v have a ring", w.ringed("g"))
	}
	w.tracker.max = 1
	w.step()
	w.pass()
	if len(w.ringed("g")) != 0 || w.tracker.groups["g"].ring != nil {
		t.Error("there are rings beyond the bound")
	}
	checkBytes(t, w.tracker)
}

func TestTablesShareHalfOfTheMemory(t *testing.T) {
	const bound = 100_000
	w, _, logs := rows(t, 20)
	w.tracker.max = bound
	unread := w.log("unread", 0, 0)
	for range 500 {
		for _, l := range logs {
			w.produce(l, 1, w.now)
		}
		w.produce(unread, 1, w.now)
		w.step()
		w.pass()
	}
	points := 0
	for _, l := range w.tracker.allLogs {
		points += cap(l.table.points)
	}
	if got := points * pointSize; got > bound*3/4 || got < bound/4 {
		t.Errorf("tables take %d bytes of %d", got, bound)
	}
	if len(w.tracker.logs[key{"unread", 0}].table.points) != 0 {
		t.Error("a partition that no group reads has a table")
	}
	checkBytes(t, w.tracker)
}

func TestRingsRestSinceTheyMoved(t *testing.T) {
	w, g, logs := rows(t, 3)
	for i := range 3 { // 0, 1, 2, and 0 again.
		w.commit(g, logs[i], 1)
		w.step()
		w.pass()
	}
	w.commit(g, logs[0], 1)
	w.step()
	w.pass()
	var order []string
	for n := w.tracker.partitions.first; n != nil; n = n.next {
		order = append(order, fmt.Sprint(n.item.owner.log.Partition))
	}
	if !slices.Equal(order, []string{"1", "2", "0"}) {
		t.Errorf("%v", order)
	}
}
