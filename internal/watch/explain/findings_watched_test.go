package explain

import (
	"math"
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
)

// watchedOf is evidence of a group with one member, which has orders-0, and of what a
// broker has seen of it.
func watchedOf(g lag.GroupLag, parts ...lag.PartitionLag) *Evidence {
	e := evidenceOf(stableGroup(memberOf("a", []int32{0}, "orders")))
	owner := "a"
	e.Group.Partitions = []groupview.Partition{{Topic: "orders", Partition: 0, Owner: &owner}, {Topic: "orders", Partition: 1}}
	g.OvertakenIn = math.Inf(1)
	for i := range parts {
		p := &parts[i]
		if p.OvertakenIn == 0 {
			p.OvertakenIn = math.Inf(1)
		}
		g.OvertakenIn = min(g.OvertakenIn, p.OvertakenIn)
		g.Verdicts[p.Verdict]++
		if p.Verdict.Stuck() {
			g.Stuck++
		}
	}
	e.Watched = &Watched{g, parts}
	return e
}

// the returns the findings of an id.
func the(e *Evidence, id string) (out []Finding) {
	for _, f := range findings(e) {
		if f.ID == id {
			out = append(out, f)
		}
	}
	return out
}

func TestAStuckPartitionIsToldByWhoReadsIt(t *testing.T) {
	for verdict, want := range map[lag.Verdict][2]string{
		lag.NoOwner:       {"no member has it, though members subscribe to orders", "Restart a member"},
		lag.NotFetching:   {"a at 10.0.0.1 does not fetch it", "paused"},
		lag.NotCommitting: {"a at 10.0.0.1 fetches it and does not commit", "muster consume orders --partition 0 --from 12 --count 1"},
		lag.Stalled:       {"a at 10.0.0.1 commits this offset again and again", "error at offset 12"},
	} {
		e := watchedOf(lag.GroupLag{Members: 1}, lag.PartitionLag{
			Topic: "orders", Committed: 10, Bounds: lag.Bounds{Start: 12, End: 15}, Lag: 3, Seconds: 700, Verdict: verdict,
		})
		got := the(e, "stuck-partition")
		if len(got) != 1 || !strings.HasPrefix(got[0].Text, "orders-0 stands still at offset 10, with 3 records to read, the first 11m40s old: ") ||
			!strings.Contains(got[0].Text, want[0]) || !strings.Contains(got[0].Change, want[1]) {
			t.Errorf("%s: %+v", verdict, got)
		}
	}
	for _, verdict := range []lag.Verdict{lag.Fine, lag.Stopped, lag.Rewound} {
		if got := the(watchedOf(lag.GroupLag{Members: 1}, lag.PartitionLag{Topic: "orders", Lag: 3, Verdict: verdict}), "stuck-partition"); got != nil {
			t.Errorf("%s: %+v", verdict, got)
		}
	}
}

func TestTheWorstOfManyStuckPartitionsAreNamed(t *testing.T) {
	var parts []lag.PartitionLag
	for i := range int32(20) {
		parts = append(parts, lag.PartitionLag{Topic: "orders", Partition: i, Lag: 1, Approximate: true, Seconds: float64(i), Verdict: lag.NotFetching})
	}
	got := the(watchedOf(lag.GroupLag{}, parts...), "stuck-partition")
	if len(got) == 0 || len(got) >= 20 || !strings.HasPrefix(got[0].Text, "orders-19 ") || !strings.Contains(got[0].Text, "about 1 record to read") ||
		!strings.Contains(got[0].Text, "its owner does not fetch") || !strings.Contains(got[len(got)-1].Text, "more") {
		t.Errorf("%+v", got)
	}
}

