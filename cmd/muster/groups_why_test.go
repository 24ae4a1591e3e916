package main

import (
	"strings"
	"testing"
	"time"
)

func TestChangesInWords(t *testing.T) {
	for _, c := range []struct {
		change   *journalChange
		assignor string
		words    string
		short    string
	}{
		{nil, "range", "with a changed subscription", ""},
		{nil, "cooperative-sticky", "with a changed subscription or, as cooperative-sticky has it, after giving up partitions", ""},
		{&journalChange{TopicsAdded: []string{"u", "v"}, TopicsAddedN: 2}, "range", "subscribed to u and v as well", " (+u +v)"},
		{&journalChange{TopicsRemoved: []string{"t"}, TopicsRemovedN: 1}, "range", "no longer subscribed to t", " (-t)"},
		{&journalChange{TopicsAdded: []string{"u"}, TopicsAddedN: 1, TopicsRemoved: []string{"t"}, TopicsRemovedN: 1, Other: true}, "range", "subscribed to u and no longer to t", " (+u -t)"},
		{&journalChange{TopicsAdded: []string{"a", "b", "c", "d"}, TopicsAddedN: 9}, "range", "subscribed to a, b, c and 6 more as well", " (+a +b +c +d 5 more topics)"},
		{&journalChange{Protocols: []string{"sticky", "range"}, ProtocolsBefore: []string{"range"}}, "range", "with the assignors sticky, range instead of range", " (assignors sticky,range)"},
		{&journalChange{Owned: true}, "cooperative-sticky", "after giving up partitions, as cooperative-sticky has it", " (owned partitions)"},
		{&journalChange{Owned: true, Other: true}, "range", "owning other partitions", " (owned partitions)"},
		{&journalChange{Other: true}, "sticky", "with other data for its assignor", " (other data)"},
		{&journalChange{Forgotten: true}, "range", "with assignors that the coordinator had forgotten when it was loaded", " (forgotten assignors)"},
	} {
		same(t, "the words", c.change.words(c.assignor), c.words)
		same(t, "the line", c.change.short(), c.short)
	}
}

func TestChangesOfSeveralMembers(t *testing.T) {
	e := settledEntry(0, "", "")
	for i, name := range []string{"a", "b", "c", "d", "e", "f"} {
		change := &journalChange{TopicsAdded: []string{"u"}, TopicsAddedN: 1}
		if i > 1 {
			change.TopicsAdded = []string{name}
		}
		e.Triggers = append(e.Triggers, journalTrigger{Kind: whyChanged, journalWho: journalWho{Member: name}, Change: change})
	}
	e.TriggerN = 6
	same(t, "the reason", e.reasons()[0],
		"a and b joined again subscribed to u as well. c joined again subscribed to c as well. d joined again subscribed to d as well. 2 more members joined again with other changes.")
}

