package group

import (
	"math"
	"testing"
)

// A leap leads to a number that no life before has used: other lives and leader epochs
// have shares of their own.
func TestLeapsOfSeveralLivesDiffer(t *testing.T) {
	for _, generation := range []int32{0, 1, 1023, 1024, 5000} {
		seen := map[int32]bool{}
		for epoch := range int32(generationBlock / generationShare / livesPerEpoch) {
			for lives := range int16(livesPerEpoch) {
				n := leap(generation, epoch, lives)
				if n <= generation || n/generationBlock != generation/generationBlock+1 || n%generationShare != 0 || seen[n] {
					t.Fatalf("from %d, in epoch %d and after %d lives, it leaps to %d", generation, epoch, lives, n)
				}
				seen[n] = true
			}
		}
	}
	if leap(1, 3, 1) != leap(1, 3, 1+livesPerEpoch) || leap(1, math.MaxInt32, math.MaxInt16) <= 1 {
		t.Error("large epochs and many lives lead elsewhere")
	}
}

// Near the last number there is no room to leap, and after it they begin again: a
// negative one would mean to clients that there is no generation.
func TestGenerationsNeverBecomeNegative(t *testing.T) {
	for generation := int32(math.MaxInt32 - 3*generationBlock); generation > 0 && generation < math.MaxInt32; generation += min(100, math.MaxInt32-generation) {
		if n := leap(generation, math.MaxInt32, math.MaxInt16); n <= generation {
			t.Fatalf("from %d it leaps to %d", generation, n)
		}
	}
	if n := leap(math.MaxInt32, 1, 1); n != 1 {
		t.Errorf("from the last it leaps to %d", n)
	}
	s := stableGroup(t)
	g := s.classic("g")
	g.leaps, g.generation = false, math.MaxInt32
	if g.nextGeneration(&step{shardState: &s.shardState}); g.generation != 1 {
		t.Errorf("after the last comes %d", g.generation)
	}
}
