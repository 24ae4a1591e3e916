package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/journal"
	"muster/internal/words"
)

// byKind sorts the triggers by kind, and returns the kinds in the order in which
// they came.
func (e *Entry) byKind() (kinds []journal.TriggerKind, triggers map[journal.TriggerKind][]journal.Trigger) {
	triggers = map[journal.TriggerKind][]journal.Trigger{}
	for _, t := range e.Triggers {
		kind := t.Kind
		if kind == journal.TriggerExpired && t.New {
			kind = expiredNew
		}
		if triggers[kind] == nil {
			kinds = append(kinds, kind)
		}
		triggers[kind] = append(triggers[kind], t)
	}
	return kinds, triggers
}

// reasons words why a rebalance happened, a sentence for each kind of reason.
func (e *Entry) reasons() []string {
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
		out = append(out, fmt.Sprintf("There were %s, which the journal has no room for.", words.Plural(more, "more such event")))
	}
	if len(out) == 0 {
		out = append(out, "The journal does not say why.")
	}
	return out
}

// reason words reasons of one kind.
func (e *Entry) reason(kind journal.TriggerKind, why []journal.Trigger) string {
	one, who := len(why) == 1, listWho(why)
	several := func(text string) string { return words.Plural(len(why), "member") + " " + text + ": " + who + "." }
	choose := func(single, many string) string {
		if one {
			return who + " " + single + "."
		}
		return several(many)
	}
	if text := e.consumerReason(kind, why, choose); text != "" {
		return text
	}
	switch kind {
	case journal.TriggerJoined:
		if e.Before == 0 {
			return choose("joined the empty group", "joined the empty group")
		}
		return choose("joined", "joined")
	case journal.TriggerChanged:
		return e.changed(why)
	case journal.TriggerLeader:
		return who + ", the leader, joined again, as leaders do to assign partitions anew when their topics change."
	case journal.TriggerLeft:
		return choose("left", "left")
	case journal.TriggerRemoved:
		return choose("was removed by "+removers(why), "were removed by "+removers(why))
	case journal.TriggerExpired:
		return choose(
			fmt.Sprintf("sent no heartbeat for %s, its session timeout, and was removed", words.Duration(why[0].Silent)),
			fmt.Sprintf("sent no heartbeat for their session timeout (%s) and were removed", timeouts(why)))
	case expiredNew:
		return choose(
			fmt.Sprintf("joined for the first time, was not heard of for %s while it waited for the others, and was removed", words.Duration(why[0].Silent)),
			fmt.Sprintf("joined for the first time, were not heard of (%s) while they waited for the others, and were removed", timeouts(why)))
	case journal.TriggerNoSync:
		if slices.ContainsFunc(why, func(t journal.Trigger) bool { return t.Instance != "" }) { // It may not even have joined.
			return choose("did not ask for its assignment in time, and was removed", "did not ask for their assignment in time, and were removed")
		}
		return choose("joined but never asked for its assignment, and was removed", "joined but never asked for their assignment, and were removed")
	case journal.TriggerReplaced:
		if one && why[0].Change != nil {
			return who + " is a static member that restarted, came back " + changeWords(why[0].Change, e.Protocol) + ", and could not take its old place quietly."
		}
		return choose("is a static member that restarted, and could not take its old place quietly", "are static members that restarted, and could not take their old places quietly")
	case journal.TriggerMaxSize:
		if who == "" { // As it was when the coordinator loaded it.
			return "The group had more members than group.max.size allows."
		}
		return choose("was left out, since the group has group.max.size members", "were left out, since the group has group.max.size members")
	}
	return rare(kind, why, who, choose)
}

// rare words what seldom happens.
func rare(kind journal.TriggerKind, why []journal.Trigger, who string, choose func(single, many string) string) string {
	switch kind {
	case journal.TriggerResumed:
		return "The coordinator was lost in the middle of a rebalance, and the group begins it again."
	case journal.TriggerTooLarge:
		return fmt.Sprintf("The assignment by %s could not be stored: the group's record would have %d bytes, and %d fit (max.message.bytes of __consumer_offsets).",
			who, why[0].Bytes, why[0].MaxBytes)
	}
	return choose("did something that this version of muster has no words for ("+string(kind)+")", "caused it ("+string(kind)+")")
}

// timeouts words the session timeouts of expired members.
func timeouts(why []journal.Trigger) string {
	lowest, highest := why[0].Silent, why[0].Silent
	for _, t := range why {
		lowest, highest = min(lowest, t.Silent), max(highest, t.Silent)
	}
	if lowest == highest {
		return words.Duration(lowest)
	}
	return words.Duration(lowest) + " to " + words.Duration(highest)
}

