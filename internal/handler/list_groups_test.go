package handler

import (
	"fmt"
	"slices"
	"testing"
)

func TestAFilterKeepsOnlyWhatCouldMatch(t *testing.T) {
	var filter []string
	for i := range 1000 {
		filter = append(filter, fmt.Sprint("state ", i))
	}
	if got := plausible(slices.Clone(filter), groupStates); len(got) != 1 {
		t.Errorf("%d of those that match nothing are kept", len(got))
	}
	if got := plausible(append(filter, "Stable", " stable "), groupStates); len(got) != 1 {
		t.Errorf("kept %q", got)
	}
}
