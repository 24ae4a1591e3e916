package explain

import (
	"fmt"
	"slices"

	"muster/internal/journal"
	"muster/internal/words"
)

// listAbsent words a list of those who are not there, which may be shorter than
// what it is of.
func listAbsent(absent []journal.Absent, count int) string {
	return words.ListSome(each(absent, func(a journal.Absent) string {
		if a.Pending {
			return name(a.Who) + " (not yet a member)"
		}
		return name(a.Who)
	}), count)
}

// listNames words who is not there, if a sentence says the rest.
func listNames(absent []journal.Absent) string {
	return words.List(each(absent, func(a journal.Absent) string { return name(a.Who) }))
}

// waiting words who is waited for.
func (e *Entry) waiting() string { return listAbsent(e.Waiting, e.WaitingN) }

// absentees splits those who did not join in time: members that are out, those
// who never became members, and static members that stay.
func (e *Entry) absentees() (out, pending, kept []journal.Absent) {
	for _, a := range e.Missed {
		switch {
		case a.Pending:
			pending = append(pending, a)
		case a.Kept:
			kept = append(kept, a)
		default:
			out = append(out, a)
		}
	}
	return out, pending, kept
}

// missedText words who did not join in time.
func (e *Entry) missedText() []string {
	var text []string
	gone, pending, kept := e.absentees()
	if n := len(gone); n > 0 {
		text = append(text, fmt.Sprintf("%s did not join again within the rebalance timeout and %s removed.", listNames(gone), words.Verb(n, "was", "were")))
	}
	if n := len(pending); n > 0 {
		text = append(text, fmt.Sprintf("The group also waited for %s, which %s given a member id and did not join with it.", listNames(pending), words.Verb(n, "was", "were")))
	}
	if n := len(kept); n > 0 {
		text = append(text, fmt.Sprintf("%s did not join again either, but %s for now, being static.", listNames(kept), words.Verb(n, "keeps its place", "keep their places")))
	}
	if more := e.MissedN - len(e.Missed); more > 0 && len(text) > 0 {
		text = append(text, fmt.Sprintf("%d more did not join in time; the journal has no room for their names.", more))
	}
	return text
}

// removers words who removed members.
func removers(why []journal.Trigger) string {
	var names []string
	for _, t := range why {
		who := "an administrator"
		if t.By != nil {
			who = client(*t.By)
		}
		if !slices.Contains(names, who) {
			names = append(names, who)
		}
	}
	return words.List(names)
}
