package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

// same fails the test unless both are equal.
func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// says demands that a text has others in it.
func says(t *testing.T, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestWithoutStartsKeepsTheStartOfWhatNeverEnded(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	var entries []Entry
	for _, e := range []journal.Entry{
		{Kind: journal.KindStarted, Time: at(1)}, // The broker died.
		{Kind: journal.KindStarted, Time: at(5)},
		{Kind: journal.KindStarted, Time: at(6)}, // It had to start over.
		{Kind: journal.KindSettled, Time: at(7), Started: at(5)},
		{Kind: journal.KindReplaced, Time: at(8)},
		{Kind: journal.KindStarted, Time: at(9)}, // It is under way.
	} {
		entries = append(entries, Entry{Entry: e})
	}
	var got []string
	for _, e := range WithoutStarts(entries) {
		got = append(got, fmt.Sprintf("%d:%s", e.Time.Unix(), e.Kind))
	}
	same(t, "what is left", strings.Join(got, " "), "1:rebalance-started 7:rebalance-settled 8:static-member-replaced 9:rebalance-started")
}

func TestExplainTellsTheLatestFirst(t *testing.T) {
	var entries []Entry
	for i := range 4 {
		s := settledEntry(time.Duration(40-i)*time.Minute, journal.TriggerJoined, "a")
		s.Generation, s.Raw = int32(i+1), fmt.Appendf(nil, `{"n":%d}`, i+1)
		entries = append(entries, s, event(t, journal.Entry{Kind: journal.KindLoaded, Time: at(time.Duration(40-i)*time.Minute - time.Second), Generation: int32(i + 1)}))
	}
	x := evidenceOf(stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders")), entries...).Explain(3)
	same(t, "the rebalances in all", x.RebalanceCount, 4)
	same(t, "the events in all", x.EventCount, 4)
	if len(x.Rebalances) != 3 || len(x.Events) != 3 {
		t.Fatalf("there are %d rebalances and %d events", len(x.Rebalances), len(x.Events))
	}
	r := x.Rebalances[0]
	if r.Generation != 4 || r.TookSeconds != 1 || r.JoinSeconds != 1 || r.SyncSeconds != 0 || r.MembersBefore != 2 || r.MembersAfter != 2 || r.PartitionsMoved != 1 || r.Partitions != 4 || string(r.Entry) != `{"n":4}` {
		t.Errorf("the latest is %+v", r)
	}
	if !r.Started.Equal(at(37*time.Minute+time.Second)) || !r.Settled.Equal(at(37*time.Minute)) {
		t.Errorf("it lasted from %s to %s", r.Started, r.Settled)
	}
	says(t, x.Events[0].Text, "generation 4 goes on")
	same(t, "its kind", x.Events[0].Kind, journal.KindLoaded)
	says(t, string(x.Events[0].Entry), `"kind":"group-loaded"`)
	all := evidenceOf(nil, entries...).Explain(0)
	same(t, "all of them", len(all.Rebalances)+len(all.Events), 8)
	if !all.Now.Equal(evidenceNow) || all.Since != time.Hour || all.SinceSeconds != 3600 || all.QuietRestarts != "" {
		t.Errorf("it goes by %s and %s", all.Now, all.Since)
	}
}

// event is an entry as it is read from the journal.
func event(t *testing.T, e journal.Entry) Entry {
	t.Helper()
	value, err := json.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	out, err := ReadEntry(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReadEntryKeepsWhatItDoesNotUnderstand(t *testing.T) {
	e, err := ReadEntry([]byte(`{"group":"g","later":1}`))
	if err != nil || e.Group != "g" || string(e.Raw) != `{"group":"g","later":1}` {
		t.Errorf("it is %+v, %v", e, err)
	}
	if _, err := ReadEntry([]byte("no JSON")); err == nil {
		t.Error("that is no entry")
	}
}

func TestExplainARebalanceThatIsUnderWay(t *testing.T) {
	start := func(ago time.Duration) Entry {
		e := settledEntry(ago, journal.TriggerJoined, "b")
		e.Kind, e.Waiting, e.WaitingN = journal.KindStarted, []journal.Absent{{Who: who("c")}}, 1
		return e
	}
	g := &groupview.Group{Name: "g", State: groupview.Preparing, ProtocolType: groupview.Consumer, Members: []groupview.Member{memberOf("a", nil)}}
	entries := []Entry{start(time.Hour), settledEntry(30*time.Minute, journal.TriggerJoined, "a"), start(10 * time.Second), start(5 * time.Second)}
	x := evidenceOf(g, entries...).Explain(0)
	if x.UnderWay == nil || !x.UnderWay.Started.Equal(at(10*time.Second)) {
		t.Fatalf("under way is %+v", x.UnderWay)
	}
	same(t, "the text", strings.Join(x.UnderWay.Text, " "), "b-5f0c7d7e at 10.0.0.1 joined. At 11:59:55 UTC it waited for c-5f0c7d7e at 10.0.0.1 to join.")
	g.State = groupview.Completing
	x = evidenceOf(g, entries...).Explain(0)
	same(t, "the text while the leader assigns", strings.Join(x.UnderWay.Text, " "), "b-5f0c7d7e at 10.0.0.1 joined.")
	g.State = groupview.Stable
	for name, e := range map[string]*Evidence{
		"of a stable group":    evidenceOf(g, entries...),
		"of a group that went": evidenceOf(nil, entries...),
	} {
		if x := e.Explain(0); x.UnderWay != nil {
			t.Errorf("%s: %+v", name, x.UnderWay)
		}
	}
	g.State = groupview.Preparing
	if x := evidenceOf(g, append(entries, event(t, journal.Entry{Kind: journal.KindLoaded, Time: at(time.Second)}))...).Explain(0); x.UnderWay != nil {
		t.Errorf("the coordinator was loaded since, and yet: %+v", x.UnderWay)
	}
}

func TestExplainSaysWhatTheGroupIs(t *testing.T) {
	lag := int64(7)
	both := []groupview.Member{memberOf("a", []int32{0, 1}, "orders"), memberOf("b", []int32{0, 1}, "orders")}
	two := []groupview.Member{memberOf("a", []int32{0, 1}, "orders"), memberOf("b", []int32{2}, "orders")}
	for want, g := range map[string]*groupview.Group{
		"Group g does not exist any more.": nil,
		"Group g is PreparingRebalance: it waits for its 2 members to join. Its total lag is 7.":                              {State: groupview.Preparing, Members: two, TotalLag: &lag},
		"Group g is CompletingRebalance: its 2 members wait for the leader to assign partitions. Its total lag is -.":         {State: groupview.Completing, Members: two},
		"Group g is Empty: it has no members. Its total lag is 7.":                                                            {State: groupview.Empty, TotalLag: &lag},
		"Group g is Stable: 3 partitions are assigned to 2 members by the range assignor. Its total lag is 7.":                {State: groupview.Stable, ProtocolType: groupview.Consumer, Assignor: "range", Members: two, TotalLag: &lag},
		"Group g is Stable: 2 partitions are assigned to 2 members by the simple assignor. Its total lag is 1,010.":           {Type: groupview.TypeShare, State: groupview.Stable, ProtocolType: groupview.TypeShare, Assignor: "simple", Members: both, TotalLag: new(int64(1010))},
		"Group g is Stable with 2 members. Its total lag is -.":                                                               {State: groupview.Stable, ProtocolType: "connect", Members: two},
		"Group g is Empty: it has no members. Its total lag is at least 100,000, which is where the broker stopped counting.": {State: groupview.Empty, TotalLag: new(int64(100000)), TotalLagAtLeast: true},
	} {
		x := evidenceOf(g).Explain(0)
		same(t, "the text", x.Text, want)
		if g == nil {
			same(t, "the state", x.State, groupview.Dead)
		} else if x.State != g.State || x.Members != len(g.Members) || x.Assignor != g.Assignor || x.TotalLag != g.TotalLag || x.LagAtLeast != g.TotalLagAtLeast {
			t.Errorf("it is %+v", x)
		}
	}
}

func TestExplainTellsOfQuietRestartsTogether(t *testing.T) {
	w := who("a")
	w.Instance = "worker-7"
	quiet := Entry{Entry: journal.Entry{Kind: journal.KindReplaced, Time: at(time.Minute), Triggers: []journal.Trigger{{Kind: journal.TriggerReplaced, Who: w}}}}
	x := evidenceOf(nil, quiet, quiet).Explain(0)
	same(t, "the sentence", x.QuietRestarts, "Static members restarted 2 times without a rebalance: worker-7 at 10.0.0.1 (2 times).")
	same(t, "the events", x.EventCount, 0)
}

// The names are what muster groups explain --json prints, and what a console
// reads.
func TestExplanationsInJSON(t *testing.T) {
	s := settledEntry(time.Minute, journal.TriggerJoined, "a")
	s.Time, s.Started = time.Unix(2, 0).UTC(), time.Unix(1, 0).UTC()
	s.Raw = []byte(`{}`)
	got, err := json.Marshal(evidenceOf(nil, s).Explain(0))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the explanation", string(got), `{"name":"g","state":"Dead","protocol_type":"","assignor":"","members":0,"total_lag":null,"text":"Group g does not exist any more.",`+
		`"journal":true,"since_seconds":3600,"rebalance_count":1,"under_way":null,"rebalances":[{"started":"1970-01-01T00:00:01Z","settled":"1970-01-01T00:00:02Z","generation":0,`+
		`"took_seconds":1,"join_seconds":1,"sync_seconds":0,"members_before":2,"members_after":2,"partitions_moved":1,"partitions":4,`+
		`"text":["a-5f0c7d7e at 10.0.0.1 joined.","It took 1s until all members had joined again.","The group still has 2 members; 1 of 4 partitions changed hands."],"entry":{}}],`+
		`"event_count":0,"events":[],"findings":[]}`)
}
