package source

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 15, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"-1h30m":                    now.Add(-90 * time.Minute),
		"-7d":                       now.AddDate(0, 0, -7),
		"1500":                      time.UnixMilli(1500),
		"2026-01-02T03:04:05Z":      time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		"2026-01-02T03:04:05+02:00": time.Date(2026, 1, 2, 1, 4, 5, 0, time.UTC),
		"2026-01-02 03:04:05":       time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local),
		"2026-01-02":                time.Date(2026, 1, 2, 0, 0, 0, 0, time.Local),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("parseTime(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "-", "-1", "--1h", "noon", "1h", "2026-13-01"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("parseTime(%q) = %v", text, got)
		}
	}
}
