package console_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"

	"muster/internal/assert"
	"muster/internal/words"
)

// script makes one script of a file of the console that needs no packages; what it exports
// is under a name.
func script(t *testing.T, file, name string) string {
	t.Helper()
	out := api.Build(api.BuildOptions{EntryPoints: []string{file}, Bundle: true, Format: api.FormatIIFE, GlobalName: name, Target: api.ES2022, Charset: api.CharsetUTF8})
	assert.MustTrue(t, len(out.Errors) == 0 && len(out.OutputFiles) == 1, "%s: %+v", file, out.Errors)
	return string(out.OutputFiles[0].Contents)
}

// evaluate has the browser compute something of a script, as JSON.
func evaluate[A any](t *testing.T, p *page, code, expression string) A {
	t.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("(() => {"+code+"; return JSON.stringify("+expression+");})()"))
	var out A
	if err == nil {
		err = json.Unmarshal([]byte(text), &out)
	}
	assert.Must(t, err, "%s", expression)
	return out
}

// worldOfOwners is a group of two members now, and its rebalances, the latest first: at 300 b
// gave orders-1 to a, at 200 b took orders-0 over from c, which had joined at 100.
const worldOfOwners = `
const at = (s) => new Date(s * 1000).toISOString();
const move = (partition, from, to) => ({topic: "orders", partition, from, to});
const group = {state: "Stable", members: [{memberId: "a", name: "A", assigned: []}, {memberId: "b", name: "B", assigned: []}],
  partitions: [{topic: "orders", partition: 0, owner: "b"}, {topic: "orders", partition: 1, owner: "a"}, {topic: "orders", partition: 2, owner: null}]};
const rebalances = [
  {settled: at(300), entry: {moves: [move(1, "b", "a")], triggers: [{kind: "joined"}, {kind: "left"}, {kind: "joined"}]}},
  {settled: at(200), entry: {moves: [move(0, "c", "b"), move(2, "c", undefined)]}},
  {settled: at(100), entry: {moves: [move(0, undefined, "c"), move(1, undefined, "b"), move(2, undefined, "c")]}},
];
const show = (list) => list.map((r) => r.spans.map((s) => (s.from / 1000) + "-" + (s.to / 1000) + " " + (s.owner === undefined ? "?" : (s.owner ?? "nobody"))).join(", "));
`

// TestWhatThePagesCompute has one browser run what needs no page.
func TestWhatThePagesCompute(t *testing.T) {
	ofThePage(t)
	p := browser(t, "")
	t.Run("ribbons tell who had a partition when", func(t *testing.T) { testRibbons(t, p) })
	t.Run("letters stay with who comes and goes", func(t *testing.T) { testLetters(t, p) })
	t.Run("commands that are copied survive a shell", func(t *testing.T) { testCopied(t, p) })
	t.Run("commands are found whole in sentences", func(t *testing.T) { testCommands(t, p) })
	t.Run("partitions that are mistyped are none", func(t *testing.T) { testNumbers(t, p) })
	t.Run("durations are those of the sentences beside them", func(t *testing.T) { testDurations(t, p) })
}

