package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// In a consumer group (KIP-848) no one joins again, and there is no leader: the group
// epoch rises, the broker makes a target assignment, and each member comes to it by
// itself. So the same questions have other answers.

// assigns says whether the coordinator assigns in the group.
func (e *Evidence) assigns() bool { return e.Group != nil && e.Group.Assigns() }

// assigned says whether it does, or did before the group went.
func (e *Evidence) assigned() bool {
	if e.Group != nil || len(e.Entries) == 0 {
		return e.assigns()
	}
	return slices.ContainsFunc(e.Entries, func(s Entry) bool { return s.assigns() })
}

// resumes says whether a load found members on their way to their partitions.
func (e *Entry) resumes() bool {
	return e.assigns() && e.Kind == journal.KindLoaded && e.State != groupview.Stable && e.After > 0
}

// risen returns the entries that say why the epoch has risen since everybody last had
// what they were to have.
func (e *Evidence) risen() (out []*Entry) {
	first := e.underWay()
	if first == nil {
		return nil
	}
	for i := range e.Entries {
		if s := &e.Entries[i]; (s.isStart() || s == first) && !s.Time.Before(first.Time) {
			out = append(out, s)
		}
	}
	return out
}

// targets returns the target assignments that were made from one time to another.
func (e *Evidence) targets(s *Entry) (out []*Entry) {
	for i := range e.Entries {
		t := &e.Entries[i]
		if t.Kind == journal.KindTarget && len(t.Triggers) == 0 && !t.Time.Before(s.Started) && !t.Time.After(s.Time) {
			out = append(out, t)
		}
	}
	return out
}

// underWayText words why a rebalance is under way, and in a consumer group who holds up
// whom.
func (e *Evidence) underWayText(s *Entry) []string {
	if !s.assigns() {
		return s.reasons()
	}
	var all Entry
	all.Entry = s.Entry
	all.Triggers, all.TriggerN = nil, 0
	for _, r := range e.risen() {
		all.Triggers = append(all.Triggers, r.Triggers...)
		all.TriggerN += r.TriggerN
	}
	return append(all.reasons(), e.holdups()...)
}

// consumerStory tells all of a rebalance of a consumer group that has settled.
func (e *Evidence) consumerStory(s *Entry) []string {
	out := append(s.reasons(), s.settling())
	targets := e.targets(s)
	out = append(out, s.outcome())
	if text := s.sharesText(targets); text != "" {
		out = append(out, text)
	}
	if n := len(targets); n > 0 && targets[n-1].ProtocolBefore != "" {
		out = append(out, fmt.Sprintf("The assignor was %s before, and is %s now, by the votes of the members.", targets[n-1].ProtocolBefore, targets[n-1].Protocol))
	}
	return out
}

// settling words how long it took until everybody had their partitions, and who let the
// others wait.
func (e *Entry) settling() string {
	switch {
	case e.Took() < 100*time.Millisecond:
		return "That was done at once."
	case e.After == 0 || e.Took() < slowMoment:
		return "It took " + words.Duration(e.Took()) + "."
	}
	text := fmt.Sprintf("It took %s until every member had the partitions that it was to have", words.Duration(e.Took()))
	switch {
	case len(e.Held) > 0 && e.Held[0].Waited >= slowMoment:
		return text + fmt.Sprintf("; %s took longest to give up its own, %s.", name(e.Held[0].Who), words.Duration(e.Held[0].Waited))
	case len(e.Slowest) > 0:
		return text + "; the last was " + name(e.Slowest[0].Who) + "."
	}
	return text + "."
}

