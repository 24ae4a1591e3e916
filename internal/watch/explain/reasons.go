package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/journal"
	"muster/internal/words"
)

// byKind returns the triggers by kind, in the order in which the kinds came.
func (e *Entry) byKind() (out []*triggers) {
	for _, t := range e.Triggers {
		kind := t.Kind
		if kind == journal.TriggerExpired && t.New {
			kind = expiredNew
		}
		i := slices.IndexFunc(out, func(x *triggers) bool { return x.kind == kind })
		if i < 0 {
			i, out = len(out), append(out, &triggers{kind: kind})
		}
		out[i].all = append(out[i].all, t)
	}
	for _, x := range out {
		x.who = listWho(x.all)
	}
	return out
}

// brief names the kind, and who it was.
func (t *triggers) brief() string { return strings.TrimSuffix(string(t.kind)+": "+t.who, ": ") }

// reasons words why a rebalance happened, a sentence for each kind of reason.
func (e *Entry) reasons() []string {
	var out []string
	for _, t := range e.byKind() {
		text := kindOf(t.kind).reason(e, t)
		if quotes := quotes(t.all); quotes != "" {
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
	case e.Type == journal.TypeShare && e.Before > 0 && e.MoveN > 0: // No partition has an owner there.
		return fmt.Sprintf("the assignment of %d of %s is another one.", e.MoveN, words.Plural(e.PartitionN, "partition"))
	case e.assigns() && e.Before > 0 && e.MoveN > 0:
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
	var out []string
	for _, t := range e.byKind() {
		text := t.brief()
		if line := kindOf(t.kind).line; line != nil {
			text = line(t)
		}
		if quotes := quotes(t.all); quotes != "" {
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
