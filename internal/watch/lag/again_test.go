package lag

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// told is what a tracker says of a group, on all ways.
func told(t *Tracker, name string, logs []*worldLog) (out []any) {
	of, ok := t.Of(name)
	out = append(out, of, ok, t.Partitions(name), t.Recent(name))
	for level := range levels {
		out = append(out, t.History(name, level))
	}
	for _, l := range logs {
		out = append(out, t.PartitionHistory(name, l.Topic, l.Partition), t.InTopic(name, l.Topic))
	}
	return out
}

// passAgain is pass, but facts of groups are handed in only where they have changed or are
// needed. It counts how often that was so.
func (w *world) passAgain(to *Tracker, before map[string]Group, kinds map[Quiet]int) {
	to.Begin(w.now)
	for _, k := range sortedKeys(w.logs) {
		to.Log(w.logs[k].Log)
	}
	for name := range w.groups {
		facts, q := w.facts(name), to.Quiet(to.Keep(name))
		if q != Loud && reflect.DeepEqual(unfetched(facts), unfetched(before[name])) {
			kinds[q]++
			to.Again(to.Keep(name), q)
		} else {
			kinds[Loud]++
			to.Group(facts)
		}
		before[name] = facts
	}
	to.End()
}

// unfetched leaves out who fetched when, which a coordinator does not know, and how many
// records were counted, which it does not count.
func unfetched(g Group) Group {
	out := Group{Name: g.Name, Members: g.Members}
	for _, p := range g.Positions {
		p.Fetched, p.Behind = time.Time{}, nil
		out.Positions = append(out.Positions, p)
	}
	return out
}

func TestQuietGroupsNeedNoFacts(t *testing.T) {
	kinds := map[Quiet]int{}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 16))
			w := newWorld(t, 1<<20)
			other := NewTracker(Limits{1 << 20, 1000}, w)
			before := map[string]Group{}
			logs := []*worldLog{w.log("orders", 0, 0), w.log("orders", 1, 0), w.log("clicks", 0, 10), w.log("rare", 7, 0)}
			names := []string{"a", "b", "c", "d", "e"}
			for i := range 700 {
				w.step()
				if r.IntN(300) == 0 {
					w.now = w.now.Add(time.Duration(r.IntN(3600)) * time.Second)
				}
				for _, l := range logs {
					l.Offline = r.IntN(150) == 0
				}
				// For a while everything rests, as it does at night.
				if i%100 < 40 {
					w.actSeldom(r, logs, names)
				}
				if r.IntN(400) == 0 {
					gone := names[r.IntN(len(names))]
					delete(w.groups, gone)
					w.tracker.Forget(gone)
					other.Forget(gone)
				}
				w.pass()
				w.passAgain(other, before, kinds)
				for name := range w.groups {
					if got, want := told(other, name, logs), told(w.tracker, name, logs); !reflect.DeepEqual(got, want) {
						t.Fatalf("pass %d, %s:\n%+v, want\n%+v", i, name, got, want)
					}
				}
				checkBytes(t, other)
			}
		})
	}
	if kinds[Resting] < 500 || kinds[Moving] < 500 || kinds[Loud] < 500 {
		t.Errorf("how quiet groups were: %v", kinds)
	}
}

// actSeldom lets some of what act does happen now and then.
func (w *world) actSeldom(r *rand.Rand, logs []*worldLog, names []string) {
	for _, l := range logs {
		if l.Offline {
			continue
		}
		if r.IntN(6) == 0 {
			w.produce(l, r.IntN(5), time.UnixMilli(max(w.now.UnixMilli()-r.Int64N(10_000), l.newest())))
		}
		if r.IntN(100) == 0 {
			l.trim(r.IntN(20))
		}
		name := names[r.IntN(len(names))]
		if l.TimeBits > 0 {
			name = "stream" // Its records are counted in each pass, so it is seldom quiet.
		}
		g, k := w.group(name), key{l.Topic, l.Partition}
		switch r.IntN(12) {
		case 0:
			g.members = r.IntN(2)
		case 1:
			if r.IntN(10) == 0 {
				delete(g.committed, k)
			}
		case 2, 3, 4:
			w.commit(g, l, r.IntN(30))
		case 5:
			w.commit(g, l, 1000)
		case 6:
			g.fetched[k] = w.now
		}
	}
}
