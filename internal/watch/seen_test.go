package watch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"muster/internal/metadata"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// keeping is a world that remembers what it handed over, and spares facts that are the same.
type keeping struct {
	*world
	seen map[string]*Seen
	last map[string]string
	same map[lag.Quiet]int
}

func (k *keeping) Groups(_ context.Context, _ *metadata.Image, quiet, take func([]Group)) {
	for i := range k.groups {
		one := []Group{k.groups[i]}
		g := &one[0]
		now := fmt.Sprintf("%+v", *g)
		asked := []Group{{Row: list.GroupRow{Name: g.Row.Name}, Seen: k.seen[g.Row.Name]}}
		if quiet(asked); asked[0].Quiet != lag.Loud && k.last[g.Row.Name] == now {
			asked[0].Same = true
			k.same[asked[0].Quiet]++
			take(asked)
			continue
		}
		g.Seen = k.seen[g.Row.Name]
		take(one)
		k.seen[g.Row.Name], k.last[g.Row.Name] = g.Seen, now
	}
}

// Whoever is spared facts sees the same as who is told everything in each pass.
func TestGroupsThatAreAsTheyWereAreSeenWithoutFacts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 15))
	w := newWorld(t)
	k := &keeping{world: w, seen: map[string]*Seen{}, last: map[string]string{}, same: map[lag.Quiet]int{}}
	other := New(Options{Node: self, Source: k, MaxBytes: 1 << 20, Now: func() time.Time { return w.now }})
	w.topic("orders", self, self, 2)
	parts := []Part{{"orders", 0}, {"orders", 1}, {"orders", 2}}
	for _, p := range parts[:2] {
		w.logs[p] = Log{0, 100, 100, 1, 0}
	}
	w.others[parts[2]] = Log{0, 100, 100, 1, 0}
	for i := range 8 {
		g := billing(map[Part]int64{parts[i%2]: 5}, parts[i%2])
		g.Row.Name = fmt.Sprint("group-", i)
		w.groups = append(w.groups, g)
	}
	suspected := 0
	for i := range 1200 {
		if i%100 < 30 {
			actOn(r, w, other, parts)
		}
		w.passes(1, nil)
		other.Pass(t.Context())
		got, want := other.Snapshot(), w.w.Snapshot()
		for s := range want.Groups.All() {
			suspected += s.Poison
		}
		if !reflect.DeepEqual(all(got.Groups), all(want.Groups)) || !reflect.DeepEqual(got.Topics, want.Topics) || !got.At.Equal(want.At) {
			t.Fatalf("pass %d:\n%+v, want\n%+v", i, all(got.Groups), all(want.Groups))
		}
	}
	if suspected == 0 {
		t.Error("nothing was suspected")
	}
	if k.same[lag.Resting] < 100 || k.same[lag.Moving] < 100 {
		t.Errorf("facts were spared %v times", k.same)
	}
}

// A group that came in a pass that was broken off is there after the next.
func TestAGroupThatABrokenOffPassHasSeenIsNotLost(t *testing.T) {
	w := newWorld(t)
	k := &keeping{world: w, seen: map[string]*Seen{}, last: map[string]string{}, same: map[lag.Quiet]int{}}
	w.w = New(Options{Node: self, Source: k, MaxBytes: 1 << 20, Now: w.w.opts.Now})
	w.topic("orders", self)
	w.logs[orders0] = Log{0, 100, 100, 1, 0}
	w.groups = []Group{billing(map[Part]int64{orders0: 5}, orders0)}
	w.passes(2, nil)
	w.groups = append(w.groups, billing(map[Part]int64{orders0: 5}, orders0))
	w.groups[1].Row.Name = "search"
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w.w.Pass(ctx)
	w.passes(1, nil)
	if got := all(w.w.Snapshot().Groups); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// actOn lets something happen to some group or partition.
func actOn(r *rand.Rand, w *world, other *Watch, parts []Part) {
	i := r.IntN(len(w.groups))
	g := &w.groups[i]
	switch r.IntN(10) {
	case 0:
		cause := fmt.Sprint("cause ", r.IntN(9))
		for _, watch := range []*Watch{w.w, other} {
			watch.rebalanced(g.Row.Name, w.now, cause)
		}
	case 1:
		for _, watch := range []*Watch{w.w, other} {
			watch.deleted(g.Row.Name)
		}
		g.Offsets = []Offset{{Part: parts[0], Committed: 1}}
	case 2:
		p := parts[r.IntN(2)]
		l := w.logs[p]
		l.End, l.LastStable = l.End+1, l.End+1
		w.logs[p] = l
	case 3:
		g.Row.State = []string{"Stable", "Empty"}[r.IntN(2)]
	case 4:
		w.topic(fmt.Sprint("t", r.IntN(3)), self)
	case 5:
		w.groups = slices.Delete(w.groups, i, i+1)
		w.groups = append(w.groups, billing(map[Part]int64{parts[r.IntN(3)]: 5}, parts[r.IntN(3)]))
		w.groups[len(w.groups)-1].Row.Name = fmt.Sprint("new-", r.IntN(1000), w.now.Unix())
	case 6:
		o := &g.Offsets[0]
		var deaths []lag.Death
		for who := range uint64(1 + r.IntN(3)) {
			deaths = append(deaths, lag.Death{Who: who, Topic: o.Topic, Partition: o.Partition, Committed: o.Committed})
		}
		for _, watch := range []*Watch{w.w, other} {
			watch.died(g.Row.Name, deaths)
		}
	default:
		g.Offsets = []Offset{{Part: parts[0], Committed: w.logs[parts[0]].End - int64(r.IntN(2)), At: w.now}, {Part: parts[1], Committed: w.logs[parts[1]].End, At: w.now}}
	}
}

func all(x *list.Index) (out []list.GroupRow) {
	for s := range x.All() {
		out = append(out, *s)
	}
	return out
}

func TestATopicOfTheSameNameIsToldByItsID(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", self)
	w.logs[orders0] = Log{End: 100, LastStable: 100, Bytes: 1}
	w.groups = []Group{billing(map[Part]int64{orders0: 90}, orders0)}
	w.passes(3, nil)
	e := w.image.Edit()
	e.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{9}, Partitions: []metadata.Partition{{Leader: self}}})
	w.image = e.Image()
	w.logs[orders0] = Log{End: 150, LastStable: 150, Bytes: 1}
	w.groups = []Group{billing(map[Part]int64{orders0: 10}, orders0)}
	w.passes(1, nil)
	if got := w.of("billing"); got.Lag != 140 || got.Verdicts[lag.Rewound] != 0 {
		t.Errorf("%+v", got)
	}
}
