package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// tells says whether we know what the members read.
func (e *Evidence) tells() bool { return e.Group != nil && e.Group.Tells() && len(e.Group.Members) > 0 }

// subscriptions finds members that do not subscribe to the same topics, and
// topics that do not exist.
func (e *Evidence) subscriptions() []Finding {
	if !e.tells() {
		return nil
	}
	var out []Finding
	bySet := map[string][]*groupview.Member{}
	for i := range e.Group.Members {
		m := &e.Group.Members[i]
		key := wanted(m)
		bySet[key] = append(bySet[key], m)
	}
	if len(bySet) > 1 {
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(bySet)) {
			parts = append(parts, fmt.Sprintf("%s to %s", listMembers(bySet[key]), cmp.Or(key, "nothing")))
		}
		out = append(out, Finding{
			"different-subscriptions",
			"Members subscribe to different topics: " + strings.Join(parts, "; ") + ". A topic is read only by the members that subscribe to it, and every restart of one application makes the other rebalance.",
			"If these are two applications, give each a group.id of its own. If a deploy is under way, this ends with it.",
		})
	}
	var missing []string
	for _, topic := range e.Group.Subscribed() {
		if e.Partitions[topic] == 0 {
			missing = append(missing, topic)
		}
	}
	if len(missing) > 0 {
		out = append(out, Finding{
			"missing-topic",
			fmt.Sprintf("Members subscribe to %s, which %s not exist.", words.List(missing), words.Verb(len(missing), "does", "do")),
			"Look for a typo in the name, or create it: " + words.Command("topics create", missing[0]) + ".",
		})
	}
	return out
}

// idleMembers finds members that have nothing to do.
func (e *Evidence) idleMembers() []Finding {
	if !e.tells() || e.Group.Rebalances() { // Members may yet be given something.
		return nil
	}
	var idle []*groupview.Member
	for i := range e.Group.Members {
		if m := &e.Group.Members[i]; m.PartitionCount() == 0 {
			idle = append(idle, m)
		}
	}
	topics := e.Group.Subscribed()
	partitions := 0
	for _, topic := range topics {
		partitions += e.Partitions[topic]
	}
	members := len(e.Group.Members)
	switch {
	case len(idle) == 0 || partitions == 0:
		return nil
	case members > partitions:
		return []Finding{{
			"idle-members",
			fmt.Sprintf("The group has %s for %s of %s, so %s nothing to read: %s.", words.Plural(members, "member"), words.Plural(partitions, "partition"), words.List(topics), words.Plural(len(idle), "member")+words.Verb(len(idle), " has", " have"), listMembers(idle)),
			fmt.Sprintf("Run at most %s, or add partitions: %s.", words.Plural(partitions, "member"), words.Command("topics alter", topics[0], "--partitions", strconv.Itoa(members))),
		}}
	case e.Group.Assignor == "range":
		return []Finding{{
			"idle-members",
			fmt.Sprintf("%s nothing to read, though there are %s for %s: %s. The range assignor shares out each topic by itself, and the first members get most.", words.Plural(len(idle), "member")+words.Verb(len(idle), " has", " have"), words.Plural(partitions, "partition"), words.Plural(members, "member"), listMembers(idle)),
			e.otherAssignor(),
		}}
	}
	return []Finding{{
		"idle-members",
		fmt.Sprintf("%s nothing to read, though there are %s for %s: %s.", words.Plural(len(idle), "member")+words.Verb(len(idle), " has", " have"), words.Plural(partitions, "partition"), words.Plural(members, "member"), listMembers(idle)),
		e.idleChange(),
	}}
}

// ownerless finds partitions that should be read and are not.
func (e *Evidence) ownerless() []Finding {
	if !e.tells() || e.Group.Rebalances() { // Consumer groups are on their way, and tell who holds them up.
		return nil
	}
	subscribed, shared := e.Group.Subscribed(), map[groupview.TopicPartition]bool{}
	if e.Group.Type == groupview.TypeShare { // No partition has an owner there.
		shared = e.Group.Assigned()
	}
	var names []string
	for _, p := range e.Group.Partitions {
		if p.Owner == nil && !shared[groupview.TopicPartition{Topic: p.Topic, Partition: p.Partition}] && slices.Contains(subscribed, p.Topic) {
			names = append(names, p.Name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []Finding{{
		"unassigned-partitions",
		fmt.Sprintf("No one reads %s, though members subscribe to %s.", words.List(names), words.Verb(len(names), "its topic", "their topics")),
		e.ownerlessChange(),
	}}
}

// unreadTopics finds topics that the group has offsets of, and no longer reads.
func (e *Evidence) unreadTopics() []Finding {
	if !e.tells() {
		return nil
	}
	subscribed := e.Group.Subscribed()
	lag := map[string]int64{}
	for _, p := range e.Group.Partitions {
		if !slices.Contains(subscribed, p.Topic) && p.Lag != nil && *p.Lag > 0 {
			lag[p.Topic] += *p.Lag
		}
	}
	var out []Finding
	for _, topic := range slices.Sorted(maps.Keys(lag)) {
		out = append(out, Finding{
			"unread-topic",
			fmt.Sprintf("The group has committed offsets of %s, but no member subscribes to it any more. Its lag of %d is part of the total, and only grows.", topic, lag[topic]),
			"Nothing, if that is meant: the offsets expire after offsets.retention.minutes. Otherwise look at the subscription of the members.",
		})
	}
	return out
}
