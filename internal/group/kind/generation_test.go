package kind

import (
	"math"
	"testing"
)

// The first generation after a load has a number that no life of the shard has used, also if
// the store has lost the generations that were formed since the record.
func TestTheFirstGenerationAfterALoadIsNew(t *testing.T) {
	for _, generation := range []int32{0, 1, GenerationBlock - 1, GenerationBlock, 5*GenerationBlock + 7} {
		seen := map[int32]bool{}
		for epoch := range int32(256) { // As many as docs/internals/coordinator.md promises.
			for lives := range int16(LivesPerEpoch) {
				next := NextAfterLoad(generation, epoch, lives)
				if next <= generation || next/GenerationBlock != generation/GenerationBlock+1 {
					t.Errorf("after %d comes %d", generation, next)
				}
				for used := range int32(GenerationShare) { // It, and some that are formed after it.
					if seen[next+used] {
						t.Fatalf("after %d, in epoch %d and life %d, %d was given out before", generation, epoch, lives, next+used)
					}
					seen[next+used] = true
				}
			}
		}
	}
	for generation, want := range map[int32]int32{7: 8, math.MaxInt32 - 1: math.MaxInt32, math.MaxInt32: 1} {
		if got := After(generation); got != want {
			t.Errorf("after %d comes %d", generation, got)
		}
	}
	if next := NextAfterLoad(math.MaxInt32-5, 1, 0); next != math.MaxInt32-4 {
		t.Errorf("near the end comes %d", next)
	}
}
