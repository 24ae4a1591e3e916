package explain

import (
	"fmt"
	"slices"
	"sort"

	"muster/internal/journal"
	"muster/internal/words"
)

//go:generate go test -run TestTheConsoleHasAllTriggers|TestAlertsAreThoseOfTheTable -rewrite .

// TriggerKind is all that there is to say of a kind of trigger. The console takes its mark
// and its words from here as well.
type TriggerKind struct {
	Kind journal.TriggerKind
	Mark string // In the time line of the console.
	Text string // What it was, in a few words; empty if no rebalance begins with it.

	gone bool // A member is gone.
	// noun counts them where there are very many, and nth is its place among the others.
	noun string
	nth  int

	reason func(*Entry, *triggers) string
	line   func(*triggers) string // In a line of a table; nil for its name and who it was.
}

// triggers are those of one kind in an entry.
type triggers struct {
	kind journal.TriggerKind
	all  []journal.Trigger
	who  string // They are.
}

// say makes a sentence of who it was and what they did.
func (t *triggers) say(single, many string) string {
	if len(t.all) == 1 {
		return t.who + " " + single + "."
	}
	return words.Plural(len(t.all), "member") + " " + many + ": " + t.who + "."
}

// each words them one by one.
func (t *triggers) each(word func(*journal.Trigger) string) string { return each1(t.all, word) }

// always is a reason that is worded the same in all groups.
func always(single, many string) func(*Entry, *triggers) string {
	return func(_ *Entry, t *triggers) string { return t.say(single, many) }
}

// oneByOne is a reason that each trigger is a sentence of.
func oneByOne(word func(*journal.Trigger) string) func(*Entry, *triggers) string {
	return func(_ *Entry, t *triggers) string { return t.each(word) }
}

// Triggers are all kinds of triggers.
var Triggers = []TriggerKind{
	{Kind: journal.TriggerJoined, Mark: "▲", Text: "a member joined", noun: "joins", nth: 1, reason: joined},
	{Kind: journal.TriggerLeft, Mark: "▼", Text: "a member left", gone: true, noun: "leaves", nth: 2, reason: left},
	{Kind: journal.TriggerRemoved, Mark: "▼", Text: "a member was removed", gone: true, noun: "removals", nth: 6, reason: removed, line: removedLine},
	{Kind: journal.TriggerExpired, Mark: "✕", Text: "a member sent no heartbeat", gone: true, noun: "missed heartbeats", nth: 3, reason: expired, line: expiredLine},
	{Kind: expiredNew, reason: expiredAtFirst, line: expiredLine},
	{Kind: journal.TriggerNoSync, Mark: "✕", Text: "a member never asked for its assignment", gone: true, reason: noSync},
	{
		Kind: journal.TriggerNoJoin, Mark: "✕", Text: "a member did not join again", gone: true,
		reason: always("uses the classic protocol, was told to join again, did not within its rebalance timeout, and was removed",
			"use the classic protocol, were told to join again, did not within their rebalance timeouts, and were removed"),
	},
	{
		Kind: journal.TriggerNotRevoked, Mark: "✕", Text: "a member did not let go of partitions", gone: true,
		noun: "partitions not given up in time", nth: 8, reason: oneByOne(notRevoked), line: consumerLine,
	},
	{Kind: journal.TriggerReplaced, Mark: "↻", Text: "a static member restarted", noun: "restarted static members", nth: 7, reason: replaced, line: changedLine},
	{Kind: journal.TriggerResumed, Mark: "↻", Text: "the coordinator was lost on the way", reason: resumed},
	{Kind: journal.TriggerChanged, Mark: "◆", Text: "a member joined again with a change", noun: "changed subscriptions", nth: 4, reason: changed, line: changedLine},
	{
		Kind: journal.TriggerLeader, Mark: "◆", Text: "the leader asked for it", noun: "new assignments by the leader", nth: 5,
		reason: func(_ *Entry, t *triggers) string {
			return t.who + ", the leader, joined again, as leaders do to assign partitions anew when their topics change."
		},
	},
	{Kind: journal.TriggerTopics, Mark: "■", Text: "topics changed", noun: "changed topics", nth: 9, reason: oneByOne(topicChanges), line: consumerLine},
	{
		Kind: journal.TriggerRegex, Mark: "■", Text: "a regular expression matches other topics",
		noun: "other matches of a regular expression", nth: 10, reason: oneByOne(regexMatches), line: consumerLine,
	},
	{Kind: journal.TriggerMaxSize, Text: "the group was too large", reason: maxSize},
	{
		Kind: journal.TriggerTooLarge, Text: "the assignment was too large",
		reason: func(_ *Entry, t *triggers) string {
			return fmt.Sprintf("The assignment by %s could not be stored: the group's record would have %d bytes, and %d fit (max.message.bytes of __consumer_offsets).",
				t.who, t.all[0].Bytes, t.all[0].MaxBytes)
		},
	},
	{
		Kind: journal.TriggerReset, Mark: "⇄", Text: "committed offsets were moved", noun: "resets", nth: 11,
		reason: func(_ *Entry, t *triggers) string {
			return "Committed offsets were to be moved by " + removers(t.all) + ", for which members had to rejoin."
		},
		line: func(t *triggers) string { return "reset by " + removers(t.all) },
	},
	{
		Kind: journal.TriggerInitialized, Mark: "■", Text: "the group got new partitions", line: consumerLine,
		reason: func(*Entry, *triggers) string {
			return "The group got partitions that it had not read before."
		},
	},
	{
		Kind: journal.TriggerConflict, Text: "two members had the same partition", gone: true,
		reason: func(_ *Entry, t *triggers) string {
			return "When the coordinator was loaded, two members seemed to have the same partition, which must not be. " + t.say("was not as far on, and was removed", "were not as far on, and were removed")
		},
	},
	{Kind: journal.TriggerFenced, line: func(t *triggers) string { return fencedLine(&t.all[0]) }, reason: unknown},
	{Kind: journal.TriggerUnreleased, line: func(t *triggers) string { return fencedLine(&t.all[0]) }, reason: unknown},
}

