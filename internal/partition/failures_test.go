package partition

import (
	"testing"
	"time"
)

// A failure that stays the same is logged again only after a while, with how often it came.
func TestAFailureIsLoggedWhenItIsNewOrOld(t *testing.T) {
	var f failures
	start := time.UnixMilli(0)
	for i, c := range []struct {
		after time.Duration
		what  string
		text  string
		again int
		ok    bool
	}{
		{0, "append", "full", 0, true},
		{time.Second, "append", "full", 0, false},
		{time.Second, "read", "full", 0, true},
		{2 * time.Second, "append", "full", 0, false},
		{sayAgain - 1, "append", "full", 0, false},
		{sayAgain, "append", "full", 3, true},
		{sayAgain + 1, "append", "gone", 0, true},
		{sayAgain + 2, "append", "gone", 0, false},
		{sayAgain + 3, "append", "full", 0, true},
	} {
		if again, ok := f.say(c.what, c.text, start.Add(c.after)); again != c.again || ok != c.ok {
			t.Errorf("%d: logged %v, came again %d times; want %v, %d", i, ok, again, c.ok, c.again)
		}
	}
}
