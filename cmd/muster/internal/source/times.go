package source

import (
	"strconv"
	"strings"
	"time"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

// ParseTime parses a point in time as people write it on a command line.
func ParseTime(text string, now time.Time) (time.Time, error) {
	t, ok := words.ParseTime(text, now)
	if !ok {
		return t, cli.Usagef("%q is no time: %s", text, words.TimeForms)
	}
	return t, nil
}

// ParseSince parses how long to look back: a duration, also in days.
func ParseSince(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil && n > 0 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, cli.Usagef("--since takes how long to look back, as 30m, 24h or 7d, not %q", text)
	}
	return d, nil
}
