package words

import (
	"strconv"
	"strings"
	"time"
)

// TimeForms says how ParseTime wants a time, for those who gave something else.
const TimeForms = "give RFC 3339 (2026-01-31T08:00:00Z), a date, milliseconds since 1970, or how long ago (-1h)"

// ParseTime parses a point in time as people write it.
func ParseTime(text string, now time.Time) (time.Time, bool) {
	if ago, ok := strings.CutPrefix(text, "-"); ok {
		if days, ok := strings.CutSuffix(ago, "d"); ok {
			if n, err := strconv.ParseUint(days, 10, 16); err == nil {
				return now.AddDate(0, 0, -int(n)), true
			}
		}
		if d, err := time.ParseDuration(ago); err == nil && d >= 0 {
			return now.Add(-d), true
		}
	} else if millis, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(millis), true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
