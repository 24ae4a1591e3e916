package watch

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"muster/internal/metadata"
	"muster/internal/watch/lag"
)

func TestLagOfAPartitionWithoutALeaderIsNotKnown(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self, -1)
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 90, orders1: 5}, orders0, orders1)}
	w.passes(2, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); !got.LagUnknown || got.Lag != 10 || got.Offsets != 2 {
		t.Errorf("%+v", got)
	}
	if len(w.asked) > 0 {
		t.Errorf("nobody leads it, and is asked: %v", w.asked)
	}
	w.groups[0].Offsets[1].Topic = "users" // There is no such topic, so there is nothing to read.
	w.passes(1, nil)
	if got, _ := w.w.Snapshot().Groups.Get("billing"); got.LagUnknown || got.Lag != 10 || got.Offsets != 2 {
		t.Errorf("without a topic: %+v", got)
	}
}

func TestRetentionIsTheTopics(t *testing.T) {
	for _, c := range []struct {
		set    map[string]string
		margin bool
	}{
		{map[string]string{"retention.ms": "3600000"}, true},
		{map[string]string{"retention.ms": "3600000", "cleanup.policy": "compact"}, false},
		{map[string]string{"retention.ms": "-1"}, false},
	} {
		w := newWorld(t)
		e := w.image.Edit()
		e.PutTopic(metadata.Topic{Name: "orders", Partitions: []metadata.Partition{{Leader: self}}, Set: c.set})
		w.image = e.Image()
		w.logs[orders0] = Log{0, 100, 100, 1, 0}
		w.groups = []Group{billing(map[Part]int64{orders0: 90}, orders0)}
		w.passes(1, nil)
		if got := w.of("billing"); math.IsInf(got.Margin, 1) == c.margin || c.margin && got.Margin > 3600 {
			t.Errorf("%v: %v s are left", c.set, got.Margin)
		}
	}
}

func TestRatesAndTheTimeToCatchUp(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{0, 10_000, 10_000, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 0}, orders0)}
	w.passes(30, func() {
		l := w.logs[orders0]
		l.End += 10
		w.logs[orders0] = l
		w.groups[0].Offsets[0].Committed += 30
	})
	got := w.of("billing")
	if math.Abs(got.Rates.Produced-1) > 0.1 || math.Abs(got.Rates.Consumed-3) > 0.2 || got.CatchUp != lag.Catching {
		t.Errorf("%+v", got)
	}
	if s, _ := w.w.Snapshot().Groups.Get("billing"); s.CatchUpSeconds == nil || *s.CatchUpSeconds != got.CatchUpTime.Seconds() || *s.CatchUpSeconds < 3600 {
		t.Errorf("%+v", s)
	}
	w.groups[0].Offsets[0].Committed = w.logs[orders0].End
	w.passes(1, nil)
	if s, _ := w.w.Snapshot().Groups.Get("billing"); s.CatchUpSeconds == nil || *s.CatchUpSeconds != 0 || s.Lag != 0 {
		t.Errorf("%+v", s)
	}
}

// While a partition goes from one member to another, both may have it.
func TestAPartitionThatTwoMembersHaveCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	g := billing(map[Part]int64{orders0: 90}, orders0)
	g.Members = append(g.Members, Member{Reader{"b", "h"}, []Part{orders0}})
	w.groups = []Group{g}
	w.passes(1, nil)
	if got := w.of("billing"); got.Partitions != 1 || got.Uncommitted != 0 || got.Lag != 10 {
		t.Errorf("%+v", got)
	}
}

// One group's place is counted once for all groups that are there, and no more is counted
// than there is time for.
func TestCountsAreSharedAndBounded(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.bits["orders"] = 10
	w.logs[orders0] = Log{0, 1 << 40, 1 << 40, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 7}, orders0), billing(map[Part]int64{orders0: 7}, orders0)}
	w.groups[1].Row.Name = "search"
	w.counts[PartitionOffset{"orders", 0, 7}] = &lag.Count{Records: 3}
	w.passes(1, nil)
	if len(w.counted) != 1 || w.of("search").Lag != 3 || w.of("billing").Lag != 3 {
		t.Errorf("counted %v", w.counted)
	}
	x := &pass{w: w.w, image: w.image, streams: map[Part]stream{orders0: {Bounds: lag.Bounds{End: 1 << 41}}}, counts: map[PartitionOffset]counted{}, counted: countTime}
	w.counted = nil
	if x.count(t.Context(), w.groups); len(w.counted) > 0 {
		t.Error("there was no time, and it is counted")
	}
}

func TestReadersAreAskedForOnce(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 2)
	w.others[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 7}, orders0), billing(map[Part]int64{orders0: 7}, orders0)}
	w.groups[1].Row.Name = "search"
	w.passes(1, nil)
	if len(w.asked) != 1 || len(w.asked[0].Readers) != 1 {
		t.Errorf("asked %+v", w.asked)
	}
}

// Clients choose their ids, and a question to another broker must stay small.
func TestReadersWithLongNamesAreNotAskedFor(t *testing.T) {
	for _, c := range []struct {
		client int
		asked  int
		want   lag.Verdict
	}{{maxReaderBytes - len(reader.Host), 1, lag.NotFetching}, {maxReaderBytes - len(reader.Host) + 1, 0, lag.Stopped}} {
		w := newWorld(t)
		w.topic("orders", 2)
		w.others[orders0] = Log{0, 100, 100, 1, 0}
		g := billing(map[Part]int64{orders0: 7}, orders0)
		g.Members[0].ClientID = strings.Repeat("x", c.client)
		w.groups = []Group{g}
		w.passes(60, nil)
		if len(w.asked[0].Readers) != c.asked {
			t.Errorf("an id of %d bytes: asked for %d", c.client, len(w.asked[0].Readers))
		}
		if got := w.of("billing"); got.Lag != 93 || got.Verdicts[c.want] != 1 {
			t.Errorf("an id of %d bytes: %+v", c.client, got)
		}
	}
}

func TestTheEndsOfVeryManyGroupsAreNotKept(t *testing.T) {
	k := keeper{}
	for i := range 1000 {
		k.noteDeleted(map[string]bool{strings.Repeat("x", 30_000) + strconv.Itoa(i): true})
	}
	if n := len(k.deleted); n < 130 || n > 140 {
		t.Errorf("%d are kept of those with long names", n)
	}
	k = keeper{}
	short := map[string]bool{}
	for i := range 500_000 {
		short[strconv.Itoa(i)] = true
	}
	k.noteDeleted(short)
	if n := len(k.deleted); n < 100_000 || n > 250_000 {
		t.Errorf("%d are kept of those with short names", n)
	}
	w, _ := taped(t, &tape{})
	w.w.deleted("aa")
	w.passes(1, nil)
	if len(w.w.keeper.deleted) > 0 {
		t.Error("it is kept though there is no topic")
	}
}
