package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/journal"
	"muster/internal/watch"
	"muster/internal/watch/explain"
	"muster/internal/watch/lag"
)

func rowNames(rows []GroupRow) string {
	var out []string
	for _, r := range rows {
		out = append(out, r.Name)
	}
	return strings.Join(out, " ")
}

func TestGroupsAreFilteredSortedAndPaged(t *testing.T) {
	s := serve(t, newFake(t))
	for query, want := range map[string]string{
		"":                    "=SUM(A1) billing shipping",
		"?sort=-lag":          "billing =SUM(A1) shipping",
		"?q=BILL":             "billing",
		"?state=Empty":        "=SUM(A1)",
		"?state=Empty,Stable": "=SUM(A1) billing shipping",
		"?type=consumer":      "shipping",
		"?finding=any":        "=SUM(A1) billing",
		"?topic=orders":       "billing shipping",
		"?finding=not-catching-up&topic=payments": "",
	} {
		if got := read[GroupList](s, "/groups"+query); rowNames(got.Groups) != want || *got.Matched != len(got.Groups) || *got.Total != 3 {
			t.Errorf("%s: %+v, want %s", query, got, want)
		}
	}
	var seen []string
	after := ""
	for range 5 {
		page := read[GroupList](s, "/groups?limit=1&sort=-lag&after="+after)
		seen = append(seen, rowNames(page.Groups))
		if after = page.Next; after == "" {
			break
		}
	}
	assert.Equal(t, strings.Join(seen, ","), "billing,=SUM(A1),shipping", "the pages")
	row := read[GroupList](s, "/groups?q=billing").Groups[0]
	assert.True(t, row.CatchUpSeconds == nil && row.Lag == 90 && row.LagSeconds == 600 && slices.Equal(row.Topics, []string{"orders"}), "the row is %+v", row)
	assert.True(t, len(row.Recent) != 0 && row.Recent[len(row.Recent)-1] >= 0, "its last minutes are %v", row.Recent)
	if _, body := s.do(http.MethodGet, Prefix+"/groups?q=shipping"); !strings.Contains(body, `"recentLagSeconds": []`) {
		t.Errorf("of a group whose lag never changed: %s", body)
	}
}

func TestListsAsCSV(t *testing.T) {
	s := serve(t, newFake(t))
	for _, ask := range []struct {
		path   string
		accept string
	}{{"/groups?format=csv", ""}, {"/groups", "text/csv"}, {"/groups", "text/csv;q=1, application/json"}} {
		resp, body := s.do(http.MethodGet, Prefix+ask.path, func(r *http.Request) { r.Header.Set("Accept", ask.accept) })
		assert.MustEqual(t, resp.Header.Get("Content-Type"), csvType, "%v", ask)
		lines, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if err != nil || len(lines) != 4 || lines[0][0] != "name" || lines[1][0] != "'=SUM(A1)" || lines[2][5] != "90" || lines[2][8] != "600" || slices.Contains(lines[0], "recentLagSeconds") || len(lines[0]) != len(lines[1]) {
			t.Errorf("%v: %q, %v", ask, lines, err)
		}
	}
	for _, path := range []string{"/topics", "/brokers", "/settings", "/overview", "/journal", "/groups/billing/history", "/groups/billing/journal"} {
		if resp, body := s.do(http.MethodGet, Prefix+path+"?format=csv"); resp.StatusCode != http.StatusOK || !strings.Contains(body, ",") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

// Anyone who may join a group chooses names, and a spreadsheet runs formulas.
func TestACellIsNeverAFormula(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "orders": "orders", "a=b": "a=b", "x =1": "x =1", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)",
		"\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "\uff1d1": "'\uff1d1", "\uff0b1": "'\uff0b1", "\uff0d1": "'\uff0d1", "\uff201": "'\uff201", "ö": "ö",
	} {
		for _, v := range []any{text, &text, []string{text}, groupName(text)} {
			if got, err := cellOf(reflect.ValueOf(v)); err != nil || got != want {
				t.Errorf("%T %q: %q, %v; want %q", v, text, got, err, want)
			}
		}
	}
}

