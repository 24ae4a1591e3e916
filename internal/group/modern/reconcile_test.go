package modern

import (
	"fmt"
	"slices"
	"testing"

	"muster/internal/metadata"
)

var topic = metadata.TopicID{1}

func parts(numbers ...int32) (out []Partition) {
	for _, n := range numbers {
		out = append(out, Partition{topic, n})
	}
	return out
}

func held(since int32, numbers ...int32) (out []Held[Partition]) {
	for _, p := range parts(numbers...) {
		out = append(out, Held[Partition]{p, since})
	}
	return out
}

// toward is a target of an epoch, of which some partitions are not free.
func toward(epoch int32, wanted []Partition, taken ...int32) *Target[Partition] {
	return &Target[Partition]{
		Epoch: epoch, Wanted: func() []Partition { return wanted },
		Wants:  func(p Partition) bool { return slices.Contains(wanted, p) },
		IsFree: func(p Partition) bool { return !slices.Contains(taken, p.Number) },
	}
}

func show(n *Current[Partition]) string {
	return fmt.Sprint(n.Epoch, n.Previous, n.State, numbers(n.Assigned), numbers(n.Pending))
}

func numbers(list []Held[Partition]) (out []string) {
	for _, p := range list {
		out = append(out, fmt.Sprintf("%d@%d", p.Part.Number, p.Since))
	}
	return out
}

func TestAMemberLetsGoFirstAndGetsWhatIsFreeThen(t *testing.T) {
	owns := func(numbers ...int32) *Heartbeat[Partition] {
		return &Heartbeat[Partition]{Tells: true, Owned: parts(numbers...)}
	}
	unsubscribed := toward(7, parts(2))
	unsubscribed.Unsubscribed = true
	for what, c := range map[string]struct {
		now  Current[Partition]
		h    *Heartbeat[Partition]
		to   *Target[Partition]
		want string
	}{
		"new":                      {Current[Partition]{}, owns(), toward(5, parts(1, 2)), "5 0 0 [1@5 2@5] []"},
		"waits for another":        {Current[Partition]{}, owns(), toward(5, parts(1, 2), 2), "5 0 2 [1@5] []"},
		"has to let go":            {Current[Partition]{Epoch: 4, Assigned: held(4, 1, 2)}, owns(1, 2), toward(5, parts(2, 3)), "4 0 1 [2@4] [1@4]"},
		"does not say what it has": {Current[Partition]{Epoch: 4, Assigned: held(4, 1, 2)}, &Heartbeat[Partition]{}, toward(5, parts(2)), "4 0 1 [2@4] [1@4]"},
		"has let go before":        {Current[Partition]{Epoch: 4, Assigned: held(4, 1, 2)}, owns(2), toward(5, parts(2, 3)), "5 4 0 [2@4 3@5] []"},
		"holds on":                 {Current[Partition]{Epoch: 4, State: Unrevoked, Assigned: held(4, 2), Pending: held(4, 1)}, owns(1, 2), toward(6, parts(3)), "4 0 1 [2@4] [1@4]"},
		"lets go":                  {Current[Partition]{Epoch: 4, State: Unrevoked, Assigned: held(4, 2), Pending: held(4, 1)}, owns(2), toward(6, parts(2, 3)), "6 4 0 [2@4 3@6] []"},
		"gets back what it let go": {Current[Partition]{Epoch: 4, State: Unrevoked, Pending: held(4, 1)}, owns(), toward(6, parts(1)), "6 4 0 [1@6] []"},
		"what it waited for":       {Current[Partition]{Epoch: 5, Previous: 4, State: Unreleased, Assigned: held(5, 1)}, owns(1), toward(5, parts(1, 2)), "5 4 0 [1@5 2@5] []"},
		"back after a while":       {Current[Partition]{Epoch: EpochLeaveStatic, Previous: 4, Assigned: held(0, 1)}, owns(), toward(5, parts(1)), "5 0 0 [1@0] []"},
		"unsubscribes, holding on": {Current[Partition]{Epoch: 4, State: Unrevoked, Assigned: held(4, 2, 3), Pending: held(4, 1)}, owns(1, 2, 3), unsubscribed, "4 0 1 [2@4] [1@4 3@4]"},
		"nothing is different":     {Current[Partition]{Epoch: 5, Previous: 4, Assigned: held(4, 1)}, owns(1), toward(5, parts(1)), "5 4 0 [1@4] []"},
	} {
		now := c.now
		if now.Reconcile(c.h, c.to); show(&now) != c.want {
			t.Errorf("%s: %s, not %s", what, show(&now), c.want)
		}
	}
}

func TestAMemberGoesOnFromItsEpochOrTheOneBefore(t *testing.T) {
	at := &Current[Partition]{Epoch: 7, Previous: 5, Assigned: held(5, 1, 2), Pending: held(5, 3)}
	for _, c := range []struct {
		what    string
		epoch   int32
		h       Heartbeat[Partition]
		unheard bool
		want    EpochCheck
	}{
		{"its own", 7, Heartbeat[Partition]{}, false, EpochFine},
		{"from the beginning", EpochJoin, Heartbeat[Partition]{Tells: true}, false, EpochFine},
		{"a later one", 8, Heartbeat[Partition]{}, false, EpochGreater},
		{"the one before, with what it has", 5, Heartbeat[Partition]{Tells: true, Owned: parts(1)}, false, EpochFine},
		{"the one before, with more", 5, Heartbeat[Partition]{Tells: true, Owned: parts(1, 3)}, false, EpochSmaller},
		{"the one before, saying nothing", 5, Heartbeat[Partition]{}, false, EpochSmaller},
		{"one that is long over", 4, Heartbeat[Partition]{Tells: true}, false, EpochSmaller},
		{"its own, with what is not stored", 7, Heartbeat[Partition]{Tells: true, Owned: parts(9)}, true, EpochAhead},
		{"its own, with what it is to let go of", 7, Heartbeat[Partition]{Tells: true, Owned: parts(1, 3)}, true, EpochFine},
		{"its own, with what is not stored, long after the load", 7, Heartbeat[Partition]{Tells: true, Owned: parts(9)}, false, EpochFine},
	} {
		m := Member[Partition]{Current: at, Unheard: c.unheard}
		if got := m.Check(c.epoch, &c.h); got != c.want {
			t.Errorf("%s: %d, not %d", c.what, got, c.want)
		}
	}
	odd := Member[Partition]{Current: &Current[Partition]{Epoch: 7, State: 9}}
	if odd.Check(7, &Heartbeat[Partition]{}) != EpochUnknown || odd.Check(7, &Heartbeat[Partition]{Tells: true, Owned: parts(1)}) != EpochUnknown || odd.Check(7, &Heartbeat[Partition]{Tells: true}) != EpochFine {
		t.Error("from a state that is not known a member goes on, or cannot from nothing")
	}
}

func TestACommitOfAnOlderEpochNeedsThePartitionSinceThen(t *testing.T) {
	m := Member[Partition]{Current: &Current[Partition]{Epoch: 7, Assigned: append(held(3, 1), held(6, 2)...), Pending: held(4, 5)}}
	for p, since := range map[int32]int32{1: 3, 2: 6, 5: 4} {
		if m.Had(parts(p)[0], since-1) || !m.Had(parts(p)[0], since) {
			t.Errorf("partition %d is not its since epoch %d", p, since)
		}
	}
	if m.Had(parts(8)[0], 9) || (&Member[Partition]{}).Had(parts(1)[0], 9) {
		t.Error("a member had what it never got")
	}
}
