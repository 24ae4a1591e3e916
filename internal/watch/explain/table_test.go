package explain

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

func TestFindingsSayWhatIsWrong(t *testing.T) {
	never := math.Inf(1)
	for name, c := range map[string]struct {
		g    lag.GroupLag
		want []string
	}{
		"all is well":             {lag.GroupLag{Members: 1, OvertakenIn: never}, nil},
		"a stuck partition":       {lag.GroupLag{Members: 1, Stuck: 1, OvertakenIn: never}, []string{"stuck-partition"}},
		"nobody reads":            {lag.GroupLag{Total: lag.Total{Lag: 1}, Left: true, CatchUp: lag.NotCatching, Seconds: 1e6, OvertakenIn: never}, []string{"lag-without-members"}},
		"nothing is left to read": {lag.GroupLag{Total: lag.Total{Lag: 1}, OvertakenIn: never}, nil},
		"somebody does":           {lag.GroupLag{Total: lag.Total{Lag: 1}, Left: true, ReadOutside: true, OvertakenIn: never}, nil},
		"nobody needs to":         {lag.GroupLag{OvertakenIn: never}, nil},
		"soon records are lost":   {lag.GroupLag{Members: 1, Seconds: 300, OvertakenIn: 24*3600 - 1}, []string{"retention-overtakes"}},
		"it keeps up, nearly":     {lag.GroupLag{Members: 1, Seconds: 299, OvertakenIn: 24*3600 - 1}, nil},
		"records are lost now":    {lag.GroupLag{Members: 1, Seconds: 1, OvertakenIn: 0}, []string{"retention-overtakes"}},
		"in some days":            {lag.GroupLag{Members: 1, OvertakenIn: 24 * 3600}, nil},
		"behind and not nearer":   {lag.GroupLag{Members: 1, CatchUp: lag.NotCatching, Seconds: 300, OvertakenIn: never}, []string{"not-catching-up"}},
		"a transaction is open":   {lag.GroupLag{Members: 1, CatchUp: lag.NotCatching, Seconds: 300, Held: true, OvertakenIn: never}, nil},
		"it keeps up":             {lag.GroupLag{Members: 1, CatchUp: lag.NotCatching, Seconds: 299, OvertakenIn: never}, nil},
		"behind and getting near": {lag.GroupLag{Members: 1, CatchUp: lag.Catching, Seconds: 900, OvertakenIn: never}, nil},
		"it went back":            {lag.GroupLag{Members: 1, Verdicts: [lag.Rewound + 1]int{lag.Rewound: 2}, OvertakenIn: never}, []string{"offsets-rewound"}},
		"a record":                {lag.GroupLag{Members: 1, Poison: 1, Stuck: 1, OvertakenIn: never}, []string{"poison-suspect", "stuck-partition"}},
		"the deploy":              {lag.GroupLag{Members: 1, Dying: true, OvertakenIn: never}, []string{"members-keep-dying"}},
		"worst first":             {lag.GroupLag{Members: 1, Stuck: 1, CatchUp: lag.NotCatching, Seconds: 900}, []string{"stuck-partition", "retention-overtakes", "not-catching-up"}},
	} {
		if got := Found(&c.g); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Each finding is all there: it has a place, words, and its own way to be found.
func TestKindsAreWhole(t *testing.T) {
	for i, k := range WatchedKinds {
		if k.Severity != i+1 || k.Found == nil || k.Sentence == nil || len(k.Also) > 0 {
			t.Errorf("%s: severity %d after %d others, or it lacks something", k.ID, k.Severity, i)
		}
		said := Sentence(&list.GroupRow{Name: "billing", Lag: 2, LagSeconds: 61, Stuck: 1, Poison: 1, Findings: []string{k.ID}})
		if !strings.Contains(said, "billing") || !strings.HasSuffix(said, ".") || strings.Contains(said, "%!") {
			t.Errorf("%s: %s", k.ID, said)
		}
		if m := k.Metric; m != nil && (!strings.HasPrefix(m.Name, "muster_group_") || m.Help == "" || m.Value(&lag.GroupLag{}) != 0) {
			t.Errorf("%s: %+v", k.ID, m)
		}
	}
	if got := Sentence(&list.GroupRow{Name: "billing", Findings: []string{"what-others-find"}}); got != "billing has the finding what others find." {
		t.Errorf("of a finding of another version: %s", got)
	}
	for i := range Kinds {
		if k := &Kinds[i]; k.ID == "" || k.find == nil || k.Severity == 0 && (k.Found != nil || k.Sentence != nil || k.Metric != nil || k.Alert != nil) {
			t.Errorf("number %d, %s, is not whole", i, k.ID)
		}
	}
}

// findings are those of a group. Each has an id of the kind that has found it.
func findings(e *Evidence) []Finding {
	for i := range Kinds {
		for _, f := range Kinds[i].find(e) {
			if f.ID != Kinds[i].ID && !slices.Contains(Kinds[i].Also, f.ID) {
				panic(fmt.Sprintf("%s is not in the table under %s", f.ID, Kinds[i].ID))
			}
		}
	}
	return e.Findings()
}

var rewrite = flag.Bool("rewrite", false, "write what a test finds out of date")

// The alert rules of findings are those of the table; the others in the file are by hand.
func TestAlertsAreThoseOfTheTable(t *testing.T) {
	const file, begins, ends = "../../../grafana/alerts.yml", "      # Findings, from internal/watch/explain/table.go: go test ./internal/watch/explain -run Alerts -rewrite\n", "      # End of findings.\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begins)
	_, after, closed := strings.Cut(rest, ends)
	if !ok || !closed {
		t.Fatal("grafana/alerts.yml has no place for the alerts of findings")
	}
	var rules strings.Builder
	for _, k := range WatchedKinds {
		if k.Alert != nil {
			rules.WriteString(k.Alert.rule())
		}
	}
	want := before + begins + rules.String() + ends + after
	if want == string(text) {
		return
	}
	if !*rewrite {
		t.Fatal("grafana/alerts.yml is out of date; go test ./internal/watch/explain -run Alerts -rewrite writes it")
	}
	if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rule is an alert in YAML.
func (a *Alert) rule() string {
	wait := ""
	if a.For != "" {
		wait = "\n        for: " + a.For
	}
	return fmt.Sprintf("      - alert: %s\n        expr: %s%s\n        labels:\n          severity: %s\n        annotations:\n          summary: %q\n", a.Name, a.Expr, wait, a.Severity, a.Summary)
}
