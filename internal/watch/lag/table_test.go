package lag

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// appends is the true history of a log: when each record was appended.
type appends struct {
	at []tick // By offset.
}

func (a *appends) add(at tick, n int) {
	for range n {
		a.at = append(a.at, at)
	}
}

func TestTableBoundsWhenRecordsWereAppended(t *testing.T) {
	for _, passes := range []int{50, 3000, 80_000} { // Minutes, hours, nine days.
		r := rand.New(rand.NewPCG(1, uint64(passes)))
		var table table
		var truth appends
		now := hour
		resting := 0
		for pass := range passes {
			from := now
			now += step
			if r.IntN(5000) == 0 {
				resting = r.IntN(500)
			}
			if resting > 0 {
				resting--
			} else {
				truth.add(from+1+tick(r.IntN(int(step))), r.IntN(4))
			}
			table.note(now, int64(len(truth.at)), fullTable)
			if pass%(passes/10) == 0 || pass == passes-1 {
				checkWindows(t, &table, &truth, now)
			}
		}
		if first := table.points[0].at; first+7*day+20*minute < now {
			t.Errorf("the first point is %d hours old", (now-first)/hour)
		}
		if most := fullTable + 2*growth; len(table.points) > most || cap(table.points) > most+3*growth {
			t.Errorf("%d points, and room for %d", len(table.points), cap(table.points))
		}
	}
}

// widest is how wide a window may be, by its age.
func widest(age tick) tick {
	switch {
	case age < 36_000:
		return 100 // 10 s
	case age < 864_000:
		return 600
	}
	return 6000
}

// checkWindows holds the table against the truth.
func checkWindows(t *testing.T, table *table, truth *appends, now tick) {
	t.Helper()
	for offset, at := range truth.at {
		from, to, older, beyond := table.window(int64(offset))
		age := now - at
		switch {
		case beyond:
			t.Fatalf("offset %d of %d is beyond the table", offset, len(truth.at))
		case older && age < 7*day-20*minute && table.points[0].at > hour+step:
			t.Fatalf("offset %d, %d ticks old, is older than the table, which begins at %d, now %d", offset, age, table.points[0].at, now)
		case older && at > to.at:
			t.Fatalf("offset %d was appended at %d, and is said to be older than %d", offset, at, to.at)
		case !older && (at <= from.at || at > to.at):
			t.Fatalf("offset %d was appended at %d, not in %d…%d", offset, at, from.at, to.at)
		case !older && to.at-from.at > widest(now-from.at):
			t.Fatalf("offset %d, %d ticks old: the window %d…%d is too wide", offset, age, from.at, to.at)
		}
	}
}

func TestTableKeepsTheEdgesOfARest(t *testing.T) {
	var table table
	for i := range tick(100) {
		end := int64(5)
		if i == 99 {
			end = 8
		}
		table.note(hour+i*step, end, fullTable)
	}
	if len(table.points) != 3 {
		t.Fatalf("%d points", len(table.points))
	}
	from, to, older, _ := table.window(5)
	if older || from.at != hour+98*step || to.at != hour+99*step {
		t.Errorf("the record that ended the rest was appended in %v…%v", from, to)
	}
	if _, to, older, _ := table.window(4); !older || to.at != hour {
		t.Errorf("the record before the rest: %v", to)
	}
}

func TestTableBeginsAnewWithAnotherLog(t *testing.T) {
	var table table
	table.note(hour, 100, fullTable)
	table.note(hour+step, 200, fullTable)
	if !table.note(hour+2*step, 200, fullTable) || table.note(hour+3*step, 199, fullTable) {
		t.Fatal("the end went back, and the table did not see it")
	}
	if len(table.points) != 1 || table.points[0].end() != 199 {
		t.Errorf("%v", table.points)
	}
	table.note(hour+3*step, 300, fullTable)
	if len(table.points) != 1 {
		t.Error("two points at one time")
	}
}

func TestTableStaysWithinItsLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(leastTable, 500).Draw(t, "limit")
		var table table
		for i := range 1500 {
			table.note(hour+tick(i)*step, int64(i), limit)
			if len(table.points) > limit+growth || cap(table.points) > limit+3*growth {
				t.Fatalf("%d points and room for %d, though the limit is %d", len(table.points), cap(table.points), limit)
			}
		}
	})
}

func TestTableKnowsWhatTheLogEndedAt(t *testing.T) {
	var table table
	if _, ok := table.endAt(day); ok {
		t.Error("an empty table knows an end")
	}
	for i := range tick(20) {
		table.note(hour+i*step, int64(i)<<33, fullTable)
	}
	for i := range tick(20) {
		for _, later := range []tick{0, 1, step - 1} {
			if p, ok := table.endAt(hour + i*step + later); !ok || p.end() != int64(i)<<33 || p.at != hour+i*step {
				t.Fatalf("at %d+%d: %v", i, later, p)
			}
		}
	}
	if _, ok := table.endAt(hour - 1); ok {
		t.Error("the table knows an end before it began")
	}
}
