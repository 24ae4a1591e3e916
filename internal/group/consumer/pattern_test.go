package consumer

import (
	"errors"
	"strings"
	"testing"
)

// What a pattern costs is not its length: repetitions multiply.
func TestPatternsAreBoundedByWhatTheyTake(t *testing.T) {
	for _, c := range []struct {
		pattern string
		large   bool
	}{
		{"orders|users", false},
		{"orders-[a-z]+", false},
		{".*", false},
		{"a{1000}", false},
		{strings.Repeat("some-topic|", 500) + "x", false},
		{"(orders-[0-9]{1,249}|users)", false},
		{strings.Repeat("a{1000}", 11), true},
		{"(abcdefghijk){1000}", true},
		{strings.Repeat("x{1,1000}", 20), true},
		{strings.Repeat(`\pL`, 100), true},
		{strings.Repeat("a", maxPattern), true},
	} {
		if err := checkPattern(c.pattern); errors.Is(err, errPatternTooLarge) != c.large || err != nil && !c.large {
			t.Errorf("%.40s of %d bytes: %v", c.pattern, len(c.pattern), err)
		}
	}
}
