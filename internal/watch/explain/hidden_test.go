package explain

import (
	"bufio"
	"os"
	"reflect"
	"strings"
	"testing"

	"muster/internal/journal"
)

// Of topics that someone may not see nothing in an entry tells the name, whichever field it
// is in: the entries of package journal have all of them.
func TestTopicsThatAreHiddenAreNamedNowhere(t *testing.T) {
	f, err := os.Open("../../journal/testdata/entries.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	named := 0
	for lines := bufio.NewScanner(f); lines.Scan(); {
		e, err := ReadEntry([]byte(lines.Text()))
		if err != nil {
			t.Fatal(err)
		}
		before := e
		if err := e.Hide(func(string) bool { return true }, func(string) bool { return true }); err != nil || string(e.Raw) != lines.Text() {
			t.Errorf("who may see all is shown %s, %v", e.Raw, err)
		}
		if err := e.Hide(func(string) bool { return false }, func(string) bool { return false }); err != nil {
			t.Fatal(err)
		}
		shown := string(e.Raw) + e.Line() + e.sentence()
		if strings.Contains(shown, "orders") || strings.Contains(shown, "users") {
			t.Errorf("it is shown as %s", shown)
		}
		if again, err := ReadEntry(e.Raw); err != nil || !reflect.DeepEqual(again.Entry, e.Entry) {
			t.Errorf("the entry is %+v, and says %s, %v", e.Entry, e.Raw, err)
		}
		if same, err := ReadEntry([]byte(lines.Text())); err != nil || !reflect.DeepEqual(before.Entry, same.Entry) {
			t.Errorf("who may see it is shown %+v, %v", before.Entry, err)
		}
		named += strings.Count(lines.Text(), `"orders"`) + strings.Count(lines.Text(), `"users"`)
	}
	if named < 7 {
		t.Errorf("the entries name topics %d times", named)
	}
}

// Clients may say in their own words what they read.
func TestWhatClientsSayOfHiddenTopicsIsLeftOut(t *testing.T) {
	hidden := map[string]bool{"orders": true, "pay.2024": true}
	for reason, want := range map[string]bool{
		"need to revoke partitions [orders-0, x-1] as indicated": true, "it reads orders.": true, "orders": true, "(pay.2024-17)": true, "from pay.2024": true,
		"reorders, orders2-1 and pay": false, "the consumer is being closed": false, "": false,
	} {
		sees := func(topic string) bool { return !hidden[topic] }
		e := event(t, journal.Entry{Kind: journal.KindStarted, Triggers: []journal.Trigger{{Kind: journal.TriggerLeft, Reason: "bye"}, {Kind: journal.TriggerLeader, Reason: reason}}})
		if err := e.Hide(sees, func(topic string) bool { return hidden[topic] || topic == "x" }); err != nil {
			t.Fatal(err)
		}
		left := reason
		if want {
			left = ""
		}
		if e.Triggers[0].Reason != "bye" || e.Triggers[1].Reason != left || strings.Contains(string(e.Raw), "orders-0") {
			t.Errorf("%q is shown as %s", reason, e.Raw)
		}
		// Words that are no topics are no one's secret.
		e = event(t, journal.Entry{Kind: journal.KindStarted, Triggers: []journal.Trigger{{Kind: journal.TriggerLeader, Reason: reason}}})
		if err := e.Hide(func(string) bool { return false }, func(string) bool { return false }); err != nil || e.Triggers[0].Reason != reason {
			t.Errorf("%q without topics is shown as %s, %v", reason, e.Raw, err)
		}
	}
}
