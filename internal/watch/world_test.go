package watch

import (
	"context"
	"testing"
	"time"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/watch/lag"
)

// self is the node id of the broker in these tests.
const self = 1

// world is a broker with what tests give it.
type world struct {
	t       *testing.T
	w       *Watch
	now     time.Time
	image   *metadata.Image
	bits    map[string]uint8
	logs    map[Part]Log
	groups  []Group
	fetched map[Part]map[Reader]time.Time
	forgets bool         // Of no one it is known whether it fetches.
	others  map[Part]Log // What other brokers lead, and answer for.
	asked   []Question
	counts  map[PartitionOffset]*lag.Count
	counted []PartitionOffset
	between func() // Called between two groups.
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, now: time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC), image: metadata.NewImage(&config.Broker{}, metadata.Broker{ID: self}, metadata.Broker{ID: 2}),
		bits: map[string]uint8{}, logs: map[Part]Log{}, others: map[Part]Log{}, fetched: map[Part]map[Reader]time.Time{}, counts: map[PartitionOffset]*lag.Count{},
	}
	w.w = New(Options{Node: self, Source: w, MaxBytes: 1 << 20, Now: func() time.Time { return w.now }})
	return w
}

// topic makes a topic whose partitions have these leaders.
func (w *world) topic(name string, leaders ...int32) {
	t := metadata.Topic{Name: name, ID: metadata.TopicID{byte(len(name)), name[0]}}
	for _, l := range leaders {
		t.Partitions = append(t.Partitions, metadata.Partition{Leader: l})
	}
	e := w.image.Edit()
	e.PutTopic(t)
	w.image = e.Image()
}

func (w *world) fetch(p Part, r Reader) {
	if w.fetched[p] == nil {
		w.fetched[p] = map[Reader]time.Time{}
	}
	w.fetched[p][r] = w.now
}

// passes makes passes, an interval apart, each after something.
func (w *world) passes(n int, before func()) {
	for range n {
		w.now = w.now.Add(Interval)
		if before != nil {
			before()
		}
		w.w.Pass(w.t.Context())
	}
}

func (w *world) of(name string) (out lag.GroupLag) {
	w.t.Helper()
	w.w.Read(func(t *lag.Tracker) {
		var ok bool
		if out, ok = t.Of(name); !ok {
			w.t.Fatalf("there is no group %s", name)
		}
	})
	return out
}

func (w *world) Image() *metadata.Image { return w.image }

func (w *world) Prepare(context.Context) {}

func (w *world) Log(t *metadata.Topic, partition int32) (Log, bool) {
	l, ok := w.logs[Part{t.Name, partition}]
	return l, ok
}

func (w *world) TimeBits(t *metadata.Topic) uint8 { return w.bits[t.Name] }

func (w *world) Elsewhere(_ context.Context, questions []Question) []Answer {
	w.asked = append(w.asked, questions...)
	var out []Answer
	for _, q := range questions {
		p := Part{q.Topic, q.Partition}
		a := Answer{}
		a.Log, a.Known = w.others[p]
		for _, r := range q.Readers {
			a.Fetched = append(a.Fetched, Fetched{w.fetched[p][r], !w.forgets})
		}
		out = append(out, a)
	}
	return out
}

func (w *world) Groups(_ context.Context, _ *metadata.Image, _, take func([]Group)) {
	for i := range w.groups {
		w.groups[i].Seen = nil
		take(w.groups[i : i+1])
		if w.between != nil {
			w.between()
		}
	}
}

func (w *world) Count(_ context.Context, places []PartitionOffset) []*lag.Count {
	w.counted = append(w.counted, places...)
	var out []*lag.Count
	for _, p := range places {
		out = append(out, w.counts[p])
	}
	return out
}

func (w *world) Fetched(r Reader, topic string, partition int32) Fetched {
	return Fetched{w.fetched[Part{topic, partition}][r], !w.forgets}
}

func (w *world) FirstTime(string, int32, int64) (int64, bool) {
	return w.now.UnixMilli() - 60_000, true
}