// groupName is a type of its own that is a string.
type groupName string

func TestAGroupHasWhatIsKnownNowAndWhatWasSeen(t *testing.T) {
	s := serve(t, newFake(t))
	g := read[GroupDetail](s, "/groups/billing")
	if g.State != "Stable" || len(g.Members) != 1 || len(g.Partitions) != 2 || g.Coordinator.Broker != 1 || *g.TotalLag != 91 {
		t.Fatalf("the group is %+v", g)
	}
	p := g.Partitions[1]
	assert.True(t, *p.Committed == 1<<60-1 && *p.LogStart == 20 && *p.Lag == 1 && *p.Owner == "m-1", "the partition is %+v", p)
	if g.Watched == nil || g.Watched.Lag != 90 || g.Watched.CatchUp != "unknown" || !g.Watched.At.Equal(now) || g.Watched.MarginSeconds != nil {
		t.Errorf("what was seen is %+v", g.Watched)
	}
	assert.True(t, g.Partitions[0].LagSeconds != nil, "the lag in seconds is missing")
	_, body := s.do(http.MethodGet, Prefix+"/groups/billing")
	assert.Contains(t, body, `"committed": "1152921504606846975"`, "offsets are no strings")
	s.fails(Prefix+"/groups/nobody", http.StatusNotFound)
}

func TestHistoryHasThePointsOfTheRings(t *testing.T) {
	s := serve(t, newFake(t))
	h := read[History](s, "/groups/billing/history")
	assert.True(t, h.StepSeconds == 10 && len(h.Points) != 0 && h.Points[len(h.Points)-1].Lag == 90, "the history is %+v", h)
	if h := read[History](s, "/groups/billing/history?resolution=16m&topic=orders&partition=0"); h.StepSeconds != 960 || h.Topic != "orders" {
		t.Errorf("of a partition: %+v", h)
	}
	s.fails(Prefix+"/groups/nobody/history", http.StatusNotFound)
}

// entry makes an entry of the journal as a broker would have written it.
func entry(t *testing.T, e journal.Entry) explain.Entry {
	t.Helper()
	raw, err := json.Marshal(&e)
	must(t, err)
	out, err := explain.ReadEntry(raw)
	must(t, err)
	return out
}

func withJournal(t *testing.T) *fake {
	f := newFake(t)
	ann := journal.Who{Member: "m-1", ClientID: "ann", Host: "10.0.0.1"}
	settled := journal.Entry{
		Time: now.Add(-time.Minute), Group: "billing", Kind: journal.KindSettled, State: "Stable", Generation: 2, Started: now.Add(-time.Minute - time.Second),
		Triggers: []journal.Trigger{{Kind: journal.TriggerJoined, Who: ann}}, TriggerN: 1, Before: 0, After: 1,
	}
	started := settled
	started.Kind, started.Time = journal.KindStarted, started.Started
	f.entries = []explain.Entry{
		entry(t, started), entry(t, settled),
		entry(t, journal.Entry{Time: now.Add(-time.Second), Group: "gone", Kind: journal.KindDeleted, Cause: journal.CauseExpired}),
	}
	return f
}

func TestTheJournalOfAGroupAndOfAll(t *testing.T) {
	s := serve(t, withJournal(t))
	j := read[Journal](s, "/groups/billing/journal")
	if !j.Kept || len(j.Entries) != 1 || j.Entries[0].Kind != "rebalance-settled" || !strings.Contains(j.Entries[0].Text, "joined") || !strings.Contains(string(j.Entries[0].Entry), `"clientId"`) {
		t.Errorf("the journal is %+v", j)
	}
	if j := read[Journal](s, "/groups/billing/journal?all=true"); len(j.Entries) != 2 {
		t.Errorf("all of it is %+v", j)
	}
	for query, want := range map[string]int{
		"": 3, "?q=BILL": 2, "?kind=group-deleted": 1, "?cause=joined": 2, "?cause=expired": 1, "?member=ann": 2, "?member=10.0.0.1": 2, "?member=bob": 0,
		"?since=30s": 1, "?limit=2": 2,
	} {
		assert.Equal(t, len(read[Journal](s, "/journal"+query).Entries), want, "%s: entries", query)
	}
}

