// Package words puts counts, names, times and durations into words, so that
// sentences read alike wherever muster speaks to people: in the CLI, in what
// explain finds, and in a console.
//
// It knows nothing of groups or topics, and never asks for the time: a caller
// that wants "5m ago" says what time it is.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Named is how many names a list in a sentence has at most.
const Named = 3

// List words names: a, b and c. Beyond the first few it only counts.
func List(names []string) string {
	switch more := len(names) - Named; {
	case more > 0:
		return strings.Join(names[:Named], ", ") + " and " + Number(more) + " more"
	case len(names) < 2:
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// ListSome is List of names that are the first of so many.
func ListSome(names []string, count int) string {
	if n := len(names); 0 < n && n < Named && n < count {
		return strings.Join(names, ", ") + " and " + Number(count-n) + " more"
	}
	all := make([]string, max(count, len(names)))
	copy(all, names)
	return List(all)
}

// Number words a number with separators: 2,349.
func Number[N ~int | ~int32 | ~int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Plural words a count with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(n) + " " + noun + "s"
}

// Verb chooses between is and are.
func Verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Times words how often.
func Times(n int) string {
	if n == 1 {
		return "once"
	}
	return Number(n) + " times"
}

// Capital begins a sentence.
func Capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// Duration words a duration with as many digits as people need.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Millisecond:
		return "0s"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%.0fs", d.Seconds())
	}
	// Rounded first, lest 59 minutes and 59.9 seconds be 60 minutes.
	if d = d.Round(time.Second); d >= time.Hour {
		d = d.Round(time.Minute)
	}
	if d >= day {
		d = d.Round(time.Hour)
	}
	large, small, names := day, time.Hour, "dh"
	switch {
	case d < time.Hour:
		large, small, names = time.Minute, time.Second, "ms"
	case d < day:
		large, small, names = time.Hour, time.Minute, "hm"
	}
	out := fmt.Sprintf("%d%c", d/large, names[0])
	if rest := d % large / small; rest > 0 {
		out += fmt.Sprintf("%d%c", rest, names[1])
	}
	return out
}

// Past words a time that has passed, to follow "the last": hour, 30m.
func Past(d time.Duration) string {
	switch d {
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return Duration(d)
}

// Size words a number of bytes with three digits or so.
func Size(bytes int64) string {
	if bytes < 1024 {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	size, unit := float64(bytes)/1024, 0
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	for size >= 1023.95 && unit < len(units)-1 {
		size /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// Time words a point in time with its zone, and with the date if it is not today.
func Time(t, now time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return t.Format(time.TimeOnly + " MST")
	}
	return t.Format(time.DateTime + " MST")
}

// Ago words how long ago something was.
func Ago(t, now time.Time) string {
	d := now.Sub(t)
	if d < time.Second {
		return "just now"
	}
	return Duration(d.Round(time.Second)) + " ago"
}
