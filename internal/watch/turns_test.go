package watch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// slowStore counts so many places in a pass; after that the time of the pass is over.
type slowStore struct {
	*world
	atOnce, left int
	when         map[PartitionOffset]int // In which pass each was last counted.
	pass         int
}

func (s *slowStore) Prepare(context.Context) { s.left = s.atOnce; s.pass++ }

func (s *slowStore) Count(ctx context.Context, places []PartitionOffset) []*lag.Count {
	out := make([]*lag.Count, len(places))
	for i, p := range places {
		if s.left == 0 {
			<-ctx.Done()
			break
		}
		s.left--
		s.when[p] = s.pass
		out[i] = &lag.Count{Records: 7}
	}
	return out
}

// Where a pass has no time to count everything, each has its turn, and meanwhile the lag
// is what it was, approximately.
func TestEachPlaceIsCountedInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &slowStore{world: w, atOnce: 2 * countAtOnce, when: map[PartitionOffset]int{}}
		w.w = New(Options{Node: self, Source: s, MaxBytes: 1 << 20, Now: w.w.opts.Now})
		const parts = 5 * countAtOnce
		leaders := make([]int32, parts)
		for i := range leaders {
			leaders[i] = self
		}
		w.topic("orders", leaders...)
		w.bits["orders"] = 10
		g := Group{Row: list.GroupRow{Name: "billing", Type: "classic", State: "Empty"}}
		for i := range int32(parts) {
			g.Offsets = append(g.Offsets, Offset{Part: Part{"orders", i}, Committed: 5})
		}
		w.groups = []Group{g}
		grow := func() { // All move, so nothing is known from before.
			for i := range int32(parts) {
				w.logs[Part{"orders", i}] = Log{0, int64(1000 + s.pass), 0, 1, 0}
			}
		}
		for pass := range 4 {
			w.passes(1, grow)
			got := w.of("billing")
			if all := pass >= 2; got.Unknown == all || all && (got.Lag != 7*parts || !got.Approximate) {
				t.Errorf("after %d passes: %+v", pass+1, got.Total)
			}
		}
		w.passes(3, grow)
		for i := range int32(parts) {
			if at := s.when[PartitionOffset{"orders", i, 5}]; at < s.pass-3 {
				t.Fatalf("partition %d was last counted in pass %d of %d", i, at, s.pass)
			}
		}
		s.atOnce = parts
		w.passes(2, grow)
		if got := w.of("billing"); got.Unknown || got.Approximate || got.Lag != 7*parts {
			t.Errorf("when there is time for all: %+v", got.Total)
		}
	})
}

// Places that take all the time there is do not keep others from their turn.
func TestWhoTakesAllTheTimeDoesNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := &slowStore{world: w, atOnce: 0, when: map[PartitionOffset]int{}}
		w.w = New(Options{Node: self, Source: s, MaxBytes: 1 << 20, Now: w.w.opts.Now})
		w.topic("orders", self, self)
		w.bits["orders"] = 10
		for i := range int32(2) {
			w.logs[Part{"orders", i}] = Log{0, 1000, 0, 1, 0}
			w.groups = append(w.groups, Group{Row: list.GroupRow{Name: fmt.Sprint("g", i)}, Offsets: []Offset{{Part: Part{"orders", i}, Committed: 5}}})
		}
		w.passes(1, nil)
		if w.w.countFrom != 1 {
			t.Fatalf("the next pass begins with %d", w.w.countFrom)
		}
		s.atOnce = 1
		w.passes(1, nil)
		if got := w.of("g1"); got.Unknown || got.Lag != 7 || got.Approximate {
			t.Errorf("%+v", got.Total)
		}
		if got := w.of("g0"); !got.Unknown {
			t.Errorf("%+v", got.Total)
		}
	})
}

// sharingStore counts so many records in one question: whoever comes later in it is not
// counted, though there is time.
type sharingStore struct {
	*world
	lags, share int64
}

func (s *sharingStore) Count(_ context.Context, places []PartitionOffset) []*lag.Count {
	out := make([]*lag.Count, len(places))
	left := s.share
	for i := range places {
		if left -= s.lags; left < 0 {
			break
		}
		out[i] = &lag.Count{Records: s.lags}
	}
	return out
}

// What one question had no room for is asked for by itself in the same pass.
func TestPlacesThatAQuestionHasNoRoomForAreCountedAlone(t *testing.T) {
	w := newWorld(t)
	s := &sharingStore{world: w, lags: 100, share: 200}
	w.w = New(Options{Node: self, Source: s, MaxBytes: 1 << 20, Now: w.w.opts.Now})
	w.topic("orders", self, self, self, self, self)
	w.bits["orders"] = 10
	g := Group{Row: list.GroupRow{Name: "billing", Type: "classic", State: "Empty"}}
	for i := range int32(5) {
		g.Offsets = append(g.Offsets, Offset{Part: Part{"orders", i}, Committed: 5})
		w.logs[Part{"orders", i}] = Log{0, 1000, 0, 1, 0}
	}
	w.groups = []Group{g}
	w.passes(1, func() {})
	if got := w.of("billing"); got.Unknown || got.Lag != 500 || got.Approximate {
		t.Errorf("%+v", got.Total)
	}
	// Retention takes unread records away: what was counted is not true any more.
	s.lags = 10
	for i := range int32(5) {
		w.logs[Part{"orders", i}] = Log{900, 1000, 0, 1, 0}
	}
	w.passes(1, func() {})
	if got := w.of("billing"); got.Unknown || got.Lag != 50 {
		t.Errorf("after retention: %+v", got.Total)
	}
}
