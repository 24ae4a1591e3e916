package handler

import (
	"fmt"
	"testing"

	"muster/internal/auth"
)

func TestOfManyDenialsOnlySomeAreRemembered(t *testing.T) {
	var r rights
	for i := range 3 * maxTold {
		q := auth.Request{Operation: auth.Read, Type: auth.Topic, Name: fmt.Sprint(i)}
		if !r.tell(q) || r.tell(q) {
			t.Fatalf("denial %d is not told once", i)
		}
		if len(r.told) > maxTold {
			t.Fatalf("%d are remembered", len(r.told))
		}
	}
	other := auth.Request{Operation: auth.Write, Type: auth.Topic, Name: fmt.Sprint(3*maxTold - 1)}
	if !r.tell(other) {
		t.Error("one operation is told by another")
	}
}
