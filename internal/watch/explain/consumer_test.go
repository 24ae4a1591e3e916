package explain

import (
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
)

// consumerEntry is an entry of a consumer group.
func consumerEntry(kind journal.EntryKind, ago time.Duration, why ...journal.Trigger) Entry {
	return Entry{Entry: journal.Entry{
		Kind: kind, Type: journal.TypeConsumer, Time: at(ago), Started: at(ago), Generation: 3, TargetEpoch: 3, Protocol: "uniform",
		Triggers: why, TriggerN: len(why), Before: 1, After: 2, PartitionN: 4, MoveN: 2,
	}}
}

func trigger(kind journal.TriggerKind, name string) journal.Trigger {
	return journal.Trigger{Kind: kind, Who: who(name)}
}

// revokeOf is what a was told to give up for b.
func revokeOf() *journal.Revoke {
	return &journal.Revoke{
		Who: who("a"), Parts: []journal.Parts{{Topic: "orders", Partitions: []int32{2, 3}}}, PartN: 2, For: []journal.Who{who("b")}, ForN: 1,
		Timeout: 5 * time.Minute, Held: 5*time.Minute + time.Second,
	}
}

func TestWhyTheEpochRoseInWords(t *testing.T) {
	with := func(kind journal.TriggerKind, change func(*journal.Trigger)) journal.Trigger {
		out := trigger(kind, "a")
		change(&out)
		return out
	}
	gone := func(kind journal.TriggerKind) journal.Trigger {
		return with(kind, func(t *journal.Trigger) { t.Had, t.Silent = 2, 45*time.Second })
	}
	changes := func(c journal.Change) func(*journal.Trigger) { return func(t *journal.Trigger) { t.Change = &c } }
	added := journal.Change{TopicsAdded: []string{"u"}, TopicsAddedN: 1}
	topics := func(list ...journal.TopicChange) func(*journal.Trigger) {
		return func(t *journal.Trigger) {
			t.Who, t.Topics = journal.Who{}, &journal.TopicChanges{List: list, N: len(list)}
		}
	}
	const a = "a-5f0c7d7e at 10.0.0.1"
	for _, c := range []struct {
		why         journal.Trigger
		words, line string
	}{
		{trigger(journal.TriggerJoined, "a"), a + " joined.", "joined: " + a},
		{gone(journal.TriggerLeft), a + " left. It had 2 partitions.", "left: " + a},
		{gone(journal.TriggerRemoved), a + " was removed by an administrator. It had 2 partitions.", "removed: " + a + " by an administrator"},
		{gone(journal.TriggerExpired), a + " sent no heartbeat for 45s, the session timeout, and was removed. It had 2 partitions.", "expired: " + a + ", silent for 45s"},
		{
			with(journal.TriggerExpired, func(t *journal.Trigger) { t.Had, t.Silent, t.Revoke = 4, 45*time.Second, revokeOf() }),
			a + " sent no heartbeat for 45s, the session timeout, and was removed. It had 4 partitions. " + a + " had been told to give up orders-2 and orders-3, for which b-5f0c7d7e at 10.0.0.1 waited.",
			"expired: " + a + ", silent for 45s",
		},
		{
			with(journal.TriggerNotRevoked, func(t *journal.Trigger) { t.Had, t.Revoke = 4, revokeOf() }),
			a + " was told to give up orders-2 and orders-3, for which b-5f0c7d7e at 10.0.0.1 waited. It did not within 5m, its rebalance timeout, and was removed.",
			"not-revoked: " + a + ", held 2 partitions for 5m1s",
		},
		{trigger(journal.TriggerNotRevoked, "a"), a + " did not give up partitions within its rebalance timeout, and was removed.", "not-revoked: " + a},
		{with(journal.TriggerChanged, changes(added)), a + " changed what it subscribes to: now to u.", "changed: " + a + " (+u)"},
		{
			with(journal.TriggerChanged, changes(journal.Change{TopicsRemoved: []string{"t"}, TopicsRemovedN: 1, Regex: "o.*"})),
			a + " changed what it subscribes to: no longer to t, now to the regular expression o.*.", "changed: " + a + " (-t regex o.*)",
		},
		{with(journal.TriggerChanged, changes(journal.Change{Regex: "o.*", RegexBefore: "p.*"})), a + " changed what it subscribes to: to the regular expression o.* instead of p.*.", "changed: " + a + " (regex o.*)"},
		{with(journal.TriggerChanged, changes(journal.Change{RegexBefore: "p.*"})), a + " changed what it subscribes to: no longer to the regular expression p.*.", "changed: " + a + " (regex none)"},
		{with(journal.TriggerReplaced, changes(added)), "Static member " + a + " restarted, and changed what it subscribes to: now to u.", "replaced: " + a + " (+u)"},
		{with(journal.TriggerRegex, changes(journal.Change{Regex: "o.*", TopicsAdded: []string{"o1", "o2"}, TopicsAddedN: 2})), "The regular expression o.* of " + a + " was found to match o1 and o2.", "regex: " + a + " o.* (+o1 +o2)"},
		{with(journal.TriggerRegex, changes(journal.Change{Regex: "o.*", TopicsRemoved: []string{"o1"}, TopicsRemovedN: 1})), "The regular expression o.* of " + a + " no longer matches o1.", "regex: " + a + " o.* (-o1)"},
		{with(journal.TriggerRegex, changes(journal.Change{Regex: "o.*"})), "The regular expression o.* of " + a + " was found to match no topic.", "regex: " + a + " o.* (no topic)"},
		{with(journal.TriggerTopics, topics()), "Topics that members subscribe to are not what they were before the coordinator was loaded.", "topics"},
		{
			with(journal.TriggerTopics, topics(journal.TopicChange{Topic: "t", Kind: journal.TopicGrown, Before: 2, After: 4}, journal.TopicChange{Topic: "u", Kind: journal.TopicDeleted, Before: 1})),
			"Topics that members subscribe to changed: t now has 4 partitions instead of 2 and u was deleted.", "topics t grown u deleted",
		},
		{
			with(journal.TriggerTopics, topics(journal.TopicChange{Topic: "t", Kind: journal.TopicCreated, After: 1}, journal.TopicChange{Topic: "u", Kind: journal.TopicRecreated, Before: 1, After: 2})),
			"Topics that members subscribe to changed: t was created, with 1 partition and u was deleted and created again, with 2 partitions.", "topics t created u recreated",
		},
		{trigger(journal.TriggerConflict, "a"), "When the coordinator was loaded, two members seemed to have the same partition, which must not be. " + a + " was not as far on, and was removed.", "conflict: " + a},
		{journal.Trigger{Kind: journal.TriggerInitialized}, "The group got partitions that it had not read before.", "initialized"},
		{journal.Trigger{Kind: journal.TriggerResumed}, "The coordinator was loaded, after a restart or from another broker, while members were on their way to their partitions; they go on from where they were.", "resumed"},
	} {
		e := consumerEntry(journal.KindEpoch, 0, c.why)
		same(t, "the words", strings.Join(e.reasons(), " "), c.words)
		same(t, "the line", e.Line(), c.line)
	}
	two := consumerEntry(journal.KindEpoch, 0, gone(journal.TriggerLeft), gone(journal.TriggerLeft))
	same(t, "two that left", two.reasons()[0], "2 members left: "+a+" and "+a+". They had 4 partitions.")
	many := consumerEntry(journal.KindEpoch, 0, with(journal.TriggerRegex, changes(added)), with(journal.TriggerRegex, changes(added)), with(journal.TriggerRegex, changes(added)), with(journal.TriggerRegex, changes(added)))
	says(t, many.reasons()[0], "There were 1 more such events.")
}

