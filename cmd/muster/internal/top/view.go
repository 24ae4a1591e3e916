package top

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/groups"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/web"
	"muster/internal/words"
)

// topView is what muster top shows, without a terminal: keys and answers change it, and
// lines makes the screen of it.
type topView struct {
	address string
	sort    int // In topSorts.
	down    bool
	query   string
	typing  bool // What is typed goes into the query.

	list   *web.GroupList
	now    time.Time
	err    error
	chosen string // The name of a group: rows move.

	open   string // The group that is explained, empty for none.
	why    *web.Explanation
	scroll int
	page   int // How many lines of it are seen.
}

var topTitles = []string{"GROUP", "STATE", ">MEMBERS", ">LAG", ">BEHIND", "CATCH-UP", "LAST REBALANCE", "FINDINGS"}

// sortedBy is the column of each order, in topTitles.
var sortedBy = map[string]int{"name": 0, "state": 1, "members": 2, "lag": 3, "lagSeconds": 4, "catchUp": 5, "rebalanced": 6}

// cells are a group's row.
func (v *topView) cells(g *web.GroupRow) []any {
	lag, behind, last := thousands(g.Lag), "-", "-"
	switch {
	case g.LagUnknown:
		lag = "≥" + lag
	case g.LagApproximate:
		lag = "≈" + lag
	}
	if g.LagSeconds > 0 {
		behind = words.Duration(time.Duration(g.LagSeconds * float64(time.Second)).Round(time.Second / 10))
	}
	if g.Rebalanced != nil {
		last = words.Ago(*g.Rebalanced, v.now)
		if g.Cause != "" {
			last += ", " + g.Cause
		}
	}
	found := make([]string, len(g.Findings))
	for i, f := range g.Findings {
		found[i] = strings.ReplaceAll(f, "-", " ")
	}
	out := []any{g.Name, g.State, g.Members, lag, behind, g.PaceText, last, strings.Join(found, ", ")}
	for i, cell := range out {
		if text, ok := cell.(string); ok {
			out[i] = printable(text)
		}
	}
	return out
}

// printable makes text harmless to a terminal: names are anyone's choice, and some
// characters are commands.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '·'
	}, text)
}

