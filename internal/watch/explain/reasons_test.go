package explain

import (
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
)

func TestChangesInWords(t *testing.T) {
	for _, c := range []struct {
		change   *journal.Change
		assignor string
		words    string
		short    string
	}{
		{nil, "range", "with a changed subscription", ""},
		{nil, "cooperative-sticky", "with a changed subscription or, as cooperative-sticky requires, after giving up partitions", ""},
		{&journal.Change{TopicsAdded: []string{"u", "v"}, TopicsAddedN: 2}, "range", "subscribed to u and v as well", " (+u +v)"},
		{&journal.Change{TopicsRemoved: []string{"t"}, TopicsRemovedN: 1}, "range", "no longer subscribed to t", " (-t)"},
		{&journal.Change{TopicsAdded: []string{"u"}, TopicsAddedN: 1, TopicsRemoved: []string{"t"}, TopicsRemovedN: 1, Other: true}, "range", "subscribed to u and no longer to t", " (+u -t)"},
		{&journal.Change{TopicsAdded: []string{"a", "b", "c", "d"}, TopicsAddedN: 9}, "range", "subscribed to a, b, c and 6 more as well", " (+a +b +c +d 5 more topics)"},
		{&journal.Change{Protocols: []string{"sticky", "range"}, ProtocolsBefore: []string{"range"}}, "range", "with the assignors sticky, range instead of range", " (assignors sticky,range)"},
		{&journal.Change{Owned: true}, "cooperative-sticky", "after giving up partitions, as cooperative-sticky requires", " (owned partitions)"},
		{&journal.Change{Owned: true, Other: true}, "range", "owning other partitions", " (owned partitions)"},
		{&journal.Change{Other: true}, "sticky", "with other data for its assignor", " (other data)"},
		{&journal.Change{Forgotten: true}, "range", "with assignors that the coordinator had forgotten when it was loaded", " (forgotten assignors)"},
	} {
		same(t, "the words", changeWords(c.change, c.assignor), c.words)
		same(t, "the line", changeLine(c.change), c.short)
	}
}

func TestChangesOfSeveralMembers(t *testing.T) {
	e := settledEntry(0, "", "")
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		change := &journal.Change{TopicsAdded: []string{"u"}, TopicsAddedN: 1}
		if i > 1 {
			change.TopicsAdded = []string{name}
		}
		e.Triggers = append(e.Triggers, journal.Trigger{Kind: journal.TriggerChanged, Who: journal.Who{Member: name}, Change: change})
	}
	e.TriggerN = 6
	same(t, "the reason", e.reasons()[0],
		"a and b joined again subscribed to u as well. c joined again subscribed to c as well. d joined again subscribed to d as well. 2 more members joined again with other changes.")
}

