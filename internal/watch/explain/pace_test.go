package explain

import (
	"testing"
	"time"

	"muster/internal/watch/lag"
)

func TestEveryPaceHasWords(t *testing.T) {
	seen := map[string]bool{}
	for p := lag.PaceUnknown; p <= lag.PaceTooEarly; p++ {
		text := PaceText(p.String(), 669400*time.Millisecond)
		if text == "" || seen[text] {
			t.Errorf("%s is %q", p, text)
		}
		seen[text] = true
	}
	if got := PaceText(lag.PaceCatchingUp.String(), 669400*time.Millisecond); got != "in 11m9s" {
		t.Errorf("it catches up %q", got)
	}
}