// Members of a share group share partitions, so none has an owner, new or old.
func TestTheStoryOfAShareGroupHasNoOwners(t *testing.T) {
	settled := consumerEntry(journal.KindSettled, 0, journal.Trigger{Kind: journal.TriggerInitialized})
	settled.Type, settled.Started, settled.Before, settled.After, settled.MoveN, settled.PartitionN = journal.TypeShare, settled.Time, 2, 2, 3, 6
	story := evidenceOf(stableGroup(), settled).Explain(0).Rebalances[0].Text
	same(t, "the story", strings.Join(story, " "), "The group got partitions that it had not read before. That was done at once. "+
		"The group still has 2 members; the assignment of 3 of 6 partitions is another one.")
}

func TestTheStoryOfAConsumerGroup(t *testing.T) {
	epoch := consumerEntry(journal.KindEpoch, 20*time.Second, trigger(journal.TriggerJoined, "b"))
	target := consumerEntry(journal.KindTarget, 20*time.Second)
	target.Shares = []journal.Share{{Who: who("a"), Before: 4, After: 2}, {Who: who("b"), Before: 0, After: 2}}
	target.ShareN, target.Revokes, target.RevokeN, target.ProtocolBefore = 2, []journal.Revoke{*revokeOf()}, 1, "range"
	settled := consumerEntry(journal.KindSettled, 8*time.Second, trigger(journal.TriggerJoined, "b"))
	settled.Started = at(20 * time.Second)
	settled.Held, settled.Slowest = []journal.Late{{Who: who("a"), Waited: 11 * time.Second}}, []journal.Late{{Who: who("b"), Waited: 12 * time.Second}}
	earlier := consumerEntry(journal.KindTarget, time.Minute) // Of another rebalance.
	earlier.Shares = []journal.Share{{Who: who("z"), Before: 1, After: 2}}
	x := evidenceOf(stableGroup(), earlier, epoch, target, settled).Explain(0)
	r := x.Rebalances[0]
	same(t, "the type", r.Type, "consumer")
	same(t, "the events", x.EventCount, 0)
	same(t, "the story", strings.Join(r.Text, " "), "b-5f0c7d7e at 10.0.0.1 joined. "+
		"It took 12s until every member had the partitions that it was to have; a-5f0c7d7e at 10.0.0.1 took longest to give up its own, 11s. "+
		"1 member became 2; 2 of 4 partitions have a new owner. "+
		"Partitions of each member before and after: a-5f0c7d7e at 10.0.0.1 4 → 2 and b-5f0c7d7e at 10.0.0.1 0 → 2. "+
		"The assignor was range before, and is uniform now, by the votes of the members.")
	same(t, "the target in a line", target.Line(), "a-5f0c7d7e at 10.0.0.1 4→2; b-5f0c7d7e at 10.0.0.1 0→2; a-5f0c7d7e at 10.0.0.1 must give up 2 partitions for b-5f0c7d7e at 10.0.0.1")
	same(t, "the end in a line", settled.Line(), "joined: b-5f0c7d7e at 10.0.0.1; a-5f0c7d7e at 10.0.0.1 gave up partitions after 11s")
	same(t, "what history shows", len(WithoutStarts([]Entry{epoch, target, settled})), 1)
	same(t, "what history shows of one under way", len(WithoutStarts([]Entry{settled, consumerEntry(journal.KindEpoch, 0), consumerEntry(journal.KindTarget, 0)})), 3)

	// It was made again when a was fenced, and a has nothing any more.
	again := consumerEntry(journal.KindTarget, 9*time.Second)
	again.Shares, again.ShareN = []journal.Share{{Who: who("b"), Before: 0, After: 4}}, 1
	settled.Triggers = append(settled.Triggers, trigger(journal.TriggerNotRevoked, "a"))
	settled.Held = nil
	text := strings.Join(evidenceOf(nil, epoch, target, again, settled).Explain(0).Rebalances[0].Text, " ")
	says(t, text, "before and after: a-5f0c7d7e at 10.0.0.1 4 → gone and b-5f0c7d7e at 10.0.0.1 0 → 4.", "it was to have; the last was b-5f0c7d7e at 10.0.0.1.")
	settled.Started = settled.Time
	says(t, strings.Join(evidenceOf(nil, settled).Explain(0).Rebalances[0].Text, " "), "That was done at once.")
}