func TestEventsInWords(t *testing.T) {
	admin, b, holder := &journal.Who{ClientID: "ops", Host: "10.0.0.9"}, who("worker-7"), who("worker-8")
	b.Instance, b.ClientID, holder.Host, holder.ClientID = "worker-7", "", "10.0.0.2", "c"
	topics := []journal.TopicCount{{Topic: "t", Partitions: 3, Back: 2}, {Topic: "u", Partitions: 1, Forward: 1}}
	for _, c := range []struct {
		e           journal.Entry
		text, short string
	}{
		{
			journal.Entry{Kind: journal.KindLoaded, Generation: 5, After: 3},
			"The group's coordinator was loaded, after a restart or from another broker: generation 5 goes on with 3 members. A rebalance that was under way begins anew.", "",
		},
		{
			journal.Entry{Kind: journal.KindFenced, Triggers: []journal.Trigger{{Kind: journal.TriggerFenced, Who: b, Request: "Heartbeat", By: &holder}}},
			"Static member worker-7-5f0c7d7e at 10.0.0.1 was fenced: it still sent Heartbeat after worker-8-5f0c7d7e at 10.0.0.2 (client c) had taken its place.",
			"fenced: worker-7-5f0c7d7e at 10.0.0.1 sent Heartbeat, but worker-8-5f0c7d7e at 10.0.0.2 (client c) has its place",
		},
		{
			journal.Entry{Kind: journal.KindFenced, Triggers: []journal.Trigger{{Kind: journal.TriggerUnreleased, Who: journal.Who{Member: "m", Host: "10.0.0.1", Instance: "i"}, By: &holder}}},
			"m at 10.0.0.1 came with the group.instance.id i, and was refused: worker-8-5f0c7d7e at 10.0.0.2 (client c) has it and has not left.",
			"refused: m at 10.0.0.1 came with the instance id i, which worker-8-5f0c7d7e at 10.0.0.2 (client c) has and has not left",
		},
		{
			journal.Entry{Kind: journal.KindFenced, Triggers: []journal.Trigger{{Kind: journal.TriggerFenced, Who: b, Request: "JoinGroup", Parked: true}}},
			"Static member worker-7-5f0c7d7e at 10.0.0.1 was fenced while it waited in JoinGroup: another process took its place.",
			"fenced: worker-7-5f0c7d7e at 10.0.0.1 sent JoinGroup, but another process has its place",
		},
		{
			journal.Entry{Kind: journal.KindReplaced, Triggers: []journal.Trigger{{Kind: journal.TriggerReplaced, Who: b, Change: &journal.Change{TopicsAdded: []string{"u"}, TopicsAddedN: 1}}}},
			"Static member worker-7 at 10.0.0.1 restarted, and came back subscribed to u as well. By Kafka's rule it took its old place without a rebalance, so that its partitions stayed as they were.",
			"replaced: worker-7 at 10.0.0.1 (+u)",
		},
		{
			journal.Entry{Kind: journal.KindOffsetsReset, Cause: journal.CauseRequest, By: admin, Topics: topics, TopicN: 2, PartitionN: 4},
			"Client ops at 10.0.0.9, which is not a member, set the committed offsets of 4 partitions of t and u while the group was empty: 2 back, so that records are read again, 1 forward, so that records are skipped.",
			"reset by client ops at 10.0.0.9; t: 3 partitions, 2 back; u: 1 partition, 1 forward",
		},
		{
			journal.Entry{Kind: journal.KindOffsetsReset, Cause: journal.CauseRequest, By: &journal.Who{}, Topics: topics[:1], TopicN: 9, PartitionN: 1},
			"A client, which is not a member, set the committed offsets of 1 partition of t", "reset by a client; t: 3 partitions, 2 back",
		},
		{
			journal.Entry{Kind: journal.KindOffsetsReset, Cause: journal.CauseRequest, By: admin, Topics: topics, TopicN: 2, PartitionN: 4, Reset: &journal.Reset{Plan: "r1", Method: journal.ResetWithhold}},
			"Client ops at 10.0.0.9 moved the committed offsets of 4 partitions of t and u while the group ran (reset r1): 2 back, so that records are read again, 1 forward, so that records are skipped.",
			"reset r1 by client ops at 10.0.0.9; t: 3 partitions, 2 back; u: 1 partition, 1 forward",
		},
		{
			journal.Entry{Kind: journal.KindResetStarted, By: admin, PartitionN: 1, Reset: &journal.Reset{Plan: "r1", Method: journal.ResetRemove}},
			"Client ops at 10.0.0.9 began to move 1 committed offset while the group ran (reset r1): members that have the partitions are removed, and join again as new ones. If no entry says that it was applied, it was not.",
			"reset r1 begun by client ops at 10.0.0.9",
		},
		{
			journal.Entry{Kind: journal.KindResetDropped, By: admin, PartitionN: 2, Reset: &journal.Reset{Plan: "r1", Method: journal.ResetRebalance, Reason: "why"}},
			"Reset r1 of 2 committed offsets by client ops at 10.0.0.9 was not applied: why.",
			"reset r1 not applied: why; asked for by client ops at 10.0.0.9",
		},
		{
			journal.Entry{Kind: journal.KindOffsetsDeleted, Cause: journal.CauseRequest, By: admin, Topics: topics[:1], TopicN: 1, PartitionN: 3},
			"Client ops at 10.0.0.9 deleted the committed offsets of 3 partitions of t.", "deleted by client ops at 10.0.0.9; t: 3 partitions, 2 back",
		},
		{
			journal.Entry{Kind: journal.KindOffsetsDeleted, Cause: journal.CauseTopics, Topics: []journal.TopicCount{{Topic: "t", Partitions: 3}}, TopicN: 1, PartitionN: 3},
			"The committed offsets of 3 partitions of t are gone with their topics.", "deleted with its topic; t: 3 partitions",
		},
		{
			journal.Entry{Kind: journal.KindOffsetsExpired, Cause: journal.CauseExpired, Topics: []journal.TopicCount{{Topic: "a", Partitions: 1}, {Topic: "b", Partitions: 1}, {Topic: "c", Partitions: 1}, {Topic: "d", Partitions: 1}}, TopicN: 40, PartitionN: 40},
			"The committed offsets of 40 partitions of a, b, c and 37 more expired (offsets.retention.minutes).", "expired; a: 1 partition; b: 1 partition; c: 1 partition; 37 more topics",
		},
		{
			journal.Entry{Kind: journal.KindDeleted, Cause: journal.CauseRequest, By: admin, Topics: []journal.TopicCount{{Topic: "t", Partitions: 3}}, TopicN: 1, PartitionN: 3},
			"Client ops at 10.0.0.9 deleted the group, with the committed offsets of 3 partitions of t.", "deleted by client ops at 10.0.0.9; t: 3 partitions",
		},
		{
			journal.Entry{Kind: journal.KindSuspected, Suspects: []journal.Suspect{{Topic: "t", Partition: 3, Committed: 7, Deaths: 3}}, SuspectN: 1},
			"Members died one after the other with the same offset committed, in t-3 at offset 7 (3 members): a record from there on may kill whoever reads it.",
			"Members died one after the other with the same offset committed, in t-3 at offset 7 (3 members): a record from there on may kill whoever reads it.",
		},
		{journal.Entry{Kind: journal.KindDeleted, Cause: journal.CauseExpired}, "The group was deleted, since it had neither members nor committed offsets any more.", "expired"},
		{journal.Entry{Kind: journal.KindDeleted, Cause: journal.CauseTopics}, "The group was deleted, because its topics were deleted and it had nothing but their offsets.", "deleted with their topics"},
		{journal.Entry{Kind: journal.KindDeleted}, "The group was deleted.", ""},
		{journal.Entry{Kind: "eclipse"}, "The journal has an entry that this version of muster has no words for (eclipse).", ""},
	} {
		e := Entry{Entry: c.e}
		if !e.isEvent() {
			t.Errorf("%s is no event", c.e.Kind)
		}
		if got := e.sentence(); !strings.HasPrefix(got, c.text) || !strings.HasSuffix(got, ".") {
			t.Errorf("the sentence is\n%s\nnot\n%s", got, c.text)
		}
		same(t, "the line", e.Line(), c.short)
	}
	for _, e := range []journal.Entry{{Kind: journal.KindStarted}, {Kind: journal.KindSettled}, {Kind: journal.KindReplaced, Triggers: []journal.Trigger{{}}}} {
		if (&Entry{Entry: e}).isEvent() {
			t.Errorf("%s is told elsewhere", e.Kind)
		}
	}
}

