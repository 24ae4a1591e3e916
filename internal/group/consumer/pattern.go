package consumer

import (
	"errors"
	"regexp/syntax"
)

// maxPattern is how large a regular expression may be once repetitions are written
// out. A text of a few bytes can ask for a program of millions of instructions, which
// would be made under the shard's lock, and again for each look at the topics.
const maxPattern = 10_000

var errPatternTooLarge = errors.New("it is too large, with all repetitions written out")

// checkPattern says whether a regular expression can be used. It is looked at by itself:
// one that is half of another might be whole once it is anchored.
func checkPattern(pattern string) error {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return err
	}
	if patternSize(re, maxPattern) > maxPattern {
		return errPatternTooLarge
	}
	return nil
}

// patternSize is about how many instructions a regular expression takes. It stops
// counting above a limit.
func patternSize(re *syntax.Regexp, limit int) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		if n > limit {
			return n
		}
		n += patternSize(sub, limit)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
