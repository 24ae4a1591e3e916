package topics

import (
	"testing"

	"muster/internal/assert"
)

// What one partition does not tell is not told of the topic either: a sum of the others would
// be taken for all of it.
func TestASumIsUnknownIfAPartitionIs(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	known := partitionState{LogStartOffset: n(5), LogEndOffset: n(20), SizeBytes: n(100)}
	unknown := partitionState{LogStartOffset: n(5)}
	for what, c := range map[string]struct {
		partitions    []partitionState
		records, size *int64
	}{
		"all known":   {[]partitionState{known, known}, n(30), n(200)},
		"one unknown": {[]partitionState{known, unknown, known}, nil, nil},
		"none":        {nil, n(0), n(0)},
	} {
		s := topicState{partitions: c.partitions}
		for i, got := range []*int64{s.records(), s.size()} {
			want := []*int64{c.records, c.size}[i]
			assert.True(t, (got == nil) == (want == nil) && (got == nil || *got == *want), "%s: %v, want %v", what, got, want)
		}
	}
}

func TestSettingsAreGivenOnceByName(t *testing.T) {
	names, values, err := settingFlag([]string{"retention.ms=5", "b=", "c=x=y"})
	assert.True(t, err == nil && len(names) == 3 && *values["retention.ms"] == "5" && *values["b"] == "" && *values["c"] == "x=y", "%v, %v", values, err)
	for _, wrong := range [][]string{{"a"}, {"=5"}, {"a=1", "a=2"}} {
		if names, _, err := settingFlag(wrong); err == nil {
			t.Errorf("%q sets %v", wrong, names)
		}
	}
}
func TestRecordsAreCountedOrUnknownWhereOffsetsDoNotTell(t *testing.T) {
	start, end, counted, unknown := int64(10), int64(1<<50), int64(7), int64(-1)
	for _, c := range []struct {
		counted *int64
		want    int64 // negative for none
	}{{nil, end - start}, {&counted, 7}, {&unknown, -1}} {
		p := partitionState{LogStartOffset: &start, LogEndOffset: &end, counted: c.counted}
		if got := p.records(); got == nil && c.want >= 0 || got != nil && *got != c.want {
			t.Errorf("counted %v: %v, want %d", c.counted, got, c.want)
		}
	}
	one, other := partitionState{counted: &counted}, partitionState{counted: &unknown}
	if got := (topicState{partitions: []partitionState{one, other}}).records(); got != nil {
		t.Errorf("the sum with an unknown number is %d", *got)
	}
}
