package watch

import (
	"context"
	"slices"
	"testing"
	"time"

	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

var (
	orders0 = Part{"orders", 0}
	orders1 = Part{"orders", 1}
	reader  = Reader{"billing-1", "10.0.0.1"}
)

// billing is a group with one member, which has the partitions.
func billing(committed map[Part]int64, owned ...Part) Group {
	g := Group{Row: list.GroupRow{Name: "billing", Type: "classic", State: "Stable"}, Tells: true, Topics: []string{"orders"}, Members: []Member{{reader, owned}}}
	for p, at := range committed {
		g.Offsets = append(g.Offsets, Offset{Part: p, Committed: at})
	}
	slices.SortFunc(g.Offsets, func(a, b Offset) int { return a.compare(b.Part) })
	return g
}

func TestBeforeTheFirstPassNothingIsKnown(t *testing.T) {
	s := newWorld(t).w.Snapshot()
	if !s.At.IsZero() || s.Node != self || s.Groups.Len() != 0 || s.Topics != nil {
		t.Errorf("%+v", s)
	}
}

func TestAPassSeesGroupsAndTopics(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self, self, 2, -1)
	w.topic("clicks", self)
	w.logs[orders0], w.logs[orders1] = Log{5, 100, 90, 4000, 0}, Log{0, 10, 10, 1, 0}
	w.groups = []Group{
		{Row: list.GroupRow{Name: "search", Type: "consumer", State: "Empty"}, Offsets: []Offset{{Part: Part{"clicks", 0}, Committed: 3}}},
		billing(map[Part]int64{orders0: 40, orders1: 12}, orders0, orders1),
	}
	w.w.Pass(t.Context())
	s := w.w.Snapshot()
	if !s.At.Equal(w.now) || s.Groups.Len() != 2 {
		t.Fatalf("%+v", s)
	}
	got, _ := s.Groups.Get("billing")
	if got.Lag != 60 || got.LagUnknown || got.Members != 1 || got.Partitions != 2 || got.State != "Stable" || got.Type != "classic" || got.CatchUpSeconds != nil ||
		!slices.Equal(got.Topics, []string{"orders"}) {
		t.Errorf("%+v", got)
	}
	// This broker is to lead it, and cannot serve it.
	if got, _ := s.Groups.Get("search"); !got.LagUnknown || got.Type != "consumer" || !slices.Equal(got.Topics, []string{"clicks"}) {
		t.Errorf("%+v", got)
	}
	if len(s.Topics) != 2 || s.Topics[0].Name != "clicks" || s.Topics[1].Name != "orders" || len(s.Topics[1].Partitions) != 4 {
		t.Fatalf("%+v", s.Topics)
	}
	want := []Partition{
		{Number: 0, Leader: self, Here: true, Start: 5, End: 100, LastStable: 90, Bytes: 4000, Dense: true},
		{Number: 1, Leader: self, Here: true, Start: 0, End: 10, LastStable: 10, Bytes: 1, Dense: true},
		{Number: 2, Leader: 2, Dense: true}, {Number: 3, Leader: -1, Dense: true},
	}
	if !slices.Equal(s.Topics[1].Partitions, want) {
		t.Errorf("%+v", s.Topics[1].Partitions)
	}
	if s.Topics[0].Partitions[0].Here {
		t.Error("a partition that cannot be served is here")
	}
}

func TestTopicsAreThoseThatAGroupReadsOrHasCommitted(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.topic(name, self)
		w.logs[Part{name, 0}] = Log{0, 1, 1, 1, 0}
	}
	g := billing(map[Part]int64{{"a", 0}: 0, {"c", 0}: 1}, Part{"c", 0})
	g.Topics = []string{"b", "c"}
	w.groups = []Group{g}
	w.w.Pass(t.Context())
	first, _ := w.w.Snapshot().Groups.Get("billing")
	if !slices.Equal(first.Topics, []string{"a", "b", "c"}) {
		t.Errorf("%v", first.Topics)
	}
	w.passes(1, nil)
	if again, _ := w.w.Snapshot().Groups.Get("billing"); &again.Topics[0] != &first.Topics[0] {
		t.Error("the list of topics is made anew though it is the same")
	}
	for _, topics := range [][]string{{"c"}, {"b", "c"}, {"b"}, {"d"}} { // As many as before, too.
		w.groups[0].Topics = topics
		w.passes(1, nil)
		want := slices.Compact(slices.Sorted(slices.Values(append([]string{"a", "c"}, topics...))))
		if got, _ := w.w.Snapshot().Groups.Get("billing"); !slices.Equal(got.Topics, want) {
			t.Errorf("%v, want %v", got.Topics, want)
		}
	}
}