// kindOf returns what there is to say of triggers of a kind. A later version may have
// written others.
func kindOf(kind journal.TriggerKind) *TriggerKind {
	if i := slices.IndexFunc(Triggers, func(k TriggerKind) bool { return k.Kind == kind }); i >= 0 {
		return &Triggers[i]
	}
	return &TriggerKind{Kind: kind, reason: unknown}
}

func unknown(_ *Entry, t *triggers) string {
	return t.say("did something that this version of muster has no words for ("+string(t.kind)+")", "caused it ("+string(t.kind)+")")
}

// counts words how often each kind was, of those that are worth counting.
func counts(kinds map[journal.TriggerKind]int) (out []string) {
	sorted := slices.Clone(Triggers)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].nth < sorted[j].nth })
	for _, k := range sorted {
		if n := kinds[k.Kind]; n > 0 && k.nth > 0 {
			out = append(out, fmt.Sprintf("%s: %d", k.noun, n))
		}
	}
	return out
}

func joined(e *Entry, t *triggers) string {
	if e.Before == 0 {
		return t.say("joined the empty group", "joined the empty group")
	}
	return t.say("joined", "joined")
}

func left(e *Entry, t *triggers) string { return t.say("left", "left") + e.had(t) }

func removed(e *Entry, t *triggers) string {
	by := removers(t.all)
	return t.say("was removed by "+by, "were removed by "+by) + e.had(t)
}

func removedLine(t *triggers) string { return t.brief() + " by " + removers(t.all) }

func expired(e *Entry, t *triggers) string {
	if e.assigns() {
		return t.say(
			fmt.Sprintf("sent no heartbeat for %s, the session timeout, and was removed", words.Duration(t.all[0].Silent)),
			fmt.Sprintf("sent no heartbeat for %s, the session timeout, and were removed", timeouts(t.all))) + e.had(t)
	}
	return t.say(
		fmt.Sprintf("sent no heartbeat for %s, its session timeout, and was removed", words.Duration(t.all[0].Silent)),
		fmt.Sprintf("sent no heartbeat for their session timeout (%s) and were removed", timeouts(t.all)))
}

func expiredAtFirst(_ *Entry, t *triggers) string {
	return t.say(
		fmt.Sprintf("joined for the first time, was not heard of for %s while it waited for the others, and was removed", words.Duration(t.all[0].Silent)),
		fmt.Sprintf("joined for the first time, were not heard of (%s) while they waited for the others, and were removed", timeouts(t.all)))
}

func expiredLine(t *triggers) string { return t.brief() + ", silent for " + timeouts(t.all) }

func noSync(_ *Entry, t *triggers) string {
	if slices.ContainsFunc(t.all, func(t journal.Trigger) bool { return t.Instance != "" }) { // It may not even have joined.
		return t.say("did not ask for its assignment in time, and was removed", "did not ask for their assignment in time, and were removed")
	}
	return t.say("joined but never asked for its assignment, and was removed", "joined but never asked for their assignment, and were removed")
}

func replaced(e *Entry, t *triggers) string {
	if e.assigns() {
		return t.each(func(t *journal.Trigger) string {
			return "Static member " + name(t.Who) + " restarted, and changed what it subscribes to: " + subscribesTo(t.Change) + "."
		})
	}
	if len(t.all) == 1 && t.all[0].Change != nil {
		return t.who + " is a static member that restarted, came back " + changeWords(t.all[0].Change, e.Protocol) + ", and could not take its old place quietly."
	}
	return t.say("is a static member that restarted, and could not take its old place quietly", "are static members that restarted, and could not take their old places quietly")
}

func changed(e *Entry, t *triggers) string {
	if !e.assigns() {
		return e.changed(t.all)
	}
	return t.each(func(t *journal.Trigger) string {
		return name(t.Who) + " changed what it subscribes to: " + subscribesTo(t.Change) + "."
	})
}

func changedLine(t *triggers) string { return t.brief() + changeLine(t.all[0].Change) }

func resumed(e *Entry, _ *triggers) string {
	if e.assigns() {
		return "The coordinator was loaded, after a restart or from another broker, while members were on their way to their partitions; they go on from where they were."
	}
	return "The coordinator was lost in the middle of a rebalance, and the group begins it again."
}

func maxSize(_ *Entry, t *triggers) string {
	if t.who == "" { // As it was when the coordinator loaded it.
		return "The group had more members than group.max.size allows."
	}
	return t.say("was left out, since the group has group.max.size members", "were left out, since the group has group.max.size members")
}
