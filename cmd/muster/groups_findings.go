package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// finding is something odd about a group, and what to change.
type finding struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Change string `json:"change"`
}

// evidence is what findings are made from.
type evidence struct {
	group   *groupState // nil if there is no such group any more
	journal bool        // Whether the broker keeps one.
	entries []journalEntry
	counts  map[string]int // Partitions of topics, 0 if there is no such topic.
	now     time.Time
	since   time.Duration
}

// findings returns what is odd, what hurts most first.
func (e *evidence) findings() []finding {
	out := []finding{}
	for _, find := range []func(*evidence) []finding{
		(*evidence).stuckRebalance, (*evidence).lagWithoutMembers, (*evidence).stuckPartitions, (*evidence).lostRecords,
		(*evidence).heartbeatsMissed, (*evidence).pollTimeouts, (*evidence).lateJoins, (*evidence).slowLeader,
		(*evidence).storm, (*evidence).staticMembers, (*evidence).placesTaken, (*evidence).notTakenUp, (*evidence).noSyncs,
		(*evidence).subscriptions, (*evidence).idleMembers, (*evidence).ownerless, (*evidence).unreadTopics,
	} {
		out = append(out, find(e)...)
	}
	return out
}

// tells says whether we know what the members read.
func (e *evidence) tells() bool { return e.group != nil && e.group.tells() && len(e.group.Members) > 0 }

// subscriptions finds members that do not subscribe to the same topics, and
// topics that do not exist.
func (e *evidence) subscriptions() []finding {
	if !e.tells() {
		return nil
	}
	var out []finding
	bySet := map[string][]*groupMember{}
	for i := range e.group.Members {
		m := &e.group.Members[i]
		key := strings.Join(m.Topics, ", ")
		bySet[key] = append(bySet[key], m)
	}
	if len(bySet) > 1 {
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(bySet)) {
			parts = append(parts, fmt.Sprintf("%s to %s", listOf(bySet[key]), cmp.Or(key, "nothing")))
		}
		out = append(out, finding{
			"different-subscriptions",
			"Members subscribe to different topics: " + strings.Join(parts, "; ") + ". A topic is read only by the members that subscribe to it, and every restart of one application makes the other rebalance.",
			"If these are two applications, give each a group.id of its own. If a deploy is under way, this ends with it.",
		})
	}
	var missing []string
	for _, topic := range e.group.subscribed() {
		if e.counts[topic] == 0 {
			missing = append(missing, topic)
		}
	}
	if len(missing) > 0 {
		out = append(out, finding{
			"missing-topic",
			fmt.Sprintf("Members subscribe to %s, which %s not exist.", list(missing), verb(len(missing), "does", "do")),
			"Look for a slip in the name, or create it: muster topics create " + missing[0] + ".",
		})
	}
	return out
}

// idleMembers finds members that have nothing to do.
func (e *evidence) idleMembers() []finding {
	if !e.tells() {
		return nil
	}
	var idle []*groupMember
	for i := range e.group.Members {
		if m := &e.group.Members[i]; m.partitions() == 0 {
			idle = append(idle, m)
		}
	}
	topics := e.group.subscribed()
	partitions := 0
	for _, topic := range topics {
		partitions += e.counts[topic]
	}
	members := len(e.group.Members)
	switch {
	case len(idle) == 0 || partitions == 0:
		return nil
	case members > partitions:
		return []finding{{
			"idle-members",
			fmt.Sprintf("The group has %s for %s of %s, so %s nothing to read: %s.", plural(members, "member"), plural(partitions, "partition"), list(topics), plural(len(idle), "member")+verb(len(idle), " has", " have"), listOf(idle)),
			fmt.Sprintf("Run at most %s, or add partitions: muster topics alter %s --partitions %d.", plural(partitions, "member"), topics[0], members),
		}}
	case e.group.Assignor == "range":
		return []finding{{
			"idle-members",
			fmt.Sprintf("%s nothing to read, though there are %s for %s: %s. The range assignor shares out each topic by itself, and the first members get most.", plural(len(idle), "member")+verb(len(idle), " has", " have"), plural(partitions, "partition"), plural(members, "member"), listOf(idle)),
			"Use another assignor: cooperative-sticky, sticky or roundrobin.",
		}}
	}
	return []finding{{
		"idle-members",
		fmt.Sprintf("%s nothing to read, though there are %s for %s: %s.", plural(len(idle), "member")+verb(len(idle), " has", " have"), plural(partitions, "partition"), plural(members, "member"), listOf(idle)),
		"This is in order during a cooperative rebalance, and if these members subscribe to other topics. If it stays, the group's leader assigns badly: restart it.",
	}}
}

// ownerless finds partitions that should be read and are not.
func (e *evidence) ownerless() []finding {
	if !e.tells() {
		return nil
	}
	subscribed := e.group.subscribed()
	var names []string
	for _, p := range e.group.Partitions {
		if p.Owner == nil && slices.Contains(subscribed, p.Topic) {
			names = append(names, p.name())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []finding{{
		"unassigned-partitions",
		fmt.Sprintf("Nobody reads %s, though members subscribe to %s.", list(names), verb(len(names), "its topic", "their topics")),
		"This is in order for a moment: during a cooperative rebalance, and until the leader notices new partitions (metadata.max.age.ms). If it stays, restart the leader.",
	}}
}

// unreadTopics finds topics that the group has offsets of, and reads no more.
func (e *evidence) unreadTopics() []finding {
	if !e.tells() {
		return nil
	}
	subscribed := e.group.subscribed()
	lag := map[string]int64{}
	for _, p := range e.group.Partitions {
		if !slices.Contains(subscribed, p.Topic) && p.Lag != nil && *p.Lag > 0 {
			lag[p.Topic] += *p.Lag
		}
	}
	var out []finding
	for _, topic := range slices.Sorted(maps.Keys(lag)) {
		out = append(out, finding{
			"unread-topic",
			fmt.Sprintf("The group has committed offsets of %s, but no member subscribes to it any more. Its lag of %d is part of the total, and only grows.", topic, lag[topic]),
			"Nothing, if that is meant: the offsets expire after offsets.retention.minutes. Else look at the subscription of the members.",
		})
	}
	return out
}

// name words a partition.
func (p *groupPartition) name() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }
