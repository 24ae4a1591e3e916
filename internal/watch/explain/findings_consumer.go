package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

const (
	// slowRevoke is after how long a member that has not given up partitions is worth a
	// remark: three of the usual heartbeats.
	slowRevoke = 15 * time.Second
	// flappingCount is how many epochs in stormWindow are.
	flappingCount = 6
)

// unacknowledged finds members that were told to give up partitions, and do not.
func (e *Evidence) unacknowledged() []Finding {
	if !e.assigns() {
		return nil
	}
	var out []Finding
	for _, h := range e.heldUp() {
		since := h.member.Since
		if !h.told || since == nil || e.Now.Sub(*since) < slowRevoke || len(out) == words.Named {
			continue
		}
		out = append(out, Finding{
			"revocation-not-acknowledged", e.holdupText(h) + " Everyone else goes on reading what they have.",
			e.lookAt(h.member) + " Process fewer records between polls (max.poll.records). How long the others wait at most is its rebalance timeout, which is max.poll.interval.ms in the Java client. To have them go on now, stop it.",
		})
	}
	return out
}

// lookAt words what a member is probably doing that does not give up partitions.
func (e *Evidence) lookAt(m *groupview.Member) string {
	if m.Heard != nil && e.Now.Sub(*m.Heard) >= slowHeartbeat {
		return fmt.Sprintf("Look at %s: without heartbeats the process may have crashed or be paused, or its client waits for the application to give up partitions.", m)
	}
	return fmt.Sprintf("Look at %s: a client gives up partitions when its application next polls, so it is probably busy with a batch, or stuck in it.", m)
}

// stuckConsumers finds a consumer group that does not settle, though no one is known to
// hold it up.
func (e *Evidence) stuckConsumers() []Finding {
	if !e.assigns() || !e.Group.Rebalances() || len(e.unacknowledged()) > 0 {
		return nil
	}
	started := e.underWay()
	if started == nil || e.Now.Sub(started.Time) < stuckRebalanceAge {
		return nil
	}
	text := fmt.Sprintf("The group has been on its way to new partitions for %s, and is %s.", words.Duration(e.Now.Sub(started.Time)), e.Group.State)
	for _, line := range e.holdups() {
		text += " " + line
	}
	return []Finding{{
		"stuck-rebalance", text,
		"Members get on with their heartbeats. Look for one that is slow to send them, or whether the epoch rises again and again.",
	}}
}

// revocationTimeouts finds members that were removed because they did not give up
// partitions.
func (e *Evidence) revocationTimeouts() []Finding {
	why := e.triggers(journal.TriggerNotRevoked)
	if len(why) == 0 {
		return nil
	}
	held, timeout := time.Duration(0), time.Duration(0)
	for _, t := range why {
		if t.Revoke != nil {
			held, timeout = max(held, t.Revoke.Held), max(timeout, t.Revoke.Timeout)
		}
	}
	return []Finding{{
		"revocation-timed-out",
		fmt.Sprintf("In the last %s, %s did not give up partitions within the rebalance timeout (%s) and %s removed: %s. Others waited for %s for up to %s.",
			words.Past(e.Since), words.Plural(len(why), "member"), words.Duration(timeout), words.Verb(len(why), "was", "were"), counted(why), words.Verb(len(why), "it", "them"), words.Duration(held)),
		"A client gives up partitions when its application next polls. Process fewer records between polls (max.poll.records), or look for a call there that blocks. If it needs that long, raise max.poll.interval.ms, which is the rebalance timeout: the others then wait for longer.",
	}}
}

// targetTooLarge finds a target assignment that could not be stored.
func (e *Evidence) targetTooLarge() []Finding {
	if !e.assigns() {
		return nil
	}
	for i := range slices.Backward(e.Entries) {
		s := &e.Entries[i]
		if s.Kind == journal.KindSettled {
			return nil
		}
		if s.Kind != journal.KindTarget || len(s.Triggers) == 0 {
			continue
		}
		t := s.Triggers[0]
		return []Finding{{
			"assignment-too-large",
			fmt.Sprintf("What %s is to have in epoch %d does not fit into a record (%s, max.message.bytes of __consumer_offsets), so everybody keeps what they have.", name(t.Who), s.Generation, words.Size(int64(t.MaxBytes))),
			"Run more members, so that each has fewer partitions, or subscribe to fewer topics.",
		}}
	}
	return nil
}