// sharesText words how many partitions members had and have, from the targets that were
// made on the way.
func (e *Entry) sharesText(targets []*Entry) string {
	var order []string
	shares := map[string]journal.Share{}
	count := 0
	for _, t := range targets {
		for _, s := range t.Shares {
			first, known := shares[s.Member]
			if !known {
				order = append(order, s.Member)
				first = s
			}
			first.After = s.After
			shares[s.Member] = first
		}
		count = max(count, t.ShareN)
	}
	var out []string
	for _, id := range order {
		s := shares[id]
		switch {
		case slices.ContainsFunc(e.Triggers, func(t journal.Trigger) bool { return t.Member == id && kindOf(t.Kind).gone }):
			out = append(out, fmt.Sprintf("%s %d → gone", name(s.Who), s.Before))
		case s.Before != s.After:
			out = append(out, fmt.Sprintf("%s %d → %d", name(s.Who), s.Before, s.After))
		default:
			count--
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "Partitions of each member before and after: " + words.ListSome(out, max(count, len(out))) + "."
}

// migrated words that a group moved from one protocol to the other.
func (e *Entry) migrated() string {
	who := "a member"
	if e.By != nil {
		who = name(*e.By)
	}
	if e.Kind == journal.KindUpgraded {
		return fmt.Sprintf("The group moved from the classic to the consumer protocol when %s joined with it; its %s went on with the partitions that they had.", who, words.Plural(e.Before, "member"))
	}
	return fmt.Sprintf("The group moved back from the consumer to the classic protocol, because the last member that used the former is gone (%s); the others join again.", who)
}

// each1 words reasons one by one, the first few of them.
func each1(why []journal.Trigger, word func(*journal.Trigger) string) string {
	var out []string
	for i := range why {
		if i == words.Named {
			out = append(out, fmt.Sprintf("There were %d more such events.", len(why)-i))
			break
		}
		out = append(out, word(&why[i]))
	}
	return strings.Join(out, " ")
}

// had words what members of a consumer group that are gone had.
func (e *Entry) had(gone *triggers) string {
	if !e.assigns() {
		return ""
	}
	n, held := 0, ""
	for _, t := range gone.all {
		n += t.Had
		if r := t.Revoke; r != nil && held == "" {
			held = fmt.Sprintf(" %s had been told to give up %s, for which %s waited.", name(t.Who), partsText(r.Parts, r.PartN), cmp.Or(listSome(r.For, r.ForN), "no one"))
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" %s had %s.", words.Verb(len(gone.all), "It", "They"), words.Plural(n, "partition")) + held
}

// notRevoked words that a member was removed because it did not give up partitions.
func notRevoked(t *journal.Trigger) string {
	if t.Revoke == nil {
		return name(t.Who) + " did not give up partitions within its rebalance timeout, and was removed."
	}
	text := fmt.Sprintf("%s was told to give up %s", name(t.Who), partsText(t.Revoke.Parts, t.Revoke.PartN))
	if t.Revoke.ForN > 0 {
		text += ", for which " + listSome(t.Revoke.For, t.Revoke.ForN) + " waited"
	}
	return text + fmt.Sprintf(". It did not within %s, its rebalance timeout, and was removed.", words.Duration(t.Revoke.Timeout))
}

// regexMatches words what a regular expression has come to match.
func regexMatches(t *journal.Trigger) string {
	c := t.Change
	if c == nil {
		c = &journal.Change{}
	}
	added, removed := words.ListSome(c.TopicsAdded, c.TopicsAddedN), words.ListSome(c.TopicsRemoved, c.TopicsRemovedN)
	text := "The regular expression " + c.Regex + " of " + name(t.Who)
	switch {
	case added != "" && removed != "":
		return text + " was found to match " + added + ", and no longer " + removed + "."
	case added != "":
		return text + " was found to match " + added + "."
	case removed != "":
		return text + " no longer matches " + removed + "."
	}
	return text + " was found to match no topic."
}

// topicChanges words what happened to topics.
func topicChanges(t *journal.Trigger) string {
	if t.Topics == nil || len(t.Topics.List) == 0 {
		return "Topics that members subscribe to are not what they were before the coordinator was loaded."
	}
	out := each(t.Topics.List, func(c journal.TopicChange) string {
		switch c.Kind {
		case journal.TopicCreated:
			return fmt.Sprintf("%s was created, with %s", c.Topic, words.Plural(c.After, "partition"))
		case journal.TopicDeleted:
			return c.Topic + " was deleted"
		case journal.TopicRecreated:
			return fmt.Sprintf("%s was deleted and created again, with %s", c.Topic, words.Plural(c.After, "partition"))
		}
		return fmt.Sprintf("%s now has %s instead of %d", c.Topic, words.Plural(c.After, "partition"), c.Before)
	})
	return "Topics that members subscribe to changed: " + words.ListSome(out, t.Topics.N) + "."
}

// subscribesTo words a change of what a member of a consumer group subscribes to.
func subscribesTo(c *journal.Change) string {
	if c == nil {
		return "the journal does not say how"
	}
	var out []string
	if added := words.ListSome(c.TopicsAdded, c.TopicsAddedN); added != "" {
		out = append(out, "now to "+added)
	}
	if removed := words.ListSome(c.TopicsRemoved, c.TopicsRemovedN); removed != "" {
		out = append(out, "no longer to "+removed)
	}
	switch {
	case c.Regex != "" && c.RegexBefore != "":
		out = append(out, "to the regular expression "+c.Regex+" instead of "+c.RegexBefore)
	case c.Regex != "":
		out = append(out, "now to the regular expression "+c.Regex)
	case c.RegexBefore != "":
		out = append(out, "no longer to the regular expression "+c.RegexBefore)
	}
	return strings.Join(out, ", ")
}

// consumerLine words reasons that only consumer groups have in a line of a table.
func consumerLine(x *triggers) string {
	var out []string
	for _, t := range x.all {
		text := string(x.kind)
		if t.Member != "" {
			text += ": " + name(t.Who)
		}
		if c := t.Change; c != nil {
			text += " " + c.Regex + strings.Replace(changeLine(&journal.Change{TopicsAdded: c.TopicsAdded, TopicsAddedN: c.TopicsAddedN, TopicsRemoved: c.TopicsRemoved, TopicsRemovedN: c.TopicsRemovedN}), " ()", " (no topic)", 1)
		}
		if t.Topics != nil {
			for _, c := range t.Topics.List {
				text += fmt.Sprintf(" %s %s", c.Topic, c.Kind)
			}
		}
		if t.Revoke != nil {
			text += fmt.Sprintf(", held %s for %s", words.Plural(t.Revoke.PartN, "partition"), words.Duration(t.Revoke.Held))
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// holdupLine words who must let go, or did last, in a line of a table.
func (e *Entry) holdupLine() (out []string) {
	for i, s := range e.Shares {
		if i == words.Named {
			out = append(out, fmt.Sprintf("%d more", e.ShareN-i))
			break
		}
		out = append(out, fmt.Sprintf("%s %d→%d", name(s.Who), s.Before, s.After))
	}
	for i, r := range e.Revokes {
		if i == words.Named {
			out = append(out, fmt.Sprintf("%d more must give up partitions", e.RevokeN-i))
			break
		}
		out = append(out, fmt.Sprintf("%s must give up %s for %s", name(r.Who), words.Plural(r.PartN, "partition"), listSome(r.For, r.ForN)))
	}
	if len(e.Held) > 0 && e.Held[0].Waited >= slowMoment {
		out = append(out, fmt.Sprintf("%s gave up partitions after %s", name(e.Held[0].Who), words.Duration(e.Held[0].Waited)))
	}
	return out
}

func listSome(who []journal.Who, count int) string { return words.ListSome(each(who, name), count) }

// partsText words partitions by name, the first few of so many.
func partsText(parts []journal.Parts, count int) string {
	var out []string
	for _, p := range parts {
		for _, n := range p.Partitions {
			out = append(out, fmt.Sprintf("%s-%d", p.Topic, n))
		}
	}
	return words.ListSome(out, count)
}
