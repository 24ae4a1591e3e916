package group

import (
	"math"
	"testing"

	"muster/internal/group/kind"
)

// A leap leads to a number that no life before has used: other lives and leader epochs
// have shares of their own.
func TestLeapsOfSeveralLivesDiffer(t *testing.T) {
	for _, generation := range []int32{0, 1, 1023, 1024, 5000} {
		seen := map[int32]bool{}
		for epoch := range int32(kind.GenerationBlock / kind.GenerationShare / kind.LivesPerEpoch) {
			for lives := range int16(kind.LivesPerEpoch) {
				n := kind.NextAfterLoad(generation, epoch, lives)
				if n <= generation || n/kind.GenerationBlock != generation/kind.GenerationBlock+1 || n%kind.GenerationShare != 0 || seen[n] {
					t.Fatalf("from %d, in epoch %d and after %d lives, it leaps to %d", generation, epoch, lives, n)
				}
				seen[n] = true
			}
		}
	}
	if kind.NextAfterLoad(1, 3, 1) != kind.NextAfterLoad(1, 3, 1+kind.LivesPerEpoch) || kind.NextAfterLoad(1, math.MaxInt32, math.MaxInt16) <= 1 {
		t.Error("large epochs and many lives lead elsewhere")
	}
}

// Near the last number there is no room to leap, and after it they begin again: a
// negative one would mean to clients that there is no generation.
func TestGenerationsNeverBecomeNegative(t *testing.T) {
	for generation := int32(math.MaxInt32 - 3*kind.GenerationBlock); generation > 0 && generation < math.MaxInt32; generation += min(100, math.MaxInt32-generation) {
		if n := kind.NextAfterLoad(generation, math.MaxInt32, math.MaxInt16); n <= generation {
			t.Fatalf("from %d it leaps to %d", generation, n)
		}
	}
	if n := kind.NextAfterLoad(math.MaxInt32, 1, 1); n != 1 {
		t.Errorf("from the last it leaps to %d", n)
	}
	s := stableGroup(t)
	g := s.classic("g")
	g.FirstAfterLoad, g.Generation = false, math.MaxInt32
	if g.NextGeneration(&kind.Step{Shard: &s.Shard}); g.Generation != 1 {
		t.Errorf("after the last comes %d", g.Generation)
	}
}