func TestMovesBetweenProtocolsInWords(t *testing.T) {
	by := who("a")
	for kind, want := range map[journal.EntryKind]string{
		journal.KindUpgraded:   "The group moved from the classic to the consumer protocol when a-5f0c7d7e at 10.0.0.1 joined with it; its 3 members went on with the partitions that they had.",
		journal.KindDowngraded: "The group moved back from the consumer to the classic protocol, because the last member that used the former is gone (a-5f0c7d7e at 10.0.0.1); the others join again.",
		journal.KindLoaded:     "The group's coordinator was loaded, after a restart or from another broker: group epoch 3 goes on with 2 members, each from where it was.",
	} {
		e := consumerEntry(kind, 0)
		e.By, e.Before = &by, 3
		x := evidenceOf(nil, e).Explain(0)
		same(t, string(kind), x.Events[0].Text, want)
	}
}

// reconciling is a group in which a has not given up what b waits for.
func reconciling() *groupview.Group {
	old, now := int32(2), int32(3)
	since, until, heard, session := at(20*time.Second), at(-40*time.Second), at(time.Second), at(-44*time.Second)
	parts := func(list ...int32) []groupview.Assigned {
		return []groupview.Assigned{{Topic: "orders", Partitions: list}}
	}
	return &groupview.Group{
		Name: "g", Type: groupview.TypeConsumer, State: groupview.Reconciling, ProtocolType: groupview.Consumer, Assignor: "uniform", Epoch: &now, TargetEpoch: &now,
		Members: []groupview.Member{
			{ID: "a", ClientID: "a", Host: "10.0.0.1", Topics: []string{"orders"}, Epoch: &old, Assigned: parts(0), Target: parts(0), Revoking: parts(2, 3), Since: &since, Until: &until, Heard: &heard, Session: &session},
			{ID: "b", ClientID: "b", Host: "10.0.0.2", Topics: []string{"orders"}, Epoch: &now, Assigned: parts(), Target: parts(2, 3), Waits: true, Since: &since},
			{ID: "c", ClientID: "c", Host: "10.0.0.3", Topics: []string{"orders"}, Epoch: &now, Assigned: parts(1), Target: parts(1)},
		},
	}
}

