package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// byKind sorts the triggers by kind, and returns the kinds in the order in which
// they came.
func (e *journalEntry) byKind() (kinds []string, triggers map[string][]journalTrigger) {
	triggers = map[string][]journalTrigger{}
	for _, t := range e.Triggers {
		kind := t.Kind
		if kind == whyExpired && t.New {
			kind = whyNewGone
		}
		if triggers[kind] == nil {
			kinds = append(kinds, kind)
		}
		triggers[kind] = append(triggers[kind], t)
	}
	return kinds, triggers
}

// reasons words why a rebalance happened, a sentence for each kind of reason.
func (e *journalEntry) reasons() []string {
	kinds, triggers := e.byKind()
	var out []string
	for _, kind := range kinds {
		text := e.reason(kind, triggers[kind])
		if quotes := quotes(triggers[kind]); quotes != "" {
			text += " Reason given: " + quotes + "."
		}
		out = append(out, text)
	}
	if more := e.TriggerN - len(e.Triggers); more > 0 {
		out = append(out, fmt.Sprintf("There were %s, which the journal has no room for.", plural(more, "more such event")))
	}
	if len(out) == 0 {
		out = append(out, "The journal does not say why.")
	}
	return out
}

// reason words reasons of one kind.
func (e *journalEntry) reason(kind string, why []journalTrigger) string {
	one, who := len(why) == 1, listOf(why)
	several := func(text string) string { return plural(len(why), "member") + " " + text + ": " + who + "." }
	choose := func(single, many string) string {
		if one {
			return who + " " + single + "."
		}
		return several(many)
	}
	switch kind {
	case whyJoined:
		if e.Before == 0 {
			return choose("joined the empty group", "joined the empty group")
		}
		return choose("joined", "joined")
	case whyChanged:
		return e.changed(why)
	case whyLeader:
		return who + ", the leader, joined again, as leaders do to assign partitions anew when their topics change."
	case whyLeft:
		return choose("left", "left")
	case whyRemoved:
		return choose("was removed by "+removers(why), "were removed by "+removers(why))
	case whyExpired:
		return choose(
			fmt.Sprintf("sent no heartbeat for %s, its session timeout, and was removed", formatDuration(why[0].Silent)),
			fmt.Sprintf("sent no heartbeat for their session timeout (%s) and were removed", timeouts(why)))
	case whyNewGone:
		return choose(
			fmt.Sprintf("joined for the first time, was not heard of for %s while it waited for the others, and was removed", formatDuration(why[0].Silent)),
			fmt.Sprintf("joined for the first time, were not heard of (%s) while they waited for the others, and were removed", timeouts(why)))
	case whyNoSync:
		if slices.ContainsFunc(why, func(t journalTrigger) bool { return t.Instance != "" }) { // It may not even have joined.
			return choose("did not ask for its assignment in time, and was removed", "did not ask for their assignment in time, and were removed")
		}
		return choose("joined but never asked for its assignment, and was removed", "joined but never asked for their assignment, and were removed")
	case whyReplaced:
		if one && why[0].Change != nil {
			return who + " is a static member that restarted, came back " + why[0].Change.words(e.Protocol) + ", and could not take its old place quietly."
		}
		return choose("is a static member that restarted, and could not take its old place quietly", "are static members that restarted, and could not take their old places quietly")
	case whyMaxSize:
		if who == "" { // As it was when the coordinator loaded it.
			return "The group had more members than group.max.size allows."
		}
		return choose("was left out, since the group has group.max.size members", "were left out, since the group has group.max.size members")
	}
	return choose("did something that this version of muster has no words for ("+kind+")", "caused it ("+kind+")")
}

// timeouts words the session timeouts of expired members.
func timeouts(why []journalTrigger) string {
	lowest, highest := why[0].Silent, why[0].Silent
	for _, t := range why {
		lowest, highest = min(lowest, t.Silent), max(highest, t.Silent)
	}
	if lowest == highest {
		return formatDuration(lowest)
	}
	return formatDuration(lowest) + " to " + formatDuration(highest)
}

// quotes quotes the reasons that clients gave.
func quotes(why []journalTrigger) string {
	var out []string
	for _, t := range why {
		if quote := fmt.Sprintf("%q", t.Reason); t.Reason != "" && !slices.Contains(out, quote) {
			out = append(out, quote)
		}
	}
	return list(out)
}