// quotes quotes the reasons that clients gave.
func quotes(why []journal.Trigger) string {
	var out []string
	for _, t := range why {
		if quote := fmt.Sprintf("%q", t.Reason); t.Reason != "" && !slices.Contains(out, quote) {
			out = append(out, quote)
		}
	}
	return words.List(out)
}

// phases words how long a rebalance took, and what for.
func (e *Entry) phases() string {
	took := words.Duration(e.Took())
	if e.After == 0 || e.Took() < 100*time.Millisecond {
		return "It took " + took + "."
	}
	join := "until all members had joined again"
	if e.Before == 0 {
		join = "until no more members came (group.initial.rebalance.delay.ms)"
	} else if len(e.Slowest) > 0 && e.Slowest[0].Waited >= e.JoinPhase/2 {
		join += "; " + name(e.Slowest[0].Who) + " came last"
	}
	if e.SyncPhase < e.Took()/20 {
		return fmt.Sprintf("It took %s %s.", took, join)
	}
	leader := "the leader"
	if e.Leader != nil {
		leader += ", " + name(*e.Leader) + ","
	}
	return fmt.Sprintf("It took %s: %s %s, and %s until %s had assigned partitions.", took, words.Duration(e.JoinPhase), join, words.Duration(e.SyncPhase), leader)
}

// outcome words what a rebalance changed.
func (e *Entry) outcome() string {
	if e.After == 0 {
		return fmt.Sprintf("The group has had no members since then; before, it had %d.", e.Before)
	}
	members := fmt.Sprintf("%s became %d", words.Plural(e.Before, "member"), e.After)
	switch {
	case e.Before == 0:
		members = "The group now has " + words.Plural(e.After, "member")
	case e.Before == e.After:
		members = fmt.Sprintf("The group still has %s", words.Plural(e.After, "member"))
	}
	return members + "; " + e.moved()
}

// moved words how many partitions changed hands.
func (e *Entry) moved() string {
	orphans := 0
	for _, m := range e.Moves {
		if m.To == "" {
			orphans++
		}
	}
	switch {
	case e.isConsumer() && e.Before > 0 && e.MoveN > 0:
		return fmt.Sprintf("%d of %s %s a new owner.", e.MoveN, words.Plural(e.PartitionN, "partition"), words.Verb(e.MoveN, "has", "have"))
	case e.PartitionN == 0 && e.MoveN == 0:
		return "no partitions are assigned."
	case e.MoveN == 0:
		return fmt.Sprintf("%s assigned, each to the same member as before.", words.Plural(e.PartitionN, "partition")+words.Verb(e.PartitionN, " is", " are"))
	case e.Before == 0:
		return fmt.Sprintf("%s assigned.", words.Plural(e.PartitionN, "partition")+words.Verb(e.PartitionN, " is", " are"))
	case orphans == 0:
		return fmt.Sprintf("%d of %s changed hands.", e.MoveN, words.Plural(e.PartitionN, "partition"))
	}
	// The list may be cut short, and then there are more orphans than we see.
	text := fmt.Sprintf("%s changed hands or lost their owner, %d or more of them the latter", words.Plural(e.MoveN, "partition"), orphans)
	if e.MoveN == len(e.Moves) {
		text = fmt.Sprintf("%s changed hands, %d stayed, and %d lost %s owner", words.Plural(e.MoveN-orphans, "partition"), e.PartitionN-(e.MoveN-orphans), orphans, words.Verb(orphans, "its", "their"))
	}
	if strings.Contains(e.Protocol, "cooperative") {
		text += ", to be assigned in the next rebalance, which follows at once"
	}
	return text + "."
}

// sentences tells all of a rebalance that has settled.
func (e *Entry) sentences() []string {
	out := append(e.reasons(), e.phases())
	out = append(out, e.missedText()...)
	return append(out, e.outcome())
}

// Line words an entry for a line of a table.
func (e *Entry) Line() string {
	kinds, triggers := e.byKind()
	var out []string
	for _, kind := range kinds {
		why := triggers[kind]
		text := strings.TrimSuffix(string(kind)+": "+listWho(why), ": ")
		switch kind {
		case journal.TriggerExpired, expiredNew:
			text += ", silent for " + timeouts(why)
		case journal.TriggerRemoved:
			text += " by " + removers(why)
		case journal.TriggerChanged, journal.TriggerReplaced:
			text += changeLine(why[0].Change)
		case journal.TriggerRegex, journal.TriggerTopics, journal.TriggerNotRevoked:
			text = consumerLine(kind, why)
		case journal.TriggerFenced, journal.TriggerUnreleased:
			text = fencedLine(&why[0])
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
	out = append(out, e.holdupLine()...)
	if e.WaitingN > 0 {
		out = append(out, "waits for "+e.waiting())
	}
	if e.MissedN > 0 {
		out = append(out, "did not come: "+listAbsent(e.Missed, e.MissedN))
	}
	return strings.Join(out, "; ")
}