func TestStaticFindings(t *testing.T) {
	old, holder := who("worker-7"), who("worker-8")
	old.Instance = "worker-7"
	fenced := journal.Entry{Kind: journal.KindFenced, Time: at(time.Minute), Triggers: []journal.Trigger{{Kind: journal.TriggerFenced, Who: old, Request: "Heartbeat", By: &holder}}}
	parked := journal.Entry{Kind: journal.KindFenced, Time: at(time.Minute), Triggers: []journal.Trigger{{Kind: journal.TriggerFenced, Who: old, Request: "JoinGroup", By: &holder, Parked: true}}}
	back := journal.Entry{Kind: journal.KindReplaced, Time: at(time.Minute), Triggers: []journal.Trigger{{Kind: journal.TriggerReplaced, Who: old, Change: &journal.Change{TopicsAdded: []string{"users"}, TopicsAddedN: 1}}}}
	same7 := journal.Entry{Kind: journal.KindReplaced, Time: at(time.Second), Triggers: []journal.Trigger{{Kind: journal.TriggerReplaced, Who: old}}}
	instance := "worker-7"
	member := memberOf("worker-7", []int32{0, 1, 2, 3}, "orders")
	member.Instance, member.ID = &instance, old.Member
	group := stableGroup(member)

	if got := findings(evidenceOf(nil, Entry{Entry: parked})); len(got) != 0 {
		t.Errorf("of a process that may have died: %+v", got)
	}
	got := findings(evidenceOf(nil, Entry{Entry: fenced}))
	if len(got) != 1 || got[0].ID != "instance-id-taken-twice" {
		t.Fatalf("found %+v", got)
	}
	says(t, got[0].Text, "Two processes have the group.instance.id worker-7, or had for a while: worker-7-5f0c7d7e at 10.0.0.1 (client worker-7) still sent Heartbeat 1m ago, after worker-8-5f0c7d7e at 10.0.0.1 (client worker-8) had taken its place.")

	unreleased := fenced
	unreleased.Triggers = []journal.Trigger{{Kind: journal.TriggerUnreleased, Who: old, Request: "ConsumerGroupHeartbeat", By: &holder}}
	if got = findings(evidenceOf(nil, Entry{Entry: unreleased})); len(got) != 1 || got[0].ID != "instance-id-taken-twice" {
		t.Fatalf("found %+v", got)
	}
	says(t, got[0].Text, "Two processes have the group.instance.id worker-7: worker-7-5f0c7d7e at 10.0.0.1 (client worker-7) came with it 1m ago, while worker-8-5f0c7d7e at 10.0.0.1 (client worker-8) had it. It was told UNRELEASED_INSTANCE_ID")

	got = findings(evidenceOf(group, Entry{Entry: back}))
	if len(got) != 1 || got[0].ID != "subscription-not-taken-up" {
		t.Fatalf("found %+v", got)
	}
	says(t, got[0].Text, "Static member worker-7 at 10.0.0.1 restarted and came back subscribed to users as well.", "it still has the partitions that it had before")
	says(t, got[0].Change, "muster groups members remove g --instance-id worker-7;")
	for name, e := range map[string]*Evidence{
		"taken up":              evidenceOf(group, Entry{Entry: back}, settledEntry(time.Second, journal.TriggerLeader, "a")),
		"back as it was":        evidenceOf(group, Entry{Entry: back}, Entry{Entry: same7}),
		"not a member any more": evidenceOf(stableGroup(memberOf("b", []int32{0, 1, 2, 3}, "orders")), Entry{Entry: back}),
		"no group any more":     evidenceOf(nil, Entry{Entry: back}),
	} {
		if got := e.notTakenUp(); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
