package native

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
)

// held is a stream with groups, and who holds it.
type held struct {
	*bench
	*Consumers
	holders map[string]map[store.TopicPartition]string
}

func newHeld(t *testing.T, url string, groups ...string) *held {
	h := &held{bench: newBench(t, url, store.LayoutStream), holders: map[string]map[store.TopicPartition]string{}}
	h.Consumers = NewConsumers(h.native, ConsumersOptions{
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Holders: func(_ context.Context, group string) (map[store.TopicPartition]string, bool) {
			holders, ok := h.holders[group]
			return maps.Clone(holders), ok
		},
	})
	h.add(at(1, 0), at(2, 0))
	for _, group := range groups {
		h.move(group, 0)
	}
	return h
}

// hold has a consumer, or no one, hold the partition.
func (h *held) hold(group, name string) {
	h.holders[group] = map[store.TopicPartition]string{}
	if name != "" {
		h.holders[group][h.stream.TopicPartition] = name
	}
	h.Changed(group)
	h.round(context.Background())
}

// consumers returns what XINFO CONSUMERS shows.
func (h *held) consumers(group string) []string {
	h.t.Helper()
	list, err := h.do("XINFO", "CONSUMERS", group).ToArray()
	if err != nil {
		h.t.Fatal(err)
	}
	var names []string
	for _, c := range list {
		fields, err := c.AsMap()
		if err != nil {
			h.t.Fatal(err)
		}
		name := fields["name"]
		text, _ := name.ToString()
		names = append(names, text)
	}
	slices.Sort(names)
	return names
}

func (h *held) wantConsumers(group string, want ...string) {
	h.t.Helper()
	if got := h.consumers(group); !slices.Equal(got, want) {
		h.t.Errorf("consumers of %s are %q, not %q", group, got, want)
	}
}

func TestMembersAreShownAsConsumersWhileTheyHoldAPartition(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		h := newHeld(t, url, "g", "other")
		h.hold("g", "ann")
		h.wantConsumers("g", "ann")
		h.wantConsumers("other")
		h.hold("other", "carl")
		h.hold("g", "bob") // It was taken from ann.
		h.wantConsumers("g", "bob")
		h.wantConsumers("other", "carl")
		h.hold("g", "") // No one has it.
		h.wantConsumers("g")
		h.wantConsumers("other", "carl")
		if h.count != 1 || len(h.shown) != 1 {
			t.Errorf("%d partitions of %d groups are remembered, not 1 of 1", h.count, len(h.shown))
		}
	})
}

func TestConsumersOfRedisApplicationsAreLeftAlone(t *testing.T) {
	h := newHeld(t, redistest.Shared(t, redistest.KindSingle).URL(), "g")
	h.do("XGROUP", "CREATECONSUMER", "g", "theirs")
	h.hold("g", "ann")
	// An application reads as ann.
	read := h.client.B().Xreadgroup().Group("g", "ann").Count(1).Streams().Key(h.key).Id(">").Build()
	must(t, h.client.Do(context.Background(), read).Error())
	h.hold("g", "bob")
	h.wantConsumers("g", "ann", "bob", "theirs")
	if g := h.group("g"); g["pending"] != "1" {
		t.Errorf("pending: %v", g)
	}
	h.hold("g", "")
	h.wantConsumers("g", "ann", "theirs")
}

// TestConsumerIsShownOnceItsGroupIs has members be assigned before they fetch.
func TestConsumerIsShownOnceItsGroupIs(t *testing.T) {
	h := newHeld(t, redistest.Shared(t, redistest.KindSingle).URL())
	h.hold("g", "ann")
	if h.group("g") != nil {
		t.Fatal("to show a consumer made a group")
	}
	h.move("g", 0)
	h.round(context.Background())
	h.wantConsumers("g", "ann")
	if len(h.waiting) != 0 {
		t.Errorf("still waiting: %v", h.waiting)
	}
	h.hold("never", "ann")
	for range consumersRounds + 1 {
		h.round(context.Background())
	}
	if len(h.waiting) != 0 {
		t.Errorf("waiting for ever: %v", h.waiting)
	}
}

func TestUnknownHoldersChangeNothing(t *testing.T) {
	h := newHeld(t, redistest.Shared(t, redistest.KindSingle).URL(), "g")
	h.hold("g", "ann")
	delete(h.holders, "g") // Another broker coordinates the group now, or it rebalances.
	h.Changed("g")
	h.round(context.Background())
	h.wantConsumers("g", "ann")
}

func TestDestroyedGroupsForgetTheirConsumers(t *testing.T) {
	h := newHeld(t, redistest.Shared(t, redistest.KindSingle).URL(), "g", "other")
	h.hold("g", "ann")
	h.hold("other", "ann")
	must(t, h.native.DestroyGroups(context.Background(), []store.TopicPartition{h.stream.TopicPartition}, []string{"g"}))
	kept, err := h.client.Do(context.Background(), h.client.B().Hgetall().Key("{"+h.key+"}:c").Build()).AsStrMap()
	if err != nil || len(kept) != 1 || kept["other"] != "ann" {
		t.Errorf("consumers are remembered: %v, %v", kept, err)
	}
}

func TestConsumersHoldABoundedNumberOfGroups(t *testing.T) {
	c := NewConsumers(New(nil, "p"), ConsumersOptions{})
	for i := range consumersLimit + 10 {
		c.Changed(strings.Repeat("g", i%7) + time.Duration(i).String())
	}
	if len(c.waiting) != consumersLimit {
		t.Errorf("%d groups wait", len(c.waiting))
	}
	many := map[store.TopicPartition]string{}
	for p := range int32(consumersLimit) {
		many[tp(p)] = "ann"
	}
	for _, group := range []string{"a", "b", "a"} {
		if list := c.compare(group, many); len(list) != consumersLimit {
			t.Errorf("%d partitions of %s are shown", len(list), group)
		}
	}
	if c.count != consumersLimit || len(c.shown) != 1 {
		t.Errorf("%d partitions of %d groups are remembered", c.count, len(c.shown))
	}
}

func TestConsumersAreShownAllTheTime(t *testing.T) {
	h := newHeld(t, redistest.Shared(t, redistest.KindSingle).URL(), "g")
	var mu sync.Mutex
	name := "ann"
	h.opts.Every = time.Millisecond
	h.opts.Holders = func(context.Context, string) (map[store.TopicPartition]string, bool) {
		mu.Lock()
		defer mu.Unlock()
		return map[store.TopicPartition]string{h.stream.TopicPartition: name}, true
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { h.Run(ctx); close(done) }()
	for _, next := range []string{"ann", "bob"} {
		mu.Lock()
		name = next
		mu.Unlock()
		h.Changed("g")
		redistest.Eventually(t, "the consumer to be shown", func() bool { return slices.Equal(h.consumers("g"), []string{next}) })
	}
	cancel()
	<-done
}
