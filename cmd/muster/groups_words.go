package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// namedAtMost is how many names a sentence has.
const namedAtMost = 3

// uuidLength is the length of the random part of a member id.
const uuidLength = 36

// shortMember shortens a member id, which is a client id and a UUID, to what
// tells it from the others.
func shortMember(id string) string {
	cut := len(id) - uuidLength
	if cut < 1 || strings.Count(id[cut:], "-") != 4 || id[cut-1] != '-' {
		return id
	}
	return id[:cut+8]
}

// shortNames returns the names that tables and sentences have for members.
func (g *groupState) shortNames() map[string]string {
	out, taken := map[string]string{}, map[string]int{}
	for _, m := range g.Members {
		out[m.Member] = m.name()
		taken[m.name()]++
	}
	for id, name := range out {
		if taken[name] > 1 {
			out[id] = id
		}
	}
	return out
}

// name is the group instance id of a static member, else the member id in short.
func (m *groupMember) name() string {
	if m.Instance != nil {
		return *m.Instance
	}
	return shortMember(m.Member)
}

func (m *groupMember) String() string { return m.name() + " at " + m.Host }

func (w journalWho) String() string {
	name := shortMember(w.Member)
	if w.Instance != "" {
		name = w.Instance
	}
	if w.Host == "" {
		return name
	}
	return name + " at " + w.Host
}

// list words names: a, b and c.
func list(names []string) string {
	switch more := len(names) - namedAtMost; {
	case more > 0:
		return strings.Join(names[:namedAtMost], ", ") + fmt.Sprintf(" and %d more", more)
	case len(names) < 2:
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func listOf[T fmt.Stringer](things []T) string {
	names := make([]string, len(things))
	for i, t := range things {
		names[i] = t.String()
	}
	return list(names)
}

// verb chooses between is and are.
func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// capital begins a sentence.
func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// formatDuration words a duration with as many digits as people need.
func formatDuration(d time.Duration) string {
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

// formatTime words a point in time, with the date if it is not today.
func formatTime(t, now time.Time) string {
	t = t.Local()
	if t.Format(time.DateOnly) == now.Local().Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// ago words how long ago something was.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	if d < time.Second {
		return "just now"
	}
	return formatDuration(d.Round(time.Second)) + " ago"
}

// lineWidth is where prose is wrapped.
const lineWidth = 100

// writeWrapped writes prose in lines, the first after a label and the others
// indented as far. Words longer than a line stay whole.
func writeWrapped(out *strings.Builder, label, text string) {
	width := len(label)
	out.WriteString(label)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > lineWidth:
			out.WriteString("\n" + strings.Repeat(" ", len(label)))
			width = len(label)
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += n
	}
	out.WriteByte('\n')
}