// What a limit leaves out is told, also where the journal is explained.
func TestAJournalThatIsCutSaysSo(t *testing.T) {
	f := withJournal(t)
	s := serve(t, f)
	for path, want := range map[string]bool{
		"/journal": false, "/journal?limit=3": false, "/journal?limit=2": true, "/groups/billing/journal?all=true&limit=2": false, "/groups/billing/journal?all=true&limit=1": true, "/groups/billing/journal?limit=1": false,
	} {
		if j := read[Journal](s, path); j.Partly != want {
			t.Errorf("%s: %d entries, cut %t, want %t", path, len(j.Entries), j.Partly, want)
		}
	}
	assert.False(t, read[Explanation](s, "/groups/billing/explain").Partly, "all of the journal is said to be a part of it")
	for range maxJournalEntries {
		f.entries = append(f.entries, f.entries[1])
	}
	if x := read[Explanation](s, "/groups/billing/explain"); !x.Partly {
		t.Errorf("of a journal that is cut it says that there were %d rebalances", x.RebalanceCount)
	}
}

// The sentences are those of muster groups explain.
func TestExplainSaysWhatTheCommandPrints(t *testing.T) {
	f := withJournal(t)
	s := serve(t, f)
	x := read[Explanation](s, "/groups/billing/explain")
	e := &explain.Evidence{Name: "billing", Journal: true, Entries: f.entries[:2], Now: now, Since: time.Hour}
	want := e.Explain(3)
	if x.RebalanceCount != 1 || !slices.Equal(x.Rebalances[0].Text, want.Rebalances[0].Text) || !strings.HasPrefix(x.Text, "Group billing is Stable: 2 partitions are assigned to 1 member") {
		t.Errorf("it says %+v", x)
	}
	if x := read[Explanation](s, "/groups/gone/explain"); x.State != "Dead" || x.EventCount != 1 {
		t.Errorf("of a group that is gone it says %+v", x)
	}
	s.fails(Prefix+"/groups/nobody/explain", http.StatusNotFound)
}

func TestTopicsAreSortedAndPaged(t *testing.T) {
	s := serve(t, newFake(t))
	name := func(l TopicList) string {
		var out []string
		for _, row := range l.Topics {
			out = append(out, row.Name)
		}
		return strings.Join(out, " ")
	}
	for query, want := range map[string]string{
		"": "orders payments", "?internal=true": "__x orders payments", "?sort=-bytes": "orders payments", "?sort=bytes": "payments orders",
		"?sort=groups": "payments orders", "?q=PAY": "payments",
	} {
		assert.Equal(t, name(read[TopicList](s, "/topics"+query)), want, "%s", query)
	}
	var seen []string
	after := ""
	for range 5 {
		page := read[TopicList](s, "/topics?limit=1&sort=-bytes&internal=true&after="+after)
		seen = append(seen, name(page))
		if after = page.Next; after == "" {
			break
		}
	}
	assert.Equal(t, strings.Join(seen, ","), "orders,payments,__x", "the pages")
	s.fails(Prefix+"/topics?after=x", http.StatusBadRequest)
	s.fails(Prefix+"/topics?sort=x", http.StatusBadRequest)
	row := read[TopicList](s, "/topics?q=orders").Topics[0]
	assert.True(t, row.Partitions == 2 && row.Bytes == 5000 && row.Groups == 2, "the row is %+v", row)
	if row := read[TopicList](s, "/topics?q=payments").Topics[0]; row.Leaderless != 1 {
		t.Errorf("without a leader the row is %+v", row)
	}
}

