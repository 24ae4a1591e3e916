package explain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
)

// at is a time in the past of the Evidence below.
func at(ago time.Duration) time.Time { return evidenceNow.Add(-ago) }

var evidenceNow = time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)

func who(name string) journal.Who {
	return journal.Who{Member: name + "-5f0c7d7e-8a04-4b8e-9d2f-1c2f3b4a5d6e", ClientID: name, Host: "10.0.0.1"}
}

// settledEntry is a rebalance that took a second.
func settledEntry(ago time.Duration, kind journal.TriggerKind, name string) Entry {
	e := Entry{Entry: journal.Entry{Kind: journal.KindSettled, Time: at(ago), Started: at(ago + time.Second), JoinPhase: time.Second, Before: 2, After: 2, PartitionN: 4, MoveN: 1}}
	if kind != "" {
		e.Triggers = []journal.Trigger{{Kind: kind, Who: who(name), Silent: 45 * time.Second}}
		e.TriggerN = 1
	}
	return e
}

func evidenceOf(g *groupview.Group, entries ...Entry) *Evidence {
	return &Evidence{Name: "g", Group: g, Journal: true, Entries: entries, Partitions: map[string]int{"orders": 4, "users": 1}, Now: evidenceNow, Since: time.Hour}
}

func stableGroup(members ...groupview.Member) *groupview.Group {
	return &groupview.Group{Name: "g", State: groupview.Stable, ProtocolType: groupview.Consumer, Assignor: "range", Members: members}
}

func memberOf(name string, partitions []int32, topics ...string) groupview.Member {
	m := groupview.Member{ID: name, ClientID: name, Host: "10.0.0.1", Topics: topics, Assigned: []groupview.Assigned{}}
	if len(partitions) > 0 {
		m.Assigned = append(m.Assigned, groupview.Assigned{Topic: topics[0], Partitions: partitions})
	}
	return m
}

func storm(kind journal.TriggerKind, n int) []Entry {
	var out []Entry
	for i := range n {
		out = append(out, settledEntry(time.Duration(n-i)*time.Minute, kind, "a"))
	}
	return out
}