func TestEventsInWords(t *testing.T) {
	admin, b, holder := &journalWho{ClientID: "ops", Host: "10.0.0.9"}, who("worker-7"), who("worker-8")
	b.Instance, b.ClientID, holder.Host, holder.ClientID = "worker-7", "", "10.0.0.2", "c"
	topics := []topicCount{{"t", 3, 2, 0}, {"u", 1, 0, 1}}
	for _, c := range []struct {
		e           journalEntry
		text, short string
	}{
		{
			journalEntry{Kind: entryLoaded, Generation: 5, After: 3},
			"The group's coordinator was loaded, after a restart or from another broker: generation 5 goes on with 3 members, without a rebalance. One that was under way is void.", "",
		},
		{
			journalEntry{Kind: entryFenced, Triggers: []journalTrigger{{Kind: whyFenced, journalWho: b, Request: "Heartbeat", By: &holder}}},
			"Static member worker-7-5f0c7d7e at 10.0.0.1 was fenced: it still sent Heartbeat after worker-8-5f0c7d7e at 10.0.0.2 (client c) had taken its place.",
			"fenced: worker-7-5f0c7d7e at 10.0.0.1 sent Heartbeat, but its place has worker-8-5f0c7d7e at 10.0.0.2 (client c)",
		},
		{
			journalEntry{Kind: entryFenced, Triggers: []journalTrigger{{Kind: whyFenced, journalWho: b, Request: "JoinGroup", Parked: true}}},
			"Static member worker-7-5f0c7d7e at 10.0.0.1 was fenced while it waited in JoinGroup: another process took its place.",
			"fenced: worker-7-5f0c7d7e at 10.0.0.1 sent JoinGroup, but its place has another process",
		},
		{
			journalEntry{Kind: entryReplaced, Triggers: []journalTrigger{{Kind: whyReplaced, journalWho: b, Change: &journalChange{TopicsAdded: []string{"u"}, TopicsAddedN: 1}}}},
			"Static member worker-7 at 10.0.0.1 restarted, and came back subscribed to u as well. By Kafka's rule it took its old place without a rebalance, so that its partitions stayed as they were.",
			"replaced: worker-7 at 10.0.0.1 (+u)",
		},
		{
			journalEntry{Kind: entryOffsetsReset, Cause: causeRequest, By: admin, Topics: topics, TopicN: 2, PartitionN: 4},
			"Client ops at 10.0.0.9, no member, set the committed offsets of 4 partitions of t and u while the group was empty: 2 back, so that records are read again, 1 forward, so that records are skipped.",
			"reset by client ops at 10.0.0.9; t: 3 partitions, 2 back; u: 1 partition, 1 forward",
		},
		{
			journalEntry{Kind: entryOffsetsReset, Cause: causeRequest, By: &journalWho{}, Topics: topics[:1], TopicN: 9, PartitionN: 1},
			"A client, no member, set the committed offsets of 1 partition of t", "reset by a client; t: 3 partitions, 2 back",
		},
		{
			journalEntry{Kind: entryOffsetsDeleted, Cause: causeRequest, By: admin, Topics: topics[:1], TopicN: 1, PartitionN: 3},
			"Client ops at 10.0.0.9 deleted the committed offsets of 3 partitions of t.", "deleted by client ops at 10.0.0.9; t: 3 partitions, 2 back",
		},
		{
			journalEntry{Kind: entryOffsetsDeleted, Cause: causeTopics, Topics: []topicCount{{Topic: "t", Partitions: 3}}, TopicN: 1, PartitionN: 3},
			"The committed offsets of 3 partitions of t are gone with their topics.", "deleted with its topic; t: 3 partitions",
		},
		{
			journalEntry{Kind: entryOffsetsExpired, Cause: causeExpired, Topics: []topicCount{{Topic: "a", Partitions: 1}, {Topic: "b", Partitions: 1}, {Topic: "c", Partitions: 1}, {Topic: "d", Partitions: 1}}, TopicN: 40, PartitionN: 40},
			"The committed offsets of 40 partitions of a, b, c and 37 more expired (offsets.retention.minutes).", "expired; a: 1 partition; b: 1 partition; c: 1 partition; 37 more topics",
		},
		{
			journalEntry{Kind: entryDeleted, Cause: causeRequest, By: admin, Topics: []topicCount{{Topic: "t", Partitions: 3}}, TopicN: 1, PartitionN: 3},
			"Client ops at 10.0.0.9 deleted the group, with the committed offsets of 3 partitions of t.", "deleted by client ops at 10.0.0.9; t: 3 partitions",
		},
		{journalEntry{Kind: entryDeleted, Cause: causeExpired}, "The group was deleted, since it had neither members nor committed offsets any more.", "expired"},
		{journalEntry{Kind: entryDeleted, Cause: causeTopics}, "The group was deleted, since its topics were and it had nothing but their offsets.", "deleted with their topics"},
		{journalEntry{Kind: entryDeleted}, "The group was deleted.", ""},
		{journalEntry{Kind: "eclipse"}, "The journal has an entry that this version of muster has no words for (eclipse).", ""},
	} {
		if !c.e.isEvent() {
			t.Errorf("%s is no event", c.e.Kind)
		}
		if got := c.e.sentence(); !strings.HasPrefix(got, c.text) || !strings.HasSuffix(got, ".") {
			t.Errorf("the sentence is\n%s\nnot\n%s", got, c.text)
		}
		same(t, "the line", c.e.short(), c.short)
	}
	for _, e := range []journalEntry{{Kind: entryStarted}, {Kind: entrySettled}, {Kind: entryReplaced, Triggers: []journalTrigger{{}}}} {
		if e.isEvent() {
			t.Errorf("%s is told elsewhere", e.Kind)
		}
	}
}

func TestStaticFindings(t *testing.T) {
	old, holder := who("worker-7"), who("worker-8")
	old.Instance = "worker-7"
	fenced := journalEntry{Kind: entryFenced, Time: at(time.Minute), Triggers: []journalTrigger{{Kind: whyFenced, journalWho: old, Request: "Heartbeat", By: &holder}}}
	parked := journalEntry{Kind: entryFenced, Time: at(time.Minute), Triggers: []journalTrigger{{Kind: whyFenced, journalWho: old, Request: "JoinGroup", By: &holder, Parked: true}}}
	back := journalEntry{Kind: entryReplaced, Time: at(time.Minute), Triggers: []journalTrigger{{Kind: whyReplaced, journalWho: old, Change: &journalChange{TopicsAdded: []string{"users"}, TopicsAddedN: 1}}}}
	same7 := journalEntry{Kind: entryReplaced, Time: at(time.Second), Triggers: []journalTrigger{{Kind: whyReplaced, journalWho: old}}}
	instance := "worker-7"
	member := memberOf("worker-7", []int32{0, 1, 2, 3}, "orders")
	member.Instance, member.Member = &instance, old.Member
	group := stableGroup(member)

	if got := evidenceOf(nil, parked).findings(); len(got) != 0 {
		t.Errorf("of a process that may have died: %+v", got)
	}
	got := evidenceOf(nil, fenced).findings()
	if len(got) != 1 || got[0].ID != "instance-id-taken-twice" {
		t.Fatalf("found %+v", got)
	}
	says(t, got[0].Text, "Two processes have the group.instance.id worker-7, or had for a while: worker-7-5f0c7d7e at 10.0.0.1 (client worker-7) still sent Heartbeat 1m ago, after worker-8-5f0c7d7e at 10.0.0.1 (client worker-8) had taken its place.")

	got = evidenceOf(group, back).findings()
	if len(got) != 1 || got[0].ID != "subscription-not-taken-up" {
		t.Fatalf("found %+v", got)
	}
	says(t, got[0].Text, "Static member worker-7 at 10.0.0.1 restarted and came back subscribed to users as well.", "it still has the partitions that it had before")
	says(t, got[0].Change, "muster groups members remove g --instance-id worker-7;")
	for name, e := range map[string]*evidence{
		"taken up":              evidenceOf(group, back, settledEntry(time.Second, whyLeader, "a")),
		"back as it was":        evidenceOf(group, back, same7),
		"not a member any more": evidenceOf(stableGroup(memberOf("b", []int32{0, 1, 2, 3}, "orders")), back),
		"no group any more":     evidenceOf(nil, back),
	} {
		if got := e.notTakenUp(); len(got) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