func TestATopicHasItsGroups(t *testing.T) {
	s := serve(t, newFake(t))
	d := read[TopicDetail](s, "/topics/orders")
	if len(d.Partitions) != 2 || *d.Partitions[1].LogEndOffset != 1<<60 || d.Partitions[1].Records != nil || *d.Partitions[0].Records != 100 || *d.Partitions[0].Leader != 1 {
		t.Errorf("the partitions are %+v", d.Partitions)
	}
	if len(d.Groups) != 2 || d.Groups[0].Name != "billing" || d.Groups[0].Lag != 90 || d.Groups[0].Partitions != 2 || d.Groups[1].Lag != 0 {
		t.Errorf("the groups are %+v", d.Groups)
	}
	assert.Equal(t, fmt.Sprint(d.Settings), "[{retention.ms 1000}]", "the settings are %+v", d.Settings)
	s.fails(Prefix+"/topics/nothing", http.StatusNotFound)
}

func TestTheOverviewHasTheWorstFirst(t *testing.T) {
	s := serve(t, newFake(t))
	o := read[Overview](s, "/overview")
	if o.Health.Status != "ok" || *o.Groups != 3 || o.Needing != 2 || o.Topics != 2 || len(o.Worst) != 2 || o.Worst[0].Name != "=SUM(A1)" {
		t.Errorf("it is %+v", o)
	}
	assert.Equal(t, o.Worst[0].Text, "=SUM(A1) has no members, and 7 records wait to be read, the oldest for 3s.")
	if o := read[Overview](s, "/overview?limit=1"); len(o.Worst) != 1 || o.Needing != 2 {
		t.Errorf("one of them: %+v", o)
	}
}

func TestBrokersAndSettings(t *testing.T) {
	s := serve(t, newFake(t))
	b := read[BrokerList](s, "/brokers")
	if b.Cluster != "test" || len(b.Brokers) != 1 || !b.Brokers[0].Here || !b.Brokers[0].Controller || b.Brokers[0].Partitions != 3 || b.Brokers[0].Listeners[0].Port != 9092 {
		t.Errorf("the brokers are %+v", b)
	}
	set := read[SettingList](s, "/settings?set=true")
	var got []string
	for _, x := range set.Settings {
		value := "-"
		if x.Value != nil {
			value = *x.Value
		}
		got = append(got, x.Name+"="+value+" "+x.Source)
	}
	assert.EqualSlices(t, got, []string{"muster.bootstrap.user=- start", "num.partitions=6 start"}, "the settings")
	if all := read[SettingList](s, "/settings"); len(all.Settings) < 50 {
		t.Errorf("there are %d settings", len(all.Settings))
	}
}

// What the broker sees over time is in the group and in what is said of it.
func TestAGroupThatWentBackIsTold(t *testing.T) {
	f := newFake(t)
	f.tracker.Begin(now.Add(watch.Interval))
	for p := range int32(2) {
		f.tracker.Log(lag.Log{Topic: "orders", Partition: p, Bounds: lag.Bounds{End: 100}, LastStable: 100, Added: 100})
	}
	f.tracker.Group(lag.Group{Name: "billing", Members: 1, Positions: []lag.Position{{Topic: "orders", Committed: 4}, {Topic: "orders", Partition: 1, Committed: 100}}})
	f.tracker.End()
	s := serve(t, f)
	if g := read[GroupDetail](s, "/groups/billing"); g.Partitions[0].Verdict != "rewound" || !slices.Contains(g.Watched.Findings, "offsets-rewound") {
		t.Errorf("the group is %+v, %+v", g.Partitions[0], g.Watched)
	}
	x := read[Explanation](s, "/groups/billing/explain")
	assert.True(t, slices.ContainsFunc(x.Findings, func(f Finding) bool { return f.ID == "offsets-rewound" && f.Change != "" }), "it explains %+v", x.Findings)
}