func TestFindings(t *testing.T) {
	busy := &groupview.Group{Name: "g", State: groupview.Preparing, ProtocolType: groupview.Consumer, Members: []groupview.Member{memberOf("a", nil)}}
	assigning := &groupview.Group{Name: "g", State: groupview.Completing, ProtocolType: groupview.Consumer}
	polled := settledEntry(time.Minute, journal.TriggerLeft, "a")
	polled.Triggers[0].Reason = "consumer poll timeout has expired."
	slow := settledEntry(time.Minute, journal.TriggerJoined, "a")
	slow.JoinPhase, slow.Slowest = 20*time.Second, []journal.Late{{Who: who("b"), Waited: 19 * time.Second}}
	missed := settledEntry(time.Minute, journal.TriggerJoined, "a")
	missed.Missed = []journal.Absent{{Who: who("c")}, {Who: who("d"), Kept: true}}
	never := settledEntry(time.Minute, journal.TriggerJoined, "a")
	never.Missed = []journal.Absent{{Who: who("c"), Pending: true}}
	first := settledEntry(time.Minute, journal.TriggerExpired, "a")
	first.Triggers[0].New = true
	leader, boss := settledEntry(time.Minute, journal.TriggerLeader, "a"), who("a")
	leader.SyncPhase, leader.Leader = 12*time.Second, &boss
	static := settledEntry(time.Minute, journal.TriggerExpired, "a")
	static.Triggers[0].Instance = "worker-7"
	started := func(ago time.Duration) Entry {
		e := settledEntry(ago, journal.TriggerJoined, "b")
		e.Kind = journal.KindStarted
		return e
	}
	waits := func(ago time.Duration) Entry {
		e := started(ago)
		e.Waiting, e.WaitingN = []journal.Absent{{Who: who("b")}, {Who: who("c"), Pending: true}}, 2
		return e
	}
	here, lag := "worker-7", int64(7)
	back := memberOf("a", []int32{0, 1, 2, 3}, "orders")
	back.Instance = &here
	unread := stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders"))
	unread.Partitions = []groupview.Partition{{Topic: "users", Committed: new(int64), Lag: &lag}}
	ownerless := stableGroup(memberOf("a", []int32{0, 1, 2}, "orders"))
	ownerless.Partitions = []groupview.Partition{{Topic: "orders", Partition: 3}}
	shared := stableGroup(memberOf("a", []int32{0, 1}, "orders"), memberOf("b", []int32{0, 1}, "orders"))
	shared.Type, shared.ProtocolType = groupview.TypeShare, groupview.TypeShare
	shared.Partitions = []groupview.Partition{{Topic: "orders"}, {Topic: "orders", Partition: 1}}
	unshared := *shared
	unshared.Partitions = append(slices.Clone(shared.Partitions), groupview.Partition{Topic: "orders", Partition: 2})

	for name, c := range map[string]struct {
		e    *Evidence
		want string // The id, and the text as far as it matters.
	}{
		"nothing":            {evidenceOf(stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders")), settledEntry(time.Minute, journal.TriggerJoined, "a")), ""},
		"no group":           {evidenceOf(nil, settledEntry(time.Minute, journal.TriggerJoined, "a")), ""},
		"expired":            {evidenceOf(nil, settledEntry(time.Minute, journal.TriggerExpired, "a"), settledEntry(time.Minute, journal.TriggerExpired, "a")), "heartbeats-missed: In the last hour, 2 members missed their heartbeats and were removed: a at 10.0.0.1 (2 times)."},
		"poll timeout":       {evidenceOf(nil, polled), "poll-interval-exceeded: In the last hour, 1 member left because the application did not poll in time: a at 10.0.0.1."},
		"slow joiner":        {evidenceOf(nil, slow), "slow-joiner: At 11:58:59 UTC the whole group waited for b-5f0c7d7e at 10.0.0.1 to join again, for 19s."},
		"missed":             {evidenceOf(nil, missed), "missed-rebalance: In the last hour, members did not join again within the rebalance timeout and were removed: c at 10.0.0.1."},
		"never joined":       {evidenceOf(nil, never), "never-joined: In the last hour, the group waited in vain for clients that were given a member id and did not join with it: c at 10.0.0.1."},
		"new and gone":       {evidenceOf(nil, first), ""},
		"slow leader":        {evidenceOf(nil, leader), "slow-leader: At 11:58:59 UTC the leader, a-5f0c7d7e at 10.0.0.1, took 12s to assign 4 partitions to 2 members."},
		"no sync":            {evidenceOf(nil, settledEntry(time.Minute, journal.TriggerNoSync, "a")), "no-sync: In the last hour, members joined and then did not ask for their assignment: a at 10.0.0.1."},
		"storm":              {evidenceOf(nil, storm(journal.TriggerJoined, 5)...), "rebalance-storm: There were 5 rebalances between 11:55:00 UTC and 11:59:00 UTC (joins: 5)."},
		"no storm":           {evidenceOf(nil, storm(journal.TriggerJoined, 4)...), ""},
		"static gone":        {evidenceOf(stableGroup(memberOf("b", []int32{0, 1, 2, 3}, "orders")), static), "static-member-gone: Static member worker-7 at 10.0.0.1 did not come back within its session timeout (45s) and was removed."},
		"static back":        {evidenceOf(stableGroup(back), static), "heartbeats-missed: In the last hour, 1 member missed its heartbeats and was removed: worker-7 at 10.0.0.1."},
		"stuck":              {evidenceOf(busy, settledEntry(50*time.Minute, journal.TriggerJoined, "a"), started(45*time.Minute)), "stuck-rebalance: The group has been in PreparingRebalance for 45m: it waits for members that have not joined again."},
		"stuck, and on whom": {evidenceOf(busy, waits(45*time.Minute), waits(44*time.Minute)), "stuck-rebalance: The group has been in PreparingRebalance for 45m: it waits for members that have not joined again (at 11:16:00 UTC: b-5f0c7d7e at 10.0.0.1 and c-5f0c7d7e at 10.0.0.1 (not yet a member))."},
		"stuck on leader":    {evidenceOf(assigning, started(45*time.Second), started(2*time.Second)), "stuck-rebalance: The group has been in CompletingRebalance for 45s: all members have joined"},
		"stuck for long":     {evidenceOf(busy), "stuck-rebalance: The group has been in PreparingRebalance for 1h or longer"},
		"rebalance just now": {evidenceOf(busy, started(2*time.Second)), ""},
		"idle by range":      {evidenceOf(stableGroup(memberOf("a", []int32{0}, "orders"), memberOf("b", nil, "orders"))), "idle-members: 1 member has nothing to read, though there are 4 partitions for 2 members: b at 10.0.0.1. The range assignor"},
		"unread topic":       {evidenceOf(unread), "unread-topic: The group has committed offsets of users, but no member subscribes to it any more. Its lag of 7"},
		"ownerless":          {evidenceOf(ownerless), "unassigned-partitions: No one reads orders-3, though members subscribe to its topic."},
		"shared":             {evidenceOf(shared), ""},
		"shared, not all":    {evidenceOf(&unshared), "unassigned-partitions: No one reads orders-2, though members subscribe to its topic."},
	} {
		var got []string
		for _, f := range findings(c.e) {
			got = append(got, f.ID+": "+f.Text)
			if f.Change == "" || !strings.HasSuffix(f.Change, ".") || !strings.HasSuffix(f.Text, ".") {
				t.Errorf("%s: not a sentence: %+v", name, f)
			}
		}
		if len(got) > 1 || !strings.HasPrefix(strings.Join(got, ""), c.want) || c.want == "" && len(got) > 0 {
			t.Errorf("%s: found\n%s\nwant\n%s", name, strings.Join(got, "\n"), c.want)
		}
	}
	says(t, evidenceOf(nil, storm(journal.TriggerExpired, 9)...).storm()[0].Change, "members that miss heartbeats")
	says(t, evidenceOf(nil, storm(journal.TriggerLeft, 9)...).storm()[0].Change, "group.instance.id")
	if e := evidenceOf(busy); true {
		e.Journal = false
		same(t, "what is odd without a journal", len(e.stuckRebalance()), 0)
	}
}

func TestSentences(t *testing.T) {
	coop := settledEntry(0, journal.TriggerChanged, "a")
	coop.Protocol, coop.MoveN, coop.Moves = "cooperative-sticky", 2, []journal.Move{{Topic: "orders", Partition: 1, From: "a", To: "b"}, {Topic: "orders", From: "a"}}
	long := settledEntry(0, "", "")
	for range 5 {
		long.Triggers = append(long.Triggers, journal.Trigger{Kind: journal.TriggerJoined, Who: who("a")})
	}
	long.TriggerN = 90
	phases, boss := settledEntry(0, journal.TriggerExpired, "a"), who("b")
	phases.Started = at(9 * time.Second)
	phases.JoinPhase, phases.SyncPhase, phases.Leader = 3*time.Second, 6*time.Second, &boss
	phases.Slowest = []journal.Late{{Who: who("c"), Waited: 3 * time.Second}}
	odd := settledEntry(0, "eclipse", "a")
	large := settledEntry(0, "", "")
	resumed := settledEntry(0, journal.TriggerResumed, "")
	resumed.Triggers = []journal.Trigger{{Kind: journal.TriggerResumed}}
	tooLarge := settledEntry(0, journal.TriggerTooLarge, "a")
	tooLarge.Triggers[0].Bytes, tooLarge.Triggers[0].MaxBytes = 2_000_000, 1_048_527
	large.Triggers, large.TriggerN = []journal.Trigger{{Kind: journal.TriggerMaxSize}}, 1
	same(t, "a reason that nobody is", large.Line(), "max-size")
	removed, admin := settledEntry(0, journal.TriggerRemoved, "a"), journal.Who{ClientID: "ops", Host: "10.0.0.9"}
	removed.Triggers[0].By = &admin
	removed.Missed, removed.MissedN = []journal.Absent{{Who: who("b")}, {Who: who("c"), Pending: true}, {Who: who("d"), Kept: true}}, 7
	same(t, "who removed it", removed.Line(), "removed: a-5f0c7d7e at 10.0.0.1 by client ops at 10.0.0.9; did not come: b-5f0c7d7e at 10.0.0.1, c-5f0c7d7e at 10.0.0.1 (not yet a member), d-5f0c7d7e at 10.0.0.1 and 4 more")
	first := settledEntry(0, journal.TriggerExpired, "a")
	first.Triggers[0].New = true
	first.Triggers = append(first.Triggers, journal.Trigger{Kind: journal.TriggerRemoved, Who: who("b")})
	first.TriggerN = 2
	kept := settledEntry(0, journal.TriggerLeader, "a")
	kept.MoveN = 0
	for _, c := range []struct {
		e    Entry
		want string
	}{
		{coop, "a-5f0c7d7e at 10.0.0.1 joined again with a changed subscription or, as cooperative-sticky requires, after giving up partitions. It took 1s until all members had joined again. The group still has 2 members; 1 partition changed hands, 3 stayed, and 1 lost its owner, to be assigned in the next rebalance, which follows at once."},
		{long, "5 members joined: a-5f0c7d7e at 10.0.0.1, a-5f0c7d7e at 10.0.0.1, a-5f0c7d7e at 10.0.0.1 and 2 more. There were 85 more such events, which the journal has no room for. It took 1s until all members had joined again. The group still has 2 members; 1 of 4 partitions changed hands."},
		{phases, "a-5f0c7d7e at 10.0.0.1 sent no heartbeat for 45s, its session timeout, and was removed. It took 9s: 3s until all members had joined again; c-5f0c7d7e at 10.0.0.1 came last, and 6s until the leader, b-5f0c7d7e at 10.0.0.1, had assigned partitions. The group still has 2 members; 1 of 4 partitions changed hands."},
		{odd, "a-5f0c7d7e at 10.0.0.1 did something that this version of muster has no words for (eclipse). It took 1s until all members had joined again. The group still has 2 members; 1 of 4 partitions changed hands."},
		{removed, "a-5f0c7d7e at 10.0.0.1 was removed by client ops at 10.0.0.9. It took 1s until all members had joined again. b-5f0c7d7e at 10.0.0.1 did not join again within the rebalance timeout and was removed. The group also waited for c-5f0c7d7e at 10.0.0.1, which was given a member id and did not join with it. d-5f0c7d7e at 10.0.0.1 did not join again either, but keeps its place for now, being static. 4 more did not join in time; the journal has no room for their names. The group still has 2 members; 1 of 4 partitions changed hands."},
		{first, "a-5f0c7d7e at 10.0.0.1 joined for the first time, was not heard of for 45s while it waited for the others, and was removed. b-5f0c7d7e at 10.0.0.1 was removed by an administrator. It took 1s until all members had joined again. The group still has 2 members; 1 of 4 partitions changed hands."},
		{resumed, "The coordinator was lost in the middle of a rebalance, and the group begins it again. It took 1s until all members had joined again. The group still has 2 members; 1 of 4 partitions changed hands."},
		{tooLarge, "The assignment by a-5f0c7d7e at 10.0.0.1 could not be stored: the group's record would have 2000000 bytes, and 1048527 fit (max.message.bytes of __consumer_offsets). It took 1s until all members had joined again. The group still has 2 members; 1 of 4 partitions changed hands."},
		{large, "The group had more members than group.max.size allows. It took 1s until all members had joined again. The group still has 2 members; 1 of 4 partitions changed hands."},
		{kept, "a-5f0c7d7e at 10.0.0.1, the leader, joined again, as leaders do to assign partitions anew when their topics change. It took 1s until all members had joined again. The group still has 2 members; 4 partitions are assigned, each to the same member as before."},
	} {
		same(t, "the rebalance", strings.Join(c.e.sentences(), " "), c.want)
	}
}

// A group of Flink has no members, and is not to be deleted.
func TestAGroupThatIsReadFromOutsideIsNotCalledAbandoned(t *testing.T) {
	total := int64(5)
	e := evidenceOf(&groupview.Group{Name: "g", State: groupview.Empty, TotalLag: &total})
	e.Watched = &Watched{GroupLag: lag.GroupLag{Total: lag.Total{Lag: 5}, OvertakenIn: 1e9}}
	same(t, "nobody commits", ids(e), "lag-without-members ")
	e.Watched.ReadOutside = true
	same(t, "somebody commits", ids(e), "")
}

// Of layout stream no one knows how many records come, nor how many of those are read.
func TestRatesThatNobodyCountsAreNotTold(t *testing.T) {
	behind := lag.GroupLag{Members: 1, Total: lag.Total{Lag: 5000}, Seconds: 900, CatchUp: lag.NotCatching, Sparse: true}
	got := the(watchedOf(behind, lag.PartitionLag{Topic: "orders"}), "not-catching-up")
	if len(got) != 1 || !strings.HasSuffix(got[0].Text, "5,000 records wait, the oldest for 15m.") {
		t.Errorf("%+v", got)
	}
}
