package group

import (
	"math"
	"testing"
)

func TestLeapGoesWhereNoLifeBeforeHasBeen(t *testing.T) {
	seen := map[int32]bool{}
	for epoch := range int32(generationBlock / generationShare / livesPerEpoch) {
		for lives := range int16(livesPerEpoch) {
			to := leap(1500, epoch, lives)
			if to < 2*generationBlock || to+generationShare > 3*generationBlock {
				t.Errorf("epoch %d, life %d: leaps from 1500 to %d", epoch, lives, to)
			}
			for i := range int32(generationShare) {
				if seen[to+i] {
					t.Errorf("epoch %d, life %d: %d is another's", epoch, lives, to+i)
				}
				seen[to+i] = true
			}
		}
	}
	if to := leap(math.MaxInt32-5, 7, 3); to != math.MaxInt32-4 {
		t.Errorf("at the end of numbers it leaps to %d", to)
	}
}
