package listener

import (
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
)

// Whoever was promised a time has it, whatever was asked for before: a deadline that is
// left alone is never nearer than the one that was asked for.
func TestADeadlineIsNeverEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const d = 300 * time.Millisecond
		var l deadline
		changes := 0
		for range 1000 {
			if l.extend(d, time.Now()) {
				changes++
			}
			if left := time.Until(l.at); left < d || left > d+d/16 {
				t.Fatalf("%s are left of a deadline in %s", left, d)
			}
			time.Sleep(time.Millisecond)
		}
		if most := 1000/18 + 1; changes > most {
			t.Errorf("it was set %d times in a second, more than %d", changes, most)
		}
		assert.True(t, l.extend(d/10, time.Now()), "a shorter one is not set")
		if left := time.Until(l.at); left > d {
			t.Errorf("%s are left of a shorter deadline", left)
		}
		assert.True(t, l.extend(0, time.Now()) && l.at.IsZero() && !l.extend(0, time.Now()), "without a time there is none, and that is told once")
	})
}