func testRibbons(t *testing.T, p *page) {
	t.Helper()
	code := script(t, "src/owners.ts", "owners") + worldOfOwners
	for _, c := range []struct{ name, change, from, complete, want string }{
		{"all is known", "", "0", "true", "200-400 b, 100-200 c, 0-100 nobody; 300-400 a, 100-300 b, 0-100 nobody; 200-400 nobody, 100-200 c, 0-100 nobody"},
		{"what comes before the journal is not known", "", "0", "false", "200-400 b, 100-200 c, 0-100 ?; 300-400 a, 100-300 b, 0-100 ?; 200-400 nobody, 100-200 c, 0-100 ?"},
		{"a part of the time", "", "150000", "true", "200-400 b, 150-200 c; 300-400 a, 150-300 b; 200-400 nobody, 150-200 c"},
		{"from a rebalance on", "", "200000", "true", "200-400 b; 300-400 a, 200-300 b; 200-400 nobody"},
		{"while it rebalances nobody knows who has it", `group.state = "PreparingRebalance";`, "150000", "true", "300-400 ?, 200-300 b, 150-200 c; 300-400 a, 150-300 b; 300-400 ?, 200-300 nobody, 150-200 c"},
		{"members that do not tell", "group.members[0].assigned = null;", "250000", "true", "300-400 ?, 250-300 b; 300-400 a, 250-300 b; 300-400 ?, 250-300 nobody"},
		{"a list that was cut short", `rebalances.length = 2; rebalances[1].entry = {moves: [move(0, "c", "b")], moveCount: 5};`, "0", "true", "200-400 b, 0-200 c; 300-400 a, 200-300 b, 0-200 ?; 200-400 nobody, 0-200 ?"},
		{"no rebalance at all", "rebalances.length = 0;", "0", "true", "0-400 b; 0-400 a; 0-400 nobody"},
	} {
		got := evaluate[[]string](t, p, code+c.change, "show(owners.ribbons(group, rebalances, "+c.complete+", "+c.from+", 400000))")
		assert.Equal(t, strings.Join(got, "; "), c.want, "%s", c.name)
	}
	wide := `group.partitions = [...Array(10000).keys()].map((partition) => ({topic: "orders", partition, owner: "a"}));`
	if got := evaluate[int](t, p, code+wide, "owners.ribbons(group, rebalances, true, 0, 400000).length"); got != 64 {
		t.Errorf("of ten thousand partitions %d are worked out", got)
	}
	if got := evaluate[[]string](t, p, code, `[...owners.ownersOf(group, rebalances).values()].map((o) => o.id + o.letter + o.colour)`); strings.Join(got, " ") != "aA0 bB1 cC2" {
		t.Errorf("owners %v", got)
	}
	many := `group.members = [...Array(30).keys()].map((i) => ({memberId: "m" + i, name: "m" + i, assigned: []}));`
	if got := evaluate[[]string](t, p, code+many, `[...owners.ownersOf(group, []).values()].map((o) => o.letter + o.colour)`); got[25] != "Z1" || got[26] != "AA2" || got[29] != "AD5" {
		t.Errorf("of thirty %v", got)
	}
	if got := evaluate[[]string](t, p, code, `["x-0f8fad5b-d9cb-469f-a165-70867728950e", "0f8fad5b-d9cb-469f-a165-70867728950e", "plain", "kQ3bG7tWQ2mS3n2nq1p9Zw"].map(owners.shortName)`); strings.Join(got, " ") != "x-0f8fad5b 0f8fad5b plain kQ3bG7tW" {
		t.Errorf("short names %v", got)
	}
	if got := evaluate[[]string](t, p, code, `owners.causesOf(rebalances[0])`); strings.Join(got, " ") != "joined left" {
		t.Errorf("causes %v", got)
	}
}

// What is copied out of the console is one word to a real shell, whatever a group is called,
// and no flag.
func testCopied(t *testing.T, p *page) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	code := script(t, "src/format.ts", "format")
	for _, name := range []string{"billing", "my group", "it's", "$(id)", "`id`", "a\nb", "a\n", "\n", "\x1b[2J'%s\\n", "tab\there", "\u202e", "é張 100%", "-rf", "--", "*", `"`, ""} {
		quoted, err := json.Marshal(name)
		must(t, err)
		command := evaluate[string](t, p, code, `format.command("groups describe", `+string(quoted)+`, "--members")`)
		out, err := exec.Command("sh", "-c", `printf '%s\001' `+command).Output()
		want := []string{"muster", "groups", "describe", name, "--members"}
		if strings.HasPrefix(name, "-") {
			want = []string{"muster", "groups", "describe", "--members", "--", name}
		}
		if got := strings.TrimSuffix(string(out), "\x01"); err != nil || got != strings.Join(want, "\x01") {
			t.Errorf("%q: %s is read as %q, %v", name, command, got, err)
		}
		assert.False(t, strings.ContainsAny(command, "\x1b\t\u202e"), "%q reaches the terminal: %q", name, command)
	}
}

// Sentences come from the broker with their durations in them, and stand beside numbers
// that the page words: 11m9s is 11m9s everywhere.
func testDurations(t *testing.T, p *page) {
	t.Helper()
	code := script(t, "src/format.ts", "format")
	const ms, s, m, h, d = time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour
	for _, c := range []time.Duration{
		0, 20 * time.Microsecond, ms, 29 * ms, 290 * ms, 999 * ms, s, 1500 * ms, 3 * s, 9940 * ms, 9970 * ms, 10 * s, 45 * s, 59*s + 400*ms, 59*s + 700*ms, m, m + s, 11*m + 9*s,
		59*m + 59*s + 400*ms, 59*m + 59*s + 900*ms, h, h + 29*s, h + 31*s, 90 * m, 23*h + 59*m + 20*s, 23*h + 59*m + 40*s, d, d + 29*m, d + 31*m, 26 * h, 7 * d, 400 * d,
	} {
		got := evaluate[string](t, p, code, fmt.Sprintf("format.duration(%v)", c.Seconds()))
		assert.Equal(t, got, words.Duration(c), "%v", c)
	}
}
