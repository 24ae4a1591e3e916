package explain

import (
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

// entryWith is a rebalance that took a second, changed as a test wants it.
func entryWith(change func(*Entry)) Entry {
	e := settledEntry(time.Minute, journal.TriggerJoined, "a")
	change(&e)
	return e
}

func TestAJoinIsSlowFromFiveSecondsOn(t *testing.T) {
	join := func(name string, took time.Duration, before int) Entry {
		return entryWith(func(e *Entry) {
			e.JoinPhase, e.Before, e.Slowest = took, before, []journal.Late{{Who: who(name), Waited: took}}
		})
	}
	same(t, "at five seconds", ids(evidenceOf(nil, join("b", slowJoin, 2))), "slow-joiner ")
	same(t, "below", ids(evidenceOf(nil, join("b", slowJoin-time.Millisecond, 2))), "")
	same(t, "when the group was empty, and waited for anybody", ids(evidenceOf(nil, join("b", time.Minute, 0))), "")
	found := evidenceOf(nil, join("b", 6*time.Second, 2), join("c", 8*time.Second, 2), join("d", 7*time.Second, 2)).Findings()
	same(t, "how many are told of", len(found), 1)
	says(t, found[0].Text, "waited for c-5f0c7d7e at 10.0.0.1 to join again, for 8s")
}

func TestALeaderIsSlowFromFiveSecondsOn(t *testing.T) {
	assign := func(name string, took time.Duration) Entry {
		leader := who(name)
		return entryWith(func(e *Entry) { e.SyncPhase, e.Leader = took, &leader })
	}
	same(t, "at five seconds", ids(evidenceOf(nil, assign("a", slowAssign))), "slow-leader ")
	same(t, "below", ids(evidenceOf(nil, assign("a", slowAssign-time.Millisecond))), "")
	same(t, "nobody led", ids(evidenceOf(nil, entryWith(func(e *Entry) { e.SyncPhase = time.Minute }))), "")
	found := evidenceOf(nil, assign("a", 6*time.Second), assign("b", 8*time.Second), assign("c", 7*time.Second)).Findings()
	same(t, "how many are told of", len(found), 1)
	says(t, found[0].Text, "the leader, b-5f0c7d7e at 10.0.0.1, took 8s")
}

func TestRebalancesFarApartAreNoStorm(t *testing.T) {
	var entries []Entry
	for i := range 5 {
		entries = append(entries, settledEntry(55*time.Minute-time.Duration(i)*stormWindow, journal.TriggerJoined, "a"))
	}
	same(t, "ten minutes apart", ids(evidenceOf(nil, entries...)), "")
	var within []Entry
	for i := range 5 {
		within = append(within, settledEntry(55*time.Minute-time.Duration(i)*stormWindow/4, journal.TriggerJoined, "a"))
	}
	same(t, "within ten minutes", ids(evidenceOf(nil, within...)), "rebalance-storm ")
}

func TestARebalanceUnderWayCountsToo(t *testing.T) {
	g := &groupview.Group{Name: "g", State: groupview.Preparing, ProtocolType: groupview.Consumer}
	began := settledEntry(time.Second, journal.TriggerExpired, "a")
	began.Kind = journal.KindStarted
	same(t, "what is found", ids(evidenceOf(g, began)), "heartbeats-missed ")
	gone := journal.Entry{Kind: journal.KindDeleted, Time: at(500 * time.Millisecond)}
	same(t, "of a group that was deleted since", ids(evidenceOf(g, began, Entry{Entry: gone})), "")
	settled := settledEntry(time.Minute, journal.TriggerJoined, "a")
	same(t, "whose start the journal has not", ids(evidenceOf(g, settled)), "")
}

func TestAStaticMemberThatIsReplacedOverAndOver(t *testing.T) {
	w := who("a")
	w.Instance = "worker-7"
	replaced := func(ago time.Duration) Entry {
		return Entry{Entry: journal.Entry{Kind: journal.KindReplaced, Time: at(ago), Triggers: []journal.Trigger{{Kind: journal.TriggerReplaced, Who: w}}}}
	}
	three := evidenceOf(nil, replaced(9*time.Minute), replaced(5*time.Minute), replaced(time.Minute))
	same(t, "three times", ids(three), "instance-id-taken-twice ")
	says(t, three.Findings()[0].Text, "Static member worker-7 was replaced 3 times, most recently 1m ago.")
	same(t, "twice", ids(evidenceOf(nil, replaced(2*time.Minute), replaced(time.Minute))), "")
	same(t, "three times in an hour", ids(evidenceOf(nil, replaced(50*time.Minute), replaced(30*time.Minute), replaced(time.Minute))), "")
}

func TestASubscriptionThatNobodyTookUp(t *testing.T) {
	instance, w := "worker-7", who("worker-7")
	w.Instance = instance
	back := func(c *journal.Change) Entry {
		return Entry{Entry: journal.Entry{Kind: journal.KindReplaced, Time: at(time.Minute), Triggers: []journal.Trigger{{Kind: journal.TriggerReplaced, Who: w, Change: c}}}}
	}
	m := memberOf("worker-7", []int32{0, 1, 2, 3}, "orders")
	m.Instance, m.ID = &instance, w.Member
	added := back(&journal.Change{TopicsAdded: []string{"users"}, TopicsAddedN: 1})
	same(t, "another topic", ids(evidenceOf(stableGroup(m), added)), "subscription-not-taken-up ")
	same(t, "only other data for its assignor", ids(evidenceOf(stableGroup(m), back(&journal.Change{Other: true}))), "")
	m.ID += "-since" // Another process has the place by now.
	same(t, "another process", ids(evidenceOf(stableGroup(m), added)), "")
}

func TestWhatIsJustInOrder(t *testing.T) {
	atStart := behind(0, 0, 0)
	*atStart.LogStart = *atStart.Committed
	e := evidenceOf(&groupview.Group{Name: "g", State: groupview.Empty, Partitions: []groupview.Partition{atStart}})
	same(t, "an offset at the log start", ids(e), "")

	g := stableGroup(memberOf("a", []int32{0, 1, 2, 3}, "orders"))
	read := behind(0, 0, 0)
	read.Topic, read.Owner = "users", nil
	g.Partitions = []groupview.Partition{read}
	same(t, "a topic that is read no more, and has no lag", ids(evidenceOf(g)), "")

	members := []groupview.Member{memberOf("a", []int32{0, 1}, "orders"), memberOf("b", []int32{2}, "orders"), memberOf("c", []int32{3}, "orders"), memberOf("d", nil, "orders")}
	says(t, evidenceOf(stableGroup(members...)).Findings()[0].Text, "1 member has nothing to read, though there are 4 partitions for 4 members")
}

func TestAnAssignmentThatIsTooLarge(t *testing.T) {
	refused := entryWith(func(e *Entry) {
		e.Triggers = []journal.Trigger{{Kind: journal.TriggerTooLarge, Who: who("a"), Bytes: 3 << 20, MaxBytes: 1 << 20}}
	})
	e := evidenceOf(nil, refused, refused)
	same(t, "what is found", ids(e), "assignment-too-large ")
	says(t, findings(e)[0].Text, "In the last hour, the leader's assignment was refused 2 times", "3.0 MiB, and 1.0 MiB can be stored")
	resumed := entryWith(func(e *Entry) { e.Triggers = []journal.Trigger{{Kind: journal.TriggerResumed}} })
	same(t, "the line of a rebalance that began anew", resumed.Line(), "resumed")
	same(t, "what is found then", ids(evidenceOf(nil, resumed)), "")
}

// Every kind that a broker writes has words.
func TestEveryTriggerHasWords(t *testing.T) {
	for _, kind := range []journal.TriggerKind{
		journal.TriggerJoined, journal.TriggerChanged, journal.TriggerLeader, journal.TriggerLeft, journal.TriggerRemoved, journal.TriggerExpired,
		journal.TriggerNoSync, journal.TriggerReplaced, journal.TriggerMaxSize, journal.TriggerTooLarge, journal.TriggerResumed,
	} {
		e := settledEntry(0, kind, "a")
		if text := e.reasons()[0]; strings.Contains(text, "has no words for") {
			t.Errorf("%s: %s", kind, text)
		}
	}
}

// What is said of static members goes by how many there are, not by how often they went.
func TestStaticMembersThatAreGoneAreCountedOnce(t *testing.T) {
	gone := func(instances ...string) string {
		var entries []Entry
		for _, instance := range instances {
			entries = append(entries, entryWith(func(e *Entry) {
				e.Triggers[0].Kind, e.Triggers[0].Instance = journal.TriggerExpired, instance
			}))
		}
		return found(t, evidenceOf(stableGroup(memberOf("b", []int32{0, 1, 2, 3}, "orders")), entries...))
	}
	same(t, "one that went twice", gone("worker-7", "worker-7"),
		"static-member-gone: Static member worker-7 at 10.0.0.1 (2 times) did not come back within its session timeout (45s) and was removed. Until then no one read its partitions.")
	same(t, "two", gone("worker-7", "worker-8"),
		"static-member-gone: Static members worker-7 at 10.0.0.1 and worker-8 at 10.0.0.1 did not come back within their session timeout (45s) and were removed. Until then no one read their partitions.")
}