const aHoldsUpB = "a at 10.0.0.1 has not given up orders-2 and orders-3, which b at 10.0.0.2 waits for. It was told to do so 20s ago."

func TestWhoHoldsUpWhom(t *testing.T) {
	g := reconciling()
	entries := []Entry{
		consumerEntry(journal.KindSettled, time.Minute, trigger(journal.TriggerJoined, "a")),
		consumerEntry(journal.KindEpoch, 25*time.Second, trigger(journal.TriggerJoined, "b")), consumerEntry(journal.KindTarget, 25*time.Second),
		consumerEntry(journal.KindEpoch, 5*time.Second, trigger(journal.TriggerLeft, "d")),
	}
	e := evidenceOf(g, entries...)
	told := func() string { return strings.Join(e.Explain(0).UnderWay.Text, " ") }
	x := e.Explain(0)
	same(t, "the group", x.Text, "Group g is Reconciling: 1 of its 3 members has all the partitions that the uniform assignor gave it; the others are on their way. Its total lag is -.")
	if x.Type != "consumer" || !x.UnderWay.Started.Equal(at(25*time.Second)) {
		t.Errorf("it is %s, under way since %s", x.Type, x.UnderWay.Started)
	}
	same(t, "who holds up whom", told(), "b-5f0c7d7e at 10.0.0.1 joined. d-5f0c7d7e at 10.0.0.1 left. "+aHoldsUpB+
		" If nothing changes it is removed from the group at 12:00:40 UTC (in 40s), when its rebalance timeout ends, and the others get its partitions.")

	// What a may have back no one else waits for.
	g.Members[0].Target[0].Partitions, g.Members[1].Target[0].Partitions = []int32{0, 2, 3}, nil
	says(t, told(), "a at 10.0.0.1 has not given up orders-2 and orders-3. It was told")
	g.Members[0].Target[0].Partitions, g.Members[1].Target[0].Partitions = []int32{0}, []int32{2, 3}

	a := &g.Members[0]
	heard, session := at(12*time.Second), at(-33*time.Second)
	a.Heard, a.Session = &heard, &session
	says(t, told(), "It has not sent a heartbeat for 12s either. If nothing changes it is removed from the group at 12:00:33 UTC (in 33s), when the session timeout ends")
	past := at(0)
	a.Until = &past
	says(t, told(), "Its rebalance timeout is over: it is removed from the group now")
	a.Until = nil
	says(t, told(), "When its rebalance timeout ends, it is removed from the group.")

	a.Revoking, a.Assigned = nil, []groupview.Assigned{{Topic: "orders", Partitions: []int32{0, 2, 3}}}
	says(t, told(), "a at 10.0.0.1 still has orders-2 and orders-3, which b at 10.0.0.2 waits for. It is told to give them up with its next heartbeat.")
	away := int32(epochAway)
	a.Epoch = &away
	says(t, told(), "a at 10.0.0.1, a static member, has left for a while and keeps orders-2 and orders-3, which b at 10.0.0.2 waits for; if it does not come back")
	old := int32(2)
	a.Epoch, a.Assigned = &old, []groupview.Assigned{{Topic: "orders", Partitions: []int32{0}}}
	says(t, told(), "left. a at 10.0.0.1 has not been told yet, which the next heartbeat does.")
	g.State = groupview.Assigning
	says(t, e.Explain(0).Text, "Group g is Assigning: its epoch has risen, and the broker is about to share out the partitions among its 3 members anew.")
	g.Members = g.Members[:2]
	g.State = groupview.Reconciling
	says(t, e.Explain(0).Text, "its 2 members are on the way to the partitions that the uniform assignor gave them.")

	loaded := consumerEntry(journal.KindLoaded, 2*time.Second, journal.Trigger{Kind: journal.TriggerResumed})
	loaded.State = groupview.Reconciling
	e.Entries = append(e.Entries, loaded)
	says(t, told(), "The coordinator was loaded")
	e.Entries[len(e.Entries)-1].State = groupview.Stable
	if u := e.Explain(0).UnderWay; u != nil {
		t.Errorf("under way is %+v", u)
	}
}
