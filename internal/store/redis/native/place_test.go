package native

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
)

// called returns how often a server executed a command, inside of scripts too.
func called(n *redistest.Node, command string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(n.Info("commandstats", "cmdstat_"+command), "calls="), ",")
	count, _ := strconv.Atoi(text)
	return count
}

// TestMovingManyGroupsOfAStreamLooksAtThemOnce counts commands: to look at all
// groups of a stream for each of them would cost the square of their number.
func TestMovingManyGroupsOfAStreamLooksAtThemOnce(t *testing.T) {
	const entries = 5000
	groups := 500
	if testing.Short() {
		groups = 50
	}
	s := redistest.Single(t)
	b := newBench(t, s.URL(), store.LayoutStream)
	offsets := make([]int64, entries)
	for i := range offsets {
		offsets[i] = at(int64(1000+i), 0)
	}
	b.add(offsets...)
	name := func(i int) string { return fmt.Sprint("group", i) }
	for i := range groups {
		must(t, b.native.CreateGroup(context.Background(), b.stream, name(i), 0))
		must(t, b.native.CreateGroup(context.Background(), b.stream, name(i), at(9, 0))) // which is there
	}
	b.want(name(7), "0-0", "5000")
	if n := called(s.Nodes[0], "xinfo|groups") - 1; n != 0 {
		t.Errorf("to create %d groups, all groups were looked at %d times", groups, n)
	}
	m := NewMover(b.native, MoverOptions{Every: time.Hour})
	defer m.Close(context.Background())
	// First all are in the midst of the stream, where only their last place tells
	// the number, and then near its end.
	for _, from := range []int{entries / 2, entries - 30} {
		looks, calls := called(s.Nodes[0], "xinfo|groups"), called(s.Nodes[0], "evalsha")
		for i := range groups {
			m.Move(b.stream, name(i), offsets[from+i%30])
		}
		m.round(context.Background())
		looks, calls = called(s.Nodes[0], "xinfo|groups")-looks, called(s.Nodes[0], "evalsha")-calls
		if looks > 20 || calls > 20 || from > entries/2 && looks > 0 {
			t.Errorf("to move %d groups, all groups were looked at %d times, in %d calls", groups, looks, calls)
		}
	}
	for i := range groups {
		offset := entries - 30 + i%30
		b.want(name(i), b.stream.IDBefore(offsets[offset]), strconv.Itoa(entries-offset))
	}
}

// TestOneCallIsAboutOneStreamAndCountsLittle bounds what holds up everybody else.
func TestOneCallIsAboutOneStreamAndCountsLittle(t *testing.T) {
	var list []placement
	for i := range 3000 {
		list = append(list, placement{redis.Stream{TopicPartition: tp(int32(i % 2))}, fmt.Sprint(i), 0})
	}
	for counted, calls := range map[int]int{0: 2, 1: 2, 10: 2 * 8, maxCounted: 1500} {
		parts, seen := byStream(list, counted), 0
		for _, part := range parts {
			if len(part)*counted > callCounted {
				t.Errorf("a call counts %d entries for each of %d groups", counted, len(part))
			}
			for _, i := range part {
				if seen++; list[i].stream != list[part[0]].stream {
					t.Error("a call is about two streams")
				}
			}
		}
		if len(parts) != calls || seen != len(list) {
			t.Errorf("%d calls, not %d, place %d of %d groups", len(parts), calls, seen, len(list))
		}
	}
}
