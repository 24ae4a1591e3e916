package web

import (
	"fmt"
	"slices"
	"testing"

	"muster/internal/assert"
	"muster/internal/web/fleet"
)

// What other brokers tell is told to each stream once, and a gap as a gap.
func TestChangesOfOtherBrokersAreToldOnce(t *testing.T) {
	targets := []fleet.Target{{Node: 2, Incarnation: "a"}, {Node: 3, Incarnation: "b"}}
	d := newDistant(&api{fleet: fleet.New(fleet.Options{Others: func() []fleet.Target { return targets }})})
	if due := d.due(); len(due) != 2 || len(d.due()) != 0 {
		t.Fatalf("%v are asked", due)
	}
	p := d.place
	take := func(got fleetChange) { d.take(d.peers[2], &got) }
	check := func(what string, want []string, wantLooked, wantMissed bool) {
		t.Helper()
		groups, looked, missed := d.since(&p)
		assert.True(t, slices.Equal(groups, want) && looked == wantLooked && missed == wantMissed, "%s: %v, %t, %t", what, groups, looked, missed)
		if groups, looked, missed := d.since(&p); len(groups) > 0 || looked || missed {
			t.Errorf("%s, told again: %v, %t, %t", what, groups, looked, missed)
		}
	}
	check("before", nil, false, false)
	take(fleetChange{Next: 7, Looked: 1})
	check("the first answer", nil, true, false)
	take(fleetChange{Next: 9, Looked: 1, Groups: []string{"x", "y"}})
	check("changes", []string{"x", "y"}, false, false)
	take(fleetChange{Next: 9, Looked: 2})
	check("a look", nil, true, false)
	take(fleetChange{Next: 2, Looked: 2, Missed: true})
	check("a gap", nil, false, true)
	for i := range maxDistant + 1 {
		take(fleetChange{Looked: 2, Groups: []string{fmt.Sprint(i)}})
	}
	check("too many", nil, false, true)
	targets[0].Incarnation = "c"
	if due := d.due(); len(due) != 1 || due[0].Node != 2 {
		t.Errorf("%v are asked", due)
	}
	check("a new start", nil, false, true)
	targets = targets[:1]
	d.due()
	check("one is gone", nil, false, true)
}

func TestABrokerTellsOthersWhatHappened(t *testing.T) {
	f := newFake(t)
	f.touched = []string{"a", "b", "c"}
	a := apiOf(f)
	for from, want := range map[string]fleetChange{
		"": {Next: 3}, "1": {Next: 3, Groups: []string{"b", "c"}}, "3": {Next: 3}, "4": {Next: 3, Missed: true},
	} {
		got, err := a.fleetChanges(&call{}, &changesQuery{From: from})
		if err != nil || got.Next != want.Next || got.Missed != want.Missed || !slices.Equal(got.Groups, want.Groups) || got.Looked != now.UnixNano() {
			t.Errorf("from %q: %+v, %v", from, got, err)
		}
	}
	if _, err := a.fleetChanges(&call{}, &changesQuery{From: "x"}); err == nil {
		t.Error("x is a number")
	}
}

// However many brokers there are, each is asked in its turn.
func TestAllBrokersOfALargeFleetAreAsked(t *testing.T) {
	var targets []fleet.Target
	for node := range int32(2*maxAsking + 3) {
		targets = append(targets, fleet.Target{Node: node})
	}
	d := newDistant(&api{fleet: fleet.New(fleet.Options{Others: func() []fleet.Target { return targets }})})
	asked := map[int32]int{}
	for range len(targets) {
		for _, to := range d.due() {
			asked[to.Node]++
			d.peers[to.Node].asking = false
		}
	}
	for _, to := range targets {
		if n := asked[to.Node]; n < maxAsking-1 || n > maxAsking+1 {
			t.Errorf("broker %d was asked %d times", to.Node, n)
		}
	}
}