// phases words how long a rebalance took, and what for.
func (e *journalEntry) phases() string {
	took := formatDuration(e.took())
	if e.After == 0 || e.took() < 100*time.Millisecond {
		return "It took " + took + "."
	}
	join := "until all members had joined again"
	if e.Before == 0 {
		join = "until no more members came (group.initial.rebalance.delay.ms)"
	} else if len(e.Slowest) > 0 && e.Slowest[0].Waited >= e.JoinPhase/2 {
		join += "; " + e.Slowest[0].String() + " came last"
	}
	if e.SyncPhase < e.took()/20 {
		return fmt.Sprintf("It took %s %s.", took, join)
	}
	leader := "the leader"
	if e.Leader != nil {
		leader += ", " + e.Leader.String() + ","
	}
	return fmt.Sprintf("It took %s: %s %s, and %s until %s had assigned partitions.", took, formatDuration(e.JoinPhase), join, formatDuration(e.SyncPhase), leader)
}

// outcome words what a rebalance changed.
func (e *journalEntry) outcome() string {
	if e.After == 0 {
		return fmt.Sprintf("The group has no members since then; it had %d.", e.Before)
	}
	members := fmt.Sprintf("%s became %d", plural(e.Before, "member"), e.After)
	switch {
	case e.Before == 0:
		members = "The group now has " + plural(e.After, "member")
	case e.Before == e.After:
		members = fmt.Sprintf("The group still has %s", plural(e.After, "member"))
	}
	return members + "; " + e.moved()
}

// moved words how many partitions changed hands.
func (e *journalEntry) moved() string {
	orphans := 0
	for _, m := range e.Moves {
		if m.To == "" {
			orphans++
		}
	}
	switch {
	case e.PartitionN == 0 && e.MoveN == 0:
		return "no partitions are assigned."
	case e.MoveN == 0:
		return fmt.Sprintf("%s assigned, each to the same member as before.", plural(e.PartitionN, "partition")+verb(e.PartitionN, " is", " are"))
	case e.Before == 0:
		return fmt.Sprintf("%s assigned.", plural(e.PartitionN, "partition")+verb(e.PartitionN, " is", " are"))
	case orphans == 0:
		return fmt.Sprintf("%d of %s changed hands.", e.MoveN, plural(e.PartitionN, "partition"))
	}
	// The list may be cut short, and then there are more orphans than we see.
	text := fmt.Sprintf("%s changed hands or lost their owner, %d or more of them the latter", plural(e.MoveN, "partition"), orphans)
	if e.MoveN == len(e.Moves) {
		text = fmt.Sprintf("%s changed hands, %d stayed, and %d lost %s owner", plural(e.MoveN-orphans, "partition"), e.PartitionN-(e.MoveN-orphans), orphans, verb(orphans, "its", "their"))
	}
	if strings.Contains(e.Protocol, "cooperative") {
		text += ", to be assigned in the next rebalance, which follows at once"
	}
	return text + "."
}

// sentences tells all of a rebalance that has settled.
func (e *journalEntry) sentences() []string {
	out := append(e.reasons(), e.phases())
	out = append(out, e.missedText()...)
	return append(out, e.outcome())
}

// short words the reasons in a line of a table.
func (e *journalEntry) short() string {
	kinds, triggers := e.byKind()
	var out []string
	for _, kind := range kinds {
		why := triggers[kind]
		text := strings.TrimSuffix(kind+": "+listOf(why), ": ")
		switch kind {
		case whyExpired, whyNewGone:
			text += ", silent for " + timeouts(why)
		case whyRemoved:
			text += " by " + removers(why)
		case whyChanged, whyReplaced:
			text += why[0].Change.short()
		case whyFenced:
			text = why[0].shortFenced()
		}
		if quotes := quotes(why); quotes != "" {
			text += " " + quotes
		}
		out = append(out, text)
	}
	if more := e.TriggerN - len(e.Triggers); more > 0 {
		out = append(out, fmt.Sprintf("%d more", more))
	}
	if text := e.shortEvent(); text != "" {
		out = append(out, text)
	}
	if e.WaitingN > 0 {
		out = append(out, "waits for "+e.waiting())
	}
	if e.MissedN > 0 {
		out = append(out, "did not come: "+listSome(e.Missed, e.MissedN))
	}
	return strings.Join(out, "; ")
}
