package cli

import (
	"strings"
	"testing"

	"muster/internal/watch/groupview"
)

func TestFormatRanges(t *testing.T) {
	for want, numbers := range map[string][]int32{"": nil, "0": {0}, "0-1": {0, 1}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8}} {
		if got := formatRanges(numbers); got != want {
			t.Errorf("%v: %q, want %q", numbers, got, want)
		}
	}
	for want, assigned := range map[string][]groupview.Assigned{
		"-": nil, "none": {}, "a:0-1 b:3": {{Topic: "a", Partitions: []int32{0, 1}}, {Topic: "b", Partitions: []int32{3}}},
	} {
		if got := FormatAssigned(assigned); got != want {
			t.Errorf("%v: %q, want %q", assigned, got, want)
		}
	}
}

func TestWriteWrapped(t *testing.T) {
	var out strings.Builder
	WriteWrapped(&out, "  1. ", strings.Repeat("word ", 30))
	for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		if len(line) > LineWidth || i > 0 && !strings.HasPrefix(line, "     word") {
			t.Errorf("line %d is %q", i, line)
		}
	}
}