// TestStuckPartitionsAreToldApart lets a group stand still for ten minutes.
func TestStuckPartitionsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world)
		before func(w *world)
		want   lag.Verdict
	}{
		{"nobody fetches", nil, nil, lag.NotFetching},
		{"its owner fetches", nil, func(w *world) { w.fetch(orders0, reader) }, lag.NotCommitting},
		{"its owner fetched long ago", func(w *world) { w.fetch(orders0, reader) }, nil, lag.NotFetching},
		{"somebody else fetches", nil, func(w *world) { w.fetch(orders0, Reader{reader.ClientID, "10.0.0.2"}) }, lag.NotFetching},
		{"another partition is fetched", nil, func(w *world) { w.fetch(orders1, reader) }, lag.NotFetching},
		{"it commits the same", nil, func(w *world) {
			w.fetch(orders0, reader)
			w.groups[0].Offsets[0].At = w.now
		}, lag.Stalled},
		{"nobody has it", func(w *world) { w.groups[0].Members[0].Parts = nil }, nil, lag.NoOwner},
		{"nobody reads the topic any more", func(w *world) {
			w.groups[0].Members[0].Parts, w.groups[0].Topics = nil, []string{"clicks"}
		}, nil, lag.Stopped},
		{"the group does not tell", func(w *world) { w.groups[0].Tells = false }, nil, lag.Stopped},
		{"there are no members", func(w *world) { w.groups[0].Members = nil }, nil, lag.Stopped},
		{"nobody knows who fetches", func(w *world) { w.forgets = true }, nil, lag.Stopped},
		{"elsewhere, nobody fetches", elsewhere, nil, lag.NotFetching},
		{"elsewhere, nobody knows who fetches", func(w *world) {
			elsewhere(w)
			w.forgets = true
		}, nil, lag.Stopped},
		{"elsewhere, its owner fetches", elsewhere, func(w *world) { w.fetch(orders0, reader) }, lag.NotCommitting},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.topic("orders", self, self)
			w.logs[orders0], w.logs[orders1] = Log{0, 100, 100, 1, 0}, Log{0, 100, 100, 1, 0}
			w.groups = []Group{billing(map[Part]int64{orders0: 5}, orders0)}
			if c.change != nil {
				c.change(w)
			}
			w.passes(60, func() {
				if c.before != nil {
					c.before(w)
				}
			})
			if got := w.of("billing"); got.Verdicts[c.want] != 1 {
				t.Errorf("%v, want %s", got.Verdicts, c.want)
			}
			s, _ := w.w.Snapshot().Groups.Get("billing")
			if found := slices.Contains(s.Findings, "stuck-partition"); found != c.want.Stuck() || s.Stuck == 1 != found {
				t.Errorf("%+v", s)
			}
		})
	}
}

// elsewhere has another broker lead the partition.
func elsewhere(w *world) {
	w.topic("orders", 2, self)
	w.others[orders0] = w.logs[orders0]
	delete(w.logs, orders0)
}

func TestLagOfWhatOtherBrokersLeadIsAsked(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 2, 2)
	w.others[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 30, {"orders", 7}: 1, {"gone", 0}: 1}, orders0, orders1)}
	w.w.Pass(t.Context())
	got, _ := w.w.Snapshot().Groups.Get("billing")
	if got.Lag != 70 || got.LagUnknown {
		t.Errorf("after the first pass: %+v", got)
	}
	slices.SortFunc(w.asked, func(a, b Question) int { return int(a.Partition) - int(b.Partition) })
	if len(w.asked) != 2 || w.asked[0].Leader != 2 || !slices.Equal(w.asked[0].Readers, []Reader{reader}) || w.asked[1].Partition != 1 {
		t.Fatalf("asked %+v", w.asked)
	}
	w.asked = nil
	w.passes(3, nil)
	if len(w.asked) != 6 {
		t.Errorf("asked %d times in three passes", len(w.asked))
	}
	delete(w.others, orders0)
	w.asked = nil
	w.passes(1, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); !got.LagUnknown || len(w.asked) != 2 {
		t.Errorf("nobody answers: %+v, asked %d times", got, len(w.asked))
	}
	w.topic("orders", self, 2) // It is this broker's now.
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	w.asked = nil
	w.passes(1, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); got.Lag != 70 || got.LagUnknown || len(w.asked) != 1 {
		t.Errorf("led here: %+v, asked %v", got, w.asked)
	}
}

