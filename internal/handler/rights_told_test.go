package handler

import (
	"fmt"
	"testing"

	"muster/internal/assert"
	"muster/internal/auth"
)

func TestOfManyDenialsOnlySomeAreRemembered(t *testing.T) {
	var r rights
	for i := range 3 * maxTold {
		q := auth.Request{Operation: auth.Read, Type: auth.Topic, Name: fmt.Sprint(i)}
		assert.MustTrue(t, r.tell(q) && !r.tell(q), "denial %d is not told once", i)
		assert.MustTrue(t, len(r.told) <= maxTold, "%d are remembered", len(r.told))
	}
	other := auth.Request{Operation: auth.Write, Type: auth.Topic, Name: fmt.Sprint(3*maxTold - 1)}
	assert.True(t, r.tell(other), "one operation is told by another")
}