func thousands(n int64) string {
	text := cli.FormatInt(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// incomplete names the brokers that the list has nothing of.
func (v *topView) incomplete() string {
	if v.list == nil || len(v.list.Incomplete) == 0 {
		return ""
	}
	var ids []string
	for _, s := range v.list.Incomplete {
		ids = append(ids, fmt.Sprint(s.Broker))
	}
	return fmt.Sprintf("Groups of %s %s are not in the list.", words.Verb(len(ids), "broker", "brokers"), words.List(ids))
}

// at returns the place of the chosen group, the first if it is not there.
func (v *topView) at() int {
	if v.list == nil {
		return 0
	}
	return max(0, slices.IndexFunc(v.list.Groups, func(g web.GroupRow) bool { return g.Name == v.chosen }))
}

// move chooses another group, so many rows farther down.
func (v *topView) move(by int) {
	if v.list == nil || len(v.list.Groups) == 0 {
		return
	}
	v.chosen = v.list.Groups[min(max(v.at()+by, 0), len(v.list.Groups)-1)].Name
}

// line is a line of the screen.
type line struct {
	text        string
	bold, chose bool
}

// lines makes a screen of so many columns and rows.
func (v *topView) lines(width, height int) []line {
	out := []line{{text: v.head(), bold: true}}
	body := max(height-3, 1)
	v.page = body
	if v.open != "" {
		out = append(out, line{})
		out = append(out, v.explained(width, body)...)
	} else {
		out = append(out, v.note())
		out = append(out, v.rows(body)...)
	}
	for len(out) < height-1 {
		out = append(out, line{})
	}
	out = append(out[:min(len(out), max(height-1, 0))], line{text: v.foot()})
	for i := range out {
		out[i].text = cut(out[i].text, width)
	}
	return out
}

// cut leaves as much of a text as fits.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(width-1, 0)]) + "…"
}

func (v *topView) head() string {
	text := "muster top   " + v.address
	switch {
	case v.open != "":
		return text + "   group " + printable(v.open)
	case v.list == nil:
		return text
	}
	if v.list.Matched != nil {
		text += "   " + words.Plural(*v.list.Matched, "group")
	}
	if v.list.At != nil {
		text += "   looked at " + words.Ago(*v.list.At, v.now)
	}
	return text
}

// note is the line between head and table: what went wrong, or the filter.
func (v *topView) note() line {
	switch {
	case v.err != nil:
		return line{text: "! " + printable(v.err.Error()), bold: true}
	case v.typing:
		return line{text: "Only groups with: " + printable(v.query) + "_"}
	case v.query != "":
		return line{text: "Only groups with: " + printable(v.query)}
	}
	return line{text: v.incomplete()}
}

func (v *topView) foot() string {
	switch {
	case v.open != "":
		return "Esc back   ↑↓ scroll   q quit"
	case v.typing:
		return "Enter keep   Esc clear"
	}
	return "↑↓ choose   Enter why   s sort   S other way   / filter   q quit"
}

// rows makes the table, as much of it as fits around the chosen row.
func (v *topView) rows(height int) []line {
	switch {
	case v.list == nil && v.err == nil:
		return []line{{text: "The broker is asked…"}}
	case v.list == nil:
		return nil
	case v.list.At == nil:
		return []line{{text: "The broker has just started: it looks at its groups every ten seconds."}}
	case len(v.list.Groups) == 0 && v.query != "":
		return []line{{text: "No matching groups."}}
	case len(v.list.Groups) == 0:
		return []line{{text: "No groups yet. A consumer creates one: muster consume orders --group billing"}}
	}
	titles := slices.Clone(topTitles)
	mark := "↑"
	if v.down {
		mark = "↓"
	}
	titles[sortedBy[topSorts[v.sort].by]] += mark
	t := cli.NewTable(titles...)
	for i := range v.list.Groups {
		t.Add(v.cells(&v.list.Groups[i])...)
	}
	var text strings.Builder
	_ = t.Print(&text)
	all := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	out := []line{{text: all[0], bold: true}}
	rows := max(height-1, 1)
	from := min(max(v.at()-rows/2, 0), max(len(all)-1-rows, 0))
	for i := from; i < min(from+rows, len(all)-1); i++ {
		out = append(out, line{text: all[i+1], chose: i == v.at()})
	}
	return out
}

// explained makes the sentences about a group.
func (v *topView) explained(width, height int) []line {
	if v.err != nil && v.why == nil {
		return []line{v.note()}
	}
	if v.why == nil {
		return []line{{text: "The broker is asked about " + printable(v.open) + "…"}}
	}
	var out []line
	for text := range strings.Lines(groups.FormatExplanation(explanationOf(v.why, v.now))) {
		for _, part := range folded(printable(strings.TrimSuffix(text, "\n")), width) {
			out = append(out, line{text: part})
		}
	}
	v.scroll = min(max(v.scroll, 0), max(len(out)-height, 0))
	return out[v.scroll:min(len(out), v.scroll+height)]
}

// folded breaks a line that is wider than the screen, between words where it can.
func folded(text string, width int) []string {
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	var out []string
	for width > len(indent)+10 && utf8.RuneCountInString(text) > width {
		runes := []rune(text)
		end := width
		for end > len(indent)+1 && runes[end] != ' ' {
			end--
		}
		if runes[end] != ' ' {
			end = width
		}
		out = append(out, string(runes[:end]))
		text = indent + strings.TrimLeft(string(runes[end:]), " ")
	}
	return append(out, text)
}

// explanationOf makes of an answer what the words of muster groups explain are made of.
func explanationOf(x *web.Explanation, now time.Time) *explain.Explanation {
	out := &explain.Explanation{
		Name: x.Name, State: x.State, Text: x.Text, Journal: x.Journal, SinceSeconds: x.SinceSeconds, RebalanceCount: x.RebalanceCount,
		EventCount: x.EventCount, QuietRestarts: x.QuietRestarts, Now: now, Since: time.Duration(x.SinceSeconds * float64(time.Second)),
	}
	if u := x.UnderWay; u != nil {
		out.UnderWay = &explain.UnderWay{Started: u.Started, Text: u.Text}
	}
	for _, r := range x.Rebalances {
		out.Rebalances = append(out.Rebalances, explain.Rebalance{Started: r.Started, Settled: r.Settled, Generation: r.Generation, Text: r.Text})
	}
	for _, e := range x.Events {
		out.Events = append(out.Events, explain.Event{Time: e.Time, Kind: journal.EntryKind(e.Kind), Text: e.Text})
	}
	for _, f := range x.Findings {
		out.Findings = append(out.Findings, explain.Finding(f))
	}
	return out
}