func TestAnotherBrokersOwnerIsNotBlamedIfNobodyKnows(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 2, self)
	w.others[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 5}, orders0)}
	many := make([]Member, maxReaders+1)
	for i := range many {
		many[i] = Member{Reader{string(rune('a' + i)), "h"}, nil}
	}
	for i := range many { // More groups than are asked for: the last is not known.
		g := billing(map[Part]int64{orders0: 5}, orders0)
		g.Row.Name, g.Members[0].Reader = string(rune('A'+i)), many[i].Reader
		w.groups = append(w.groups, g)
	}
	w.passes(60, nil)
	if got := w.of("billing"); got.Verdicts[lag.NotFetching] != 1 {
		t.Errorf("who is asked for: %v", got.Verdicts)
	}
	if got := w.of(string(rune('A' + maxReaders))); got.Verdicts[lag.Stopped] != 1 {
		t.Errorf("who is not asked for: %v", got.Verdicts)
	}
}

func TestRecordsAreCountedWhereOffsetsAreNotDense(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.bits["orders"] = 10
	w.logs[orders0] = Log{0, 1 << 40, 1 << 40, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 7}, orders0)}
	place := PartitionOffset{"orders", 0, 7}
	check := func(what string, records int64, unknown, approximate bool, counted int) {
		t.Helper()
		w.passes(1, nil)
		got, _ := w.w.Snapshot().Groups.Get("billing")
		if got.Lag != records || got.LagUnknown != unknown || got.LagApproximate != approximate || len(w.counted) != counted {
			t.Errorf("%s: %+v, counted %v", what, got, w.counted)
		}
		w.counted = nil
	}
	check("nobody can count", 0, true, false, 1)
	w.counts[place] = &lag.Count{Records: 3}
	check("counted", 3, false, false, 1)
	check("nothing has moved", 3, false, false, 0)
	w.logs[orders0] = Log{0, 1<<40 + 1, 1 << 40, 1, 0}
	w.counts[place] = &lag.Count{Records: 4, Approximate: true}
	check("a record came", 4, false, true, 1)
	w.logs[orders0] = Log{0, 1<<40 + 1, 1 << 40, 2, 0}
	w.counts[place] = &lag.Count{Records: 2}
	check("compaction took some away", 2, false, false, 1)
	w.groups[0].Offsets[0].Committed = 1<<40 + 1
	check("at the end", 0, false, false, 0)
	if w.w.Snapshot().Topics[0].Partitions[0].Dense {
		t.Error("dense")
	}
}

func TestADeletedGroupIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 5}, orders0)}
	w.w.rebalanced("billing", w.now, "joined")
	w.passes(3, func() { w.groups[0].Offsets[0].Committed++ })
	points := func() (n int) {
		w.w.Read(func(t *lag.Tracker) { n = len(t.History("billing", 0)) })
		return n
	}
	got, _ := w.w.Snapshot().Groups.Get("billing")
	if points() == 0 || got.Cause != "joined" || got.Rebalanced == nil {
		t.Fatalf("%d points, %+v", points(), got)
	}
	w.w.deleted("billing") // And another one has its name.
	w.groups[0].Offsets[0].Committed = 1
	w.passes(1, nil)
	got, _ = w.w.Snapshot().Groups.Get("billing")
	if points() != 0 || got.Cause != "" || got.Rebalanced != nil || len(got.Findings) != 0 {
		t.Errorf("%d points, %+v", points(), got)
	}
	w.w.deleted("billing")
	w.w.rebalanced("billing", w.now, "left")
	w.passes(1, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); got.Cause != "left" {
		t.Errorf("rebalanced after it was deleted: %+v", got)
	}
	w.w.rebalanced("billing", w.now, "left again")
	w.w.deleted("billing")
	w.passes(1, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); got.Cause != "" {
		t.Errorf("deleted after it was rebalanced: %+v", got)
	}
	groups := w.groups
	w.groups = nil
	w.passes(1, nil)
	w.groups = groups
	w.passes(1, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); got.Cause != "" {
		t.Errorf("of a group that was gone it is remembered: %+v", got)
	}
}

func TestGroupsAreThereWhileAPassIsUnderWay(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 5}, orders0), billing(map[Part]int64{orders0: 6}, orders0)}
	w.groups[1].Row.Name = "search"
	w.w.Pass(t.Context())
	looked := 0
	w.between = func() {
		looked++
		if w.of("search").Lag != 94 {
			t.Error("another lag")
		}
	}
	w.passes(1, nil)
	if looked != 2 {
		t.Errorf("looked %d times", looked)
	}
}

func TestAPassThatIsBrokenOffShowsNothing(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 5}, orders0)}
	w.w.Pass(t.Context())
	before := w.w.Snapshot()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.now = w.now.Add(time.Minute)
	w.w.Pass(ctx)
	if w.w.Snapshot() != before {
		t.Error("there is another snapshot")
	}
}

func TestRunMakesAPassAtOnceAndEnds(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.topic("orders", self)
	w.groups = []Group{billing(nil)}
	w.between = cancel
	w.w.Run(ctx)
}
