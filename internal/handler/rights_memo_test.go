package handler

import (
	"fmt"
	"testing"

	"muster/internal/auth"
)

func TestOfManyResourcesOnlySomeAreRemembered(t *testing.T) {
	var r rights
	name := func(i int) guarded { return guarded{auth.Topic, fmt.Sprint(i)} }
	for i := range 10 * maxKnown {
		r.learn(known{guarded: name(i), may: auth.Operations(i)})
		if k := r.of(name(i)); k == nil || k.may != auth.Operations(i) {
			t.Fatalf("%d is known as %+v", i, k)
		}
	}
	if len(r.more) > maxKnown || r.of(name(0)) == nil || r.of(name(maxKnown)) != nil {
		t.Errorf("%d are remembered", len(r.more))
	}
	if r.of(guarded{auth.Group, "0"}) != nil {
		t.Error("a group is known by the topic of its name")
	}
}
