package main

import (
	"fmt"
	"slices"
)

func (a journalAbsent) String() string {
	if a.Pending {
		return a.journalWho.String() + " (not yet a member)"
	}
	return a.journalWho.String()
}

// listSome words a list that may be shorter than what it is of.
func listSome[T fmt.Stringer](things []T, count int) string {
	names := make([]string, max(count, len(things)))
	for i, t := range things {
		names[i] = t.String()
	}
	return list(names)
}

// waiting words who is waited for.
func (e *journalEntry) waiting() string { return listSome(e.Waiting, e.WaitingN) }

// absentees splits those who did not join in time: members that are out, those
// who never became members, and static members that stay.
func (e *journalEntry) absentees() (out, pending, kept []journalAbsent) {
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
func (e *journalEntry) missedText() []string {
	var text []string
	gone, pending, kept := e.absentees()
	if n := len(gone); n > 0 {
		text = append(text, fmt.Sprintf("%s did not join again within the rebalance timeout and %s removed.", listOf(gone), verb(n, "was", "were")))
	}
	if n := len(pending); n > 0 {
		text = append(text, fmt.Sprintf("The group also waited for %s, which %s given a member id and did not join with it.", listOf(plainly(pending)), verb(n, "was", "were")))
	}
	if n := len(kept); n > 0 {
		text = append(text, fmt.Sprintf("%s did not join again either, but %s for now, being static.", listOf(kept), verb(n, "keeps its place", "keep their places")))
	}
	if more := e.MissedN - len(e.Missed); more > 0 && len(text) > 0 {
		text = append(text, fmt.Sprintf("%d more did not join in time; the journal has no room for their names.", more))
	}
	return text
}

// plainly leaves out what a sentence says of them all.
func plainly(list []journalAbsent) []journalWho {
	out := make([]journalWho, len(list))
	for i, a := range list {
		out[i] = a.journalWho
	}
	return out
}

// removers words who removed members.
func removers(why []journalTrigger) string {
	var names []string
	for _, t := range why {
		name := "an administrator"
		if t.By != nil {
			name = t.By.client()
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return list(names)
}

// client words who sent a request without being a member.
func (w *journalWho) client() string {
	name := "client " + w.ClientID
	if w.ClientID == "" {
		name = "a client"
	}
	if w.Host == "" {
		return name
	}
	return name + " at " + w.Host
}
