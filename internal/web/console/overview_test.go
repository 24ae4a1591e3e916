package console_test

import "testing"

// All is well only if every broker says so.
func TestTheOverviewIsCalmOnlyIfAllBrokersAre(t *testing.T) {
	t.Parallel()
	ofThePage(t)
	w := newWorld(t)
	w.broker.Status().Pass(t.Context())
	f := newFront(t, w)
	p := browser(t, f.base)
	title := func(text string) string { return "document.querySelector('h1')?.innerText === " + quoted(text) }
	unwell := list(map[string]any{"node": 2, "status": "unwell", "store": "disk", "problems": []string{"The disk is full."}})
	silent := list(map[string]any{"broker": 3, "message": "it does not answer"})
	for _, x := range []struct {
		name   string
		change func(map[string]any)
		until  string
	}{
		{"all is well", func(map[string]any) {}, title("All is well") + "&&" + says("No groups yet")},
		{"with groups", func(a map[string]any) { a["groups"] = 5 }, title("All is well") + "&&" + says("Every group makes progress")},
		{"one is unwell", func(a map[string]any) { a["unwell"] = unwell }, title("A broker has a problem") + "&&" + says("The disk is full.") + "&& !" + says("No groups yet") + "&&" + says("No known group")},
		{"one is silent", func(a map[string]any) { a["incomplete"] = silent }, title("Not all brokers answer") + "&&" + says("broker 3: it does not answer") + "&& !" + says("No groups yet") + "&&" + says("No known group")},
		{"both", func(a map[string]any) { a["unwell"], a["incomplete"] = unwell, silent }, title("A broker has a problem")},
		{"with groups that need attention", func(a map[string]any) { a["needing"], a["incomplete"], a["groups"] = 2, silent, 5 }, title("Not all brokers answer") + "&& !" + says("Every group makes progress")},
	} {
		f.obey(rule{about: "/api/v1/overview", change: x.change})
		p.open("/", x.until)
		p.quiet(x.name)
	}
	f.obey(rule{about: "/api/v1/groups", change: func(a map[string]any) { a["incomplete"] = silent }})
	p.open("/groups", says("broker 3: it does not answer")+"&& !"+says("No groups yet")+"&&"+says("No groups known yet"))
}