// What one look would take for stuck the broker knows better.
func TestWhoWatchesAGroupKnowsBetterThanOneLook(t *testing.T) {
	old, young, committed, start, end := 3600.0, 1.0, int64(5), int64(0), int64(9)
	e := evidenceOf(stableGroup(memberOf("a", []int32{0}, "orders")))
	e.Group.Partitions = []groupview.Partition{
		{Topic: "orders", Partition: 0, LagSeconds: &old, Committed: &committed, LogStart: &start, LogEnd: &end}, {Topic: "orders", Partition: 1, LagSeconds: &young, Committed: &committed, LogStart: &start, LogEnd: &end},
		{Topic: "orders", Partition: 2, LagSeconds: &young, Committed: &committed, LogStart: &start, LogEnd: &end},
	}
	if len(the(e, "stuck-partition")) != 1 {
		t.Fatal("one look finds nothing")
	}
	e.Watched = &Watched{GroupLag: lag.GroupLag{OvertakenIn: math.Inf(1)}}
	if got := the(e, "stuck-partition"); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestRetentionThatOvertakesIsTold(t *testing.T) {
	part := func(in float64) lag.PartitionLag {
		return lag.PartitionLag{Topic: "orders", Partition: 1, Lag: 5, Seconds: 6 * 24 * 3600, OvertakenIn: in}
	}
	for _, c := range []struct {
		in   float64
		want string
	}{
		{7200, "will be deleted in about 2h"}, {5, "may be deleted at any moment"}, {23 * 3600, "23h"},
	} {
		got := the(watchedOf(lag.GroupLag{Seconds: 6 * 24 * 3600}, lag.PartitionLag{Topic: "users"}, part(c.in)), "retention-overtakes")
		if len(got) != 1 || !strings.Contains(got[0].Text, c.want) || !strings.Contains(got[0].Text, "orders-1") || !strings.Contains(got[0].Text, "5 records wait") ||
			!strings.Contains(got[0].Change, "muster topics alter orders --config retention.ms") {
			t.Errorf("in %v s: %+v", c.in, got)
		}
	}
	if got := the(watchedOf(lag.GroupLag{Seconds: 6 * 24 * 3600}, part(25*3600)), "retention-overtakes"); got != nil {
		t.Errorf("in more than a day: %+v", got)
	}
}

func TestAGroupThatDoesNotCatchUpIsTold(t *testing.T) {
	behind := lag.GroupLag{Members: 1, Total: lag.Total{Lag: 5000}, Seconds: 900, CatchUp: lag.NotCatching, Rates: lag.Rates{Consumed: 1.25, Produced: 120.4, Known: true}}
	got := the(watchedOf(behind, lag.PartitionLag{Topic: "orders"}, lag.PartitionLag{Topic: "orders", Partition: 1}), "not-catching-up")
	if len(got) != 1 || !strings.Contains(got[0].Text, "5,000 records wait, the oldest for 15m") ||
		!strings.Contains(got[0].Text, "read 1.2 a second, and 120 came") || !strings.Contains(got[0].Change, "there are 1 for 2 partitions") {
		t.Errorf("%+v", got)
	}
	if got := the(watchedOf(behind, lag.PartitionLag{Topic: "orders"}), "not-catching-up"); len(got) != 1 || strings.Contains(got[0].Change, "Run more") {
		t.Errorf("with a member for each partition: %+v", got)
	}
	behind.CatchUp, behind.CatchUpTime = lag.Catching, time.Hour
	if got := the(watchedOf(behind), "not-catching-up"); got != nil {
		t.Errorf("it catches up: %+v", got)
	}
}

// behindBy is evidence of a group that reads orders-0 and orders-1 and does not catch up. It
// has read orders-0 up to offset 100.
func behindBy(first, second lag.PartitionLag) *Evidence {
	first.Topic, second.Topic, second.Partition = "orders", "orders", 1
	behindGroup := lag.GroupLag{Members: 1, Total: lag.Total{Lag: first.Lag + second.Lag, Approximate: first.Approximate || second.Approximate}, Seconds: max(first.Seconds, second.Seconds), CatchUp: lag.NotCatching, Rates: lag.Rates{Produced: 10, Known: true}}
	e := watchedOf(behindGroup, first, second)
	e.Group.Partitions = []groupview.Partition{behind(0, first.Lag, 0), behind(1, second.Lag, 0)}
	return e
}

// The lag of an open transaction is not blamed on who cannot read it.
func TestAGroupThatATransactionHoldsBackIsNotBlamed(t *testing.T) {
	old, fresh := lag.PartitionLag{Lag: 5000, Seconds: 900}, lag.PartitionLag{Lag: 3, Seconds: 2}
	held := func(first, second lag.PartitionLag, lastStable int64) *Evidence {
		e := behindBy(first, second)
		e.Held = map[groupview.TopicPartition]HeldBack{{Topic: "orders"}: {LastStableOffset: lastStable, TransactionalID: "pay", ProducerID: 5, Open: time.Hour}}
		return e
	}
	same(t, "what is found", ids(held(old, fresh, 100)), "open-transaction ")
	same(t, "the same lag of the group itself", ids(behindBy(old, fresh)), "not-catching-up ")
	same(t, "it has not come as far as the transaction", ids(held(old, fresh, 101)), "not-catching-up ")
	got := the(held(lag.PartitionLag{Lag: 7000, Approximate: true, Seconds: 7200}, old, 100), "not-catching-up")
	if len(got) != 1 || !strings.Contains(got[0].Text, ": 5,000 records wait, the oldest for 15m.") || !strings.Contains(got[0].Change, "there are 1 for 2 partitions") {
		t.Errorf("when it is behind elsewhere, too: %+v", got)
	}
	old.Approximate = true
	if got := the(held(fresh, old, 100), "not-catching-up"); len(got) != 1 || !strings.Contains(got[0].Text, ": about 5,000 records wait, ") {
		t.Errorf("as far as anybody knows: %+v", got)
	}
}

func TestMoreMembersAreNoHelpWhereAllStandsStill(t *testing.T) {
	stuck, moving := lag.PartitionLag{Lag: 5000, Seconds: 900, Verdict: lag.NotCommitting}, lag.PartitionLag{Lag: 10, Seconds: 600}
	for name, c := range map[string]struct {
		first, second lag.PartitionLag
		want          string
	}{
		"all that has lag stands still": {stuck, lag.PartitionLag{}, "More members would not help"},
		"one gets on":                   {stuck, moving, "Run more members: there are 1 for 2 partitions."},
	} {
		if got := the(behindBy(c.first, c.second), "not-catching-up"); len(got) != 1 || !strings.Contains(got[0].Change, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestOffsetsThatWentBackAreTold(t *testing.T) {
	got := the(watchedOf(lag.GroupLag{}, lag.PartitionLag{Topic: "orders", Committed: 3, Verdict: lag.Rewound}, lag.PartitionLag{Topic: "orders", Partition: 1}), "offsets-rewound")
	if len(got) != 1 || !strings.Contains(got[0].Text, "the committed offset of orders-0 (now 3) is lower than before") {
		t.Errorf("%+v", got)
	}
	if got := the(watchedOf(lag.GroupLag{}, lag.PartitionLag{Topic: "orders"}), "offsets-rewound"); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestASuspectIsToldWithHowToSeeTheRecord(t *testing.T) {
	part := lag.PartitionLag{Topic: "orders", Committed: 10, Bounds: lag.Bounds{Start: 12, End: 15}, Lag: 3, Deaths: 4}
	got := the(watchedOf(lag.GroupLag{Poison: 1}, part), "poison-suspect")
	if len(got) != 1 || !strings.Contains(got[0].Text, "4 members died one after the other with offset 10") || !strings.Contains(got[0].Change, "muster consume orders --partition 0 --from 12 --count 1") {
		t.Errorf("%+v", got)
	}
	if got := the(watchedOf(lag.GroupLag{Dying: true}, part, part), "members-keep-dying"); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	e := watchedOf(lag.GroupLag{})
	committed, start, end, behind := int64(10), int64(0), int64(13), int64(3)
	e.Watched, e.Entries = nil, []Entry{{Entry: journal.Entry{Kind: journal.KindSuspected, Suspects: []journal.Suspect{{Topic: "orders", Committed: 10, Deaths: 3}}}}}
	p := &e.Group.Partitions[0]
	p.Committed, p.LogStart, p.LogEnd, p.Lag = &committed, &start, &end, &behind
	if got := the(e, "poison-suspect"); len(got) != 1 {
		t.Errorf("by the journal: %+v", got)
	}
	if committed++; the(e, "poison-suspect") != nil {
		t.Error("it got on")
	}
}
