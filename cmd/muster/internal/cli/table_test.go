package cli

import (
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/watch/groupview"
)

func TestFormatRanges(t *testing.T) {
	for want, numbers := range map[string][]int32{"": nil, "0": {0}, "0-1": {0, 1}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8}} {
		assert.Equal(t, formatRanges(numbers), want, "%v", numbers)
	}
	for want, assigned := range map[string][]groupview.Assigned{
		"-": nil, "none": {}, "a:0-1 b:3": {{Topic: "a", Partitions: []int32{0, 1}}, {Topic: "b", Partitions: []int32{3}}},
	} {
		assert.Equal(t, FormatAssigned(assigned), want, "%v", assigned)
	}
}

func TestWriteWrapped(t *testing.T) {
	var out strings.Builder
	WriteWrapped(&out, "  1. ", strings.Repeat("word ", 30))
	for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		assert.True(t, len(line) <= LineWidth && (i == 0 || strings.HasPrefix(line, "     word")), "line %d is %q", i, line)
	}
}
