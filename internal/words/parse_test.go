package words

import (
	"testing"
	"time"
)

func TestTimesAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"-1h": now.Add(-time.Hour), "-2d": now.AddDate(0, 0, -2), "1000": time.UnixMilli(1000), "2026-01-31T08:00:00Z": now.Add(-4 * time.Hour),
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local), "2026-01-31 08:00:00": time.Date(2026, 1, 31, 8, 0, 0, 0, time.Local),
	} {
		if got, ok := ParseTime(text, now); !ok || !got.Equal(want) {
			t.Errorf("%q is %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "--1h", "-1", "1h", "yesterday", "-99999999d", "99999999999999999999"} {
		if got, ok := ParseTime(text, now); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}
