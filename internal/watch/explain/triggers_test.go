package explain

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"muster/internal/journal"
)

// kindsInSource reads the kinds of triggers that the journal has.
func kindsInSource(t *testing.T) (out []journal.TriggerKind) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../journal/trigger.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Trigger") {
			text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, journal.TriggerKind(text))
		}
		return true
	})
	return out
}

// Whatever the journal may say has words: a sentence, a line, and a few for the console.
func TestEachTriggerHasWords(t *testing.T) {
	all := kindsInSource(t)
	if len(all) < 18 {
		t.Fatalf("%d kinds", len(all))
	}
	seen, gone := map[string]journal.TriggerKind{}, ""
	for _, kind := range all {
		told := kind != journal.TriggerFenced && kind != journal.TriggerUnreleased // Those are no reasons.
		k := kindOf(kind)
		if k.gone {
			gone += string(kind) + " "
		}
		if k.reason == nil || told != (k.Text != "") || k.Mark != "" && k.Text == "" || (k.noun == "") != (k.nth == 0) {
			t.Errorf("%s is not whole", kind)
		}
		for _, of := range []string{"", journal.TypeConsumer} {
			e := &Entry{Entry: journal.Entry{Type: of, Before: 2, After: 1, Triggers: []journal.Trigger{{
				Kind: kind, Who: journal.Who{Member: "m", ClientID: "app", Host: "10.0.0.1"}, Change: &journal.Change{Regex: "a.*"}, Topics: &journal.TopicChanges{},
			}}}}
			said := strings.Join(e.reasons(), " ")
			if told == strings.Contains(said, "has no words for") || said == "" || strings.Contains(said, "%!") || e.Line() == "" {
				t.Errorf("%s in a group of type %q: %s", kind, of, said)
			}
		}
		if other, twice := seen[k.Text]; twice && told {
			t.Errorf("%s and %s are both told as %q", kind, other, k.Text)
		}
		seen[k.Text] = kind
	}
	if gone != "left removed expired no-sync not-revoked no-join conflict " {
		t.Errorf("a member is gone that %s", gone)
	}
	for i := range Triggers {
		if k := Triggers[i].Kind; k != expiredNew && !slices.Contains(all, k) {
			t.Errorf("the journal has no %s", k)
		}
	}
	if k := kindOf("from-the-future"); !strings.Contains(k.reason(&Entry{}, &triggers{kind: k.Kind, all: make([]journal.Trigger, 1)}), "no words for (from-the-future)") || k.gone {
		t.Errorf("%+v", k)
	}
}

func TestOftenMeansMostOnesFirst(t *testing.T) {
	got := counts(map[journal.TriggerKind]int{journal.TriggerRegex: 1, journal.TriggerRemoved: 2, journal.TriggerJoined: 3, journal.TriggerExpired: 4, journal.TriggerMaxSize: 5})
	if want := "joins: 3, missed heartbeats: 4, removals: 2, other matches of a regular expression: 1"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The console has the same marks and words.
func TestTheConsoleHasAllTriggers(t *testing.T) {
	const file = "../../web/ui/causes.ts"
	var want strings.Builder
	want.WriteString("// Made of internal/watch/explain/triggers.go by make generate. Do not edit.\n\n/** What sets a rebalance off: its mark in a time line, and what it was. */\nexport const causes: Record<string, { mark: string; text: string }> = {\n")
	for _, k := range Triggers {
		if k.Text != "" {
			fmt.Fprintf(&want, "  %q: { mark: %q, text: %q },\n", string(k.Kind), k.Mark, k.Text)
		}
	}
	want.WriteString("};\n")
	if *rewrite {
		if err := os.WriteFile(file, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("%s is out of date; make generate writes it (%v)", file, err)
	}
}
