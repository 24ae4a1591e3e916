package handler

import (
	"fmt"
	"slices"
	"testing"

	"muster/internal/assert"
)

func TestAFilterKeepsOnlyWhatCouldMatch(t *testing.T) {
	var filter []string
	for i := range 1000 {
		filter = append(filter, fmt.Sprint("state ", i))
	}
	assert.Equal(t, len(plausible(slices.Clone(filter), groupStates)), 1, "of those that match nothing are kept")
	if got := plausible(append(filter, "Stable", " stable "), groupStates); len(got) != 1 {
		t.Errorf("kept %q", got)
	}
}
