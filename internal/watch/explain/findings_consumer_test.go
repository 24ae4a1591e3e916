package explain

import (
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

// consumers is a stable consumer group, in which everybody has a partition of orders.
func consumers(names ...string) *groupview.Group {
	epoch := int32(3)
	g := stableGroup()
	g.Type, g.Assignor, g.Epoch, g.TargetEpoch = groupview.TypeConsumer, "uniform", &epoch, &epoch
	for i, name := range names {
		m := memberOf(name, []int32{int32(i)}, "orders")
		m.Epoch, m.Target = &epoch, m.Assigned
		g.Members = append(g.Members, m)
	}
	return g
}

// found lists findings as id and text, and checks that they are sentences.
func found(t *testing.T, e *Evidence) string {
	t.Helper()
	var out []string
	for _, f := range findings(e) {
		out = append(out, f.ID+": "+f.Text)
		if f.Change == "" || !strings.HasSuffix(f.Change, ".") || !strings.HasSuffix(f.Text, ".") {
			t.Errorf("not a sentence: %+v", f)
		}
	}
	return strings.Join(out, "\n")
}

func TestAMemberThatDoesNotAcknowledgeItsRevocation(t *testing.T) {
	g := reconciling()
	e := evidenceOf(g, consumerEntry(journal.KindEpoch, 25*time.Second, trigger(journal.TriggerJoined, "b")))
	same(t, "what is found", found(t, e), "revocation-not-acknowledged: "+aHoldsUpB+
		" If nothing changes it is removed from the group at 12:00:40 UTC (in 40s), when its rebalance timeout ends, and the others get its partitions. Everyone else goes on reading what they have.")
	says(t, findings(e)[0].Change, "Look at a at 10.0.0.1: a client gives up partitions when its application next polls")
	heard := at(slowHeartbeat)
	g.Members[0].Heard = &heard
	says(t, findings(e)[0].Change, "Look at a at 10.0.0.1: without heartbeats the process may have crashed")
	since := at(slowRevoke - time.Second)
	g.Members[0].Since = &since
	same(t, "soon after it was told", found(t, e), "")
	e.Entries[0].Time = at(stuckRebalanceAge)
	says(t, found(t, e), "stuck-rebalance: The group has been on its way to new partitions for 30s, and is Reconciling. a at 10.0.0.1 has not given up")
	g.State = groupview.Stable
	g.Members = consumers("a", "b").Members
	same(t, "when it has", found(t, e), "")

	why := trigger(journal.TriggerNotRevoked, "a")
	why.Revoke = revokeOf()
	e.Entries = []Entry{consumerEntry(journal.KindSettled, time.Minute, why), consumerEntry(journal.KindSettled, time.Second, why)}
	same(t, "when it was removed", found(t, e), "revocation-timed-out: In the last hour, 2 members did not give up partitions within the rebalance timeout (5m) and were removed: a at 10.0.0.1 (2 times). Others waited for them for up to 5m1s.")
	g.State = groupview.Reconciling
	e.Entries = []Entry{consumerEntry(journal.KindEpoch, time.Minute/4, trigger(journal.TriggerJoined, "b")), consumerEntry(journal.KindEpoch, time.Second, why)}
	says(t, found(t, e), "revocation-timed-out: In the last hour, 1 member did not")
}

func TestARegexThatMatchesNothing(t *testing.T) {
	g := consumers("a", "b")
	none, some, pattern := 0, 2, "invoices.*"
	b := &g.Members[1]
	b.Topics, b.Pattern, b.Matches = nil, &pattern, &none
	b.Assigned, b.Target = []groupview.Assigned{}, nil
	e := evidenceOf(g)
	says(t, found(t, e), "regex-matches-nothing: The regular expression invoices.*, which b at 10.0.0.1 subscribes to, matches no topic, so it has nothing to read.",
		"different-subscriptions: Members subscribe to different topics: a at 10.0.0.1 to orders; b at 10.0.0.1 to the regular expression invoices.*.")
	b.Topics = []string{"orders"}
	says(t, found(t, e), "subscribes to, matches no topic.", "b at 10.0.0.1 to orders and the regular expression invoices.*.")
	b.Matches = &some
	if strings.Contains(found(t, e), "regex") {
		t.Error("it matches something")
	}
	b.Matches = nil
	if strings.Contains(found(t, e), "regex") {
		t.Error("nobody knows yet what it matches")
	}
}

// Topics that a regular expression matches are read, though no one names them.
func TestTopicsOfARegexAreRead(t *testing.T) {
	g := consumers("a")
	pattern := "o.*"
	g.Members[0].Topics, g.Members[0].Pattern = nil, &pattern
	lag := behind(0, 7, 0)
	g.Partitions = []groupview.Partition{lag}
	same(t, "what is found", found(t, evidenceOf(g)), "")
}

func TestAnAssignorThatNobodyElseAsksFor(t *testing.T) {
	g := consumers("a", "b", "c")
	uniform, ranged := "uniform", "range"
	e := evidenceOf(g)
	same(t, "nobody asks", found(t, e), "")
	g.Members[2].Assignor, g.Assignor = &ranged, "range"
	same(t, "one decides for all", found(t, e), "assignor-nobody-else-asks-for: c at 10.0.0.1 asks for the range assignor, and no one else asks for any: so one member decides for all 3.")
	g.Members[0].Assignor, g.Members[1].Assignor, g.Assignor = &uniform, &uniform, "uniform"
	same(t, "one is outvoted", found(t, e), "assignor-nobody-else-asks-for: c at 10.0.0.1 asks for the range assignor, and no one else does: there are more votes for uniform, which the group of 3 uses.")
	g.Members[1].Assignor = nil
	same(t, "a tie", found(t, e), "assignor-nobody-else-asks-for: c at 10.0.0.1 asks for the range assignor and a at 10.0.0.1 asks for the uniform assignor, each alone: among as many votes for each the broker's first wins, and the group of 3 uses uniform.")
	g.Members[1].Assignor = &uniform
	g.Members[2].Assignor = &uniform
	same(t, "all ask for the same", found(t, e), "")
	one := consumers("a")
	one.Members[0].Assignor = &ranged
	same(t, "one alone", found(t, evidenceOf(one)), "")
}

func TestMembersOnTheClassicProtocol(t *testing.T) {
	g := consumers("a", "b", "c")
	g.Members[1].Classic = true
	same(t, "what is found", found(t, evidenceOf(g)), "mixed-protocols: 1 of 3 members still uses the classic protocol: b at 10.0.0.1. The group works, but it must join again with each new epoch, and it stops reading meanwhile if its assignor is not cooperative.")
	g.Type = groupview.TypeClassic
	g.Assignor = "range"
	same(t, "in a classic group", found(t, evidenceOf(g)), "")
}

func TestAStaticMemberThatIsAway(t *testing.T) {
	g := consumers("a", "b")
	away, instance := int32(epochAway), "worker-1"
	g.Members[1].Epoch, g.Members[1].Instance = &away, &instance
	same(t, "what is found", found(t, evidenceOf(g)), "static-member-away: Static member worker-1 at 10.0.0.1 has left for a while, as a restart does. No one reads its 1 partition until it is back or the session timeout is over.")
}

func TestAnEpochThatRisesAgainAndAgain(t *testing.T) {
	flap := func(n int, kinds ...journal.TriggerKind) (out []Entry) {
		for i := range n {
			out = append(out, consumerEntry(journal.KindEpoch, time.Duration(n-i)*time.Minute, trigger(kinds[i%len(kinds)], "a")))
		}
		return out
	}
	g := consumers("a")
	same(t, "five times", found(t, evidenceOf(g, flap(flappingCount-1, journal.TriggerJoined)...)), "")
	e := evidenceOf(g, flap(flappingCount, journal.TriggerJoined, journal.TriggerLeft)...)
	same(t, "six times", found(t, e), "rebalance-storm: The group epoch rose 6 times between 11:54:00 UTC and 11:59:00 UTC (joins: 3, leaves: 3). a at 10.0.0.1 is behind 6 of them.")
	says(t, e.flapping()[0].Change, "group.instance.id")
	says(t, evidenceOf(g, flap(9, journal.TriggerNotRevoked)...).flapping()[0].Change, "members that are removed")
	says(t, evidenceOf(g, flap(9, journal.TriggerTopics)...).flapping()[0].Change, "topics and subscriptions that change")
	says(t, found(t, evidenceOf(nil, flap(9, journal.TriggerJoined)...)), "The group epoch rose 9 times")
	says(t, evidenceOf(nil, consumerEntry(journal.KindSettled, 0, trigger(journal.TriggerExpired, "a"))).heartbeatsMissed()[0].Change, "group.consumer.session.timeout.ms")
}

func TestATargetThatCannotBeStored(t *testing.T) {
	why := trigger(journal.TriggerTooLarge, "a")
	why.MaxBytes = 1 << 20
	refused := consumerEntry(journal.KindTarget, time.Minute, why)
	e := evidenceOf(consumers("a"), refused)
	same(t, "what is found", found(t, e), "assignment-too-large: What a-5f0c7d7e at 10.0.0.1 is to have in epoch 3 does not fit into a record (1.0 MiB, max.message.bytes of __consumer_offsets), so everybody keeps what they have.")
	e.Entries = append(e.Entries, consumerEntry(journal.KindSettled, time.Second, trigger(journal.TriggerJoined, "b")))
	same(t, "after the next epoch", found(t, e), "")
}

// What is said of other groups would be wrong of these: no one joins again, and there
// is no leader.
func TestFindingsOfConsumerGroupsSpeakOfThem(t *testing.T) {
	g := consumers("a", "b")
	g.Members[1].Assigned, g.Assignor = []groupview.Assigned{}, "range"
	says(t, evidenceOf(g).idleMembers()[0].Change, "group.remote.assignor=uniform")
	g.Assignor = "uniform"
	says(t, evidenceOf(g).idleMembers()[0].Change, "muster groups describe g")
	g.Partitions = []groupview.Partition{{Topic: "orders", Partition: 3}}
	says(t, evidenceOf(g).ownerless()[0].Change, "the next heartbeat of any member")
	g.State = groupview.Reconciling
	same(t, "what is found on the way", found(t, evidenceOf(g)), "")
}