// emptyPatterns finds regular expressions that match no topic.
func (e *Evidence) emptyPatterns() []Finding {
	if !e.assigns() {
		return nil
	}
	byPattern := map[string][]*groupview.Member{}
	for i := range e.Group.Members {
		if m := &e.Group.Members[i]; m.Pattern != nil && m.Matches != nil && *m.Matches == 0 {
			byPattern[*m.Pattern] = append(byPattern[*m.Pattern], m)
		}
	}
	var out []Finding
	for i, pattern := range slices.Sorted(maps.Keys(byPattern)) {
		if i == words.Named {
			break
		}
		members := byPattern[pattern]
		text := fmt.Sprintf("The regular expression %s, which %s %s to, matches no topic", pattern, listMembers(members), words.Verb(len(members), "subscribes", "subscribe"))
		if !slices.ContainsFunc(members, func(m *groupview.Member) bool { return len(m.Topics) > 0 }) {
			text += fmt.Sprintf(", so %s nothing to read", words.Verb(len(members), "it has", "they have"))
		}
		out = append(out, Finding{
			"regex-matches-nothing", text + ".",
			"The broker matches the whole name, as Google's RE2 does: orders matches only the topic orders, and orders.* all that begin with it. Internal topics match nothing. Topics that are created later are found within seconds. See the names: muster topics list.",
		})
	}
	return out
}

// lonelyAssignors finds an assignor that one member asks for and no one else: either it
// has no effect, or one member decides for all.
func (e *Evidence) lonelyAssignors() []Finding {
	if !e.assigns() || len(e.Group.Members) < 2 {
		return nil
	}
	votes := map[string][]*groupview.Member{}
	for i := range e.Group.Members {
		if m := &e.Group.Members[i]; m.Assignor != nil {
			votes[*m.Assignor] = append(votes[*m.Assignor], m)
		}
	}
	var lonely []string
	for _, assignor := range slices.Sorted(maps.Keys(votes)) {
		if len(votes[assignor]) == 1 {
			lonely = append(lonely, assignor)
		}
	}
	if len(lonely) == 0 {
		return nil
	}
	return []Finding{{
		"assignor-nobody-else-asks-for", e.lonelyText(lonely, votes),
		"Set group.remote.assignor to the same value in every member, or in none: the broker then uses the first of group.consumer.assignors.",
	}}
}

// lonelyText words which assignors one member asks for and no one else, and what that
// means.
func (e *Evidence) lonelyText(lonely []string, votes map[string][]*groupview.Member) string {
	n, used := len(e.Group.Members), e.Group.Assignor
	asks := words.List(each(lonely, func(assignor string) string {
		return fmt.Sprintf("%s asks for the %s assignor", votes[assignor][0], assignor)
	}))
	switch {
	case len(votes) == 1 && lonely[0] == used:
		return fmt.Sprintf("%s, and no one else asks for any: so one member decides for all %d.", asks, n)
	case len(lonely) > 1:
		return fmt.Sprintf("%s, each alone: among as many votes for each the broker's first wins, and the group of %d uses %s.", asks, n, used)
	}
	return fmt.Sprintf("%s, and no one else does: there are more votes for %s, which the group of %d uses.", asks, used, n)
}

// mixedProtocols finds members that use the classic protocol in a consumer group.
func (e *Evidence) mixedProtocols() []Finding {
	if !e.assigns() {
		return nil
	}
	var classic []*groupview.Member
	for i := range e.Group.Members {
		if m := &e.Group.Members[i]; m.Classic {
			classic = append(classic, m)
		}
	}
	n := len(classic)
	if n == 0 {
		return nil
	}
	return []Finding{{
		"mixed-protocols",
		fmt.Sprintf("%d of %s %s the classic protocol: %s. The group works, but %s must join again with each new epoch, and %s reading meanwhile if its assignor is not cooperative.",
			n, words.Plural(len(e.Group.Members), "member"), words.Verb(n, "still uses", "still use"), listMembers(classic), words.Verb(n, "it", "they"), words.Verb(n, "it stops", "each stops")),
		"This is normal while a group moves from one protocol to the other. To finish, restart these with group.protocol=consumer; to go back, restart the others with group.protocol=classic.",
	}}
}

