package explain

import (
	"cmp"
	"fmt"
	"strings"

	"muster/internal/journal"
	"muster/internal/words"
)

// changed words rejoins with another subscription, those with the same change in
// one sentence.
func (e *Entry) changed(why []journal.Trigger) string {
	var order []string
	who := map[string][]journal.Trigger{}
	for _, t := range why {
		text := changeWords(t.Change, e.Protocol)
		if who[text] == nil {
			order = append(order, text)
		}
		who[text] = append(who[text], t)
	}
	var out []string
	for i, text := range order {
		if i == words.Named {
			more := 0
			for _, text := range order[i:] {
				more += len(who[text])
			}
			out = append(out, fmt.Sprintf("%s joined again with other changes.", words.Plural(more, "more member")))
			break
		}
		out = append(out, fmt.Sprintf("%s joined again %s.", listWho(who[text]), text))
	}
	return strings.Join(out, " ")
}

// changeWords says what changed in a subscription, to follow "joined again". What a
// member owns is part of it with a cooperative assignor, and then the rejoin is
// the ordinary second step.
func changeWords(c *journal.Change, assignor string) string {
	if c == nil {
		if strings.Contains(assignor, "cooperative") {
			return "with a changed subscription or, as " + assignor + " requires, after giving up partitions"
		}
		return "with a changed subscription"
	}
	var out []string
	added, removed := words.ListSome(c.TopicsAdded, c.TopicsAddedN), words.ListSome(c.TopicsRemoved, c.TopicsRemovedN)
	switch {
	case added != "" && removed != "":
		out = append(out, fmt.Sprintf("subscribed to %s and no longer to %s", added, removed))
	case added != "":
		out = append(out, "subscribed to "+added+" as well")
	case removed != "":
		out = append(out, "no longer subscribed to "+removed)
	}
	if len(c.Protocols) > 0 {
		out = append(out, fmt.Sprintf("with the assignors %s instead of %s", strings.Join(c.Protocols, ", "), strings.Join(c.ProtocolsBefore, ", ")))
	}
	switch {
	case c.Owned && strings.Contains(assignor, "cooperative"):
		out = append(out, "after giving up partitions, as "+assignor+" requires")
	case c.Owned:
		out = append(out, "owning other partitions")
	case c.Other && len(out) == 0:
		out = append(out, "with other data for its assignor")
	}
	if c.Forgotten {
		out = append(out, "with assignors that the coordinator had forgotten when it was loaded")
	}
	return strings.Join(out, ", ")
}

// changeLine words a change in a line of a table.
func changeLine(c *journal.Change) string {
	if c == nil {
		return ""
	}
	var out []string
	for _, t := range c.TopicsAdded {
		out = append(out, "+"+t)
	}
	for _, t := range c.TopicsRemoved {
		out = append(out, "-"+t)
	}
	if more := c.TopicsAddedN + c.TopicsRemovedN - len(out); more > 0 {
		out = append(out, fmt.Sprintf("%d more topics", more))
	}
	if c.Regex != c.RegexBefore {
		out = append(out, "regex "+cmp.Or(c.Regex, "none"))
	}
	if len(c.Protocols) > 0 {
		out = append(out, "assignors "+strings.Join(c.Protocols, ","))
	}
	if c.Owned {
		out = append(out, "owned partitions")
	}
	if c.Forgotten {
		out = append(out, "forgotten assignors")
	}
	if c.Other && len(out) == 0 {
		out = append(out, "other data")
	}
	return " (" + strings.Join(out, " ") + ")"
}
