package modern

import (
	"slices"
	"testing"

	"muster/internal/group/schema"
)

// Records from before KIP-1251 do not say since which epoch a partition is held: then it is the
// member's own, by which no commit of an older epoch is accepted.
func TestPartitionsAreHeldSinceTheEpochOfTheirRecord(t *testing.T) {
	record := func(epochs ...int32) []schema.OwnedPartitions {
		return []schema.OwnedPartitions{{Topic: topic, Partitions: []int32{2, 1, 2}, Epochs: epochs}}
	}
	for what, c := range map[string]struct {
		epochs []int32
		epoch  int32
		want   []Held[Partition]
	}{
		"of each partition":  {[]int32{3, 4, 9}, 7, append(held(4, 1), held(3, 2)...)},
		"of the member":      {nil, 7, held(7, 1, 2)},
		"of some partitions": {[]int32{3}, 7, held(7, 1, 2)},
		"of who has left":    {nil, EpochLeaveStatic, held(0, 1, 2)},
	} {
		got := HeldOf(record(c.epochs...), c.epoch)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
		if again := HeldOf(OwnedOf(got), 99); !slices.Equal(again, got) {
			t.Errorf("%s: written and read again it is %v", what, again)
		}
	}
}