// awayMembers finds static members that have left for a while.
func (e *Evidence) awayMembers() []Finding {
	if !e.assigns() {
		return nil
	}
	var out []Finding
	for i := range e.Group.Members {
		m := &e.Group.Members[i]
		if m.Epoch == nil || *m.Epoch != epochAway || len(out) == words.Named {
			continue
		}
		out = append(out, Finding{
			"static-member-away",
			fmt.Sprintf("Static member %s has left for a while, as a restart does. No one reads its %s until it is back or the session timeout is over.", m, words.Plural(m.PartitionCount(), "partition")),
			"Start it again. If it is not to come back, the others get its partitions when the session timeout ends (group.consumer.session.timeout.ms).",
		})
	}
	return out
}

// flapping finds a group whose epoch rises again and again.
func (e *Evidence) flapping() []Finding {
	var all []*Entry
	for i := range e.Entries {
		if e.Entries[i].Kind == journal.KindEpoch {
			all = append(all, &e.Entries[i])
		}
	}
	worst := densest(all)
	if len(worst) < flappingCount {
		return nil
	}
	kinds, busiest := map[journal.TriggerKind]int{}, map[string]int{}
	for _, entry := range worst {
		for _, t := range entry.Triggers {
			kinds[t.Kind]++
			if t.ClientID != "" {
				busiest[t.ClientID+" at "+t.Host]++
			}
		}
	}
	text := fmt.Sprintf("The group epoch rose %d times between %s and %s%s.", len(worst), words.Time(worst[0].Time, e.Now), words.Time(worst[len(worst)-1].Time, e.Now), reasonCounts(kinds))
	if who := most(busiest); busiest[who]*2 > len(worst) {
		text += fmt.Sprintf(" %s is behind %d of them.", who, busiest[who])
	}
	change := "If processes are restarted one by one, as in a deploy, give each a group.instance.id that it keeps: then a restart takes nothing from it, unless it is away for longer than the session timeout. Else look for a process that crashes and starts over and over."
	switch {
	case (kinds[journal.TriggerExpired]+kinds[journal.TriggerNotRevoked])*2 >= len(worst):
		change = "Most of it is members that are removed, because they send no heartbeats or do not give up partitions, and come back: see above."
	case (kinds[journal.TriggerChanged]+kinds[journal.TriggerRegex]+kinds[journal.TriggerTopics])*2 >= len(worst):
		change = "Most of it is topics and subscriptions that change: look for what creates topics, or for members that call subscribe again and again."
	}
	return []Finding{{"rebalance-storm", text, change}}
}

// most is the name with the highest count, the first of several.
func most(counts map[string]int) string {
	names := slices.Sorted(maps.Keys(counts))
	if len(names) == 0 {
		return ""
	}
	return slices.MaxFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(b, a)) })
}

// wanted words what a member subscribes to.
func wanted(m *groupview.Member) string {
	text := strings.Join(m.Topics, ", ")
	if m.Pattern == nil || *m.Pattern == "" {
		return text
	}
	pattern := "the regular expression " + *m.Pattern
	if text == "" {
		return pattern
	}
	return text + " and " + pattern
}

// otherAssignor words what to use instead of range.
func (e *Evidence) otherAssignor() string {
	if e.assigns() {
		return "Use the uniform assignor: group.remote.assignor=uniform in every member."
	}
	return "Use another assignor: cooperative-sticky, sticky or roundrobin."
}

// idleChange words what to do about members that have nothing to read though there is
// enough for all.
func (e *Evidence) idleChange() string {
	if e.assigns() {
		return "This is normal if these members subscribe to other topics. See what each subscribes to and is to have: " + words.Command("groups describe", e.Group.Name) + "."
	}
	return "This is normal during a cooperative rebalance, and if these members subscribe to other topics. If it stays, the group's leader assigns badly: restart it."
}

// ownerlessChange words what to do about partitions that no one reads.
func (e *Evidence) ownerlessChange() string {
	if e.assigns() {
		return "This is normal for a few seconds after a topic was created or has grown: the next heartbeat of any member has the broker assign its partitions."
	}
	return "This is normal for a moment: during a cooperative rebalance, and until the leader notices new partitions (metadata.max.age.ms). If it stays, restart the leader."
}
