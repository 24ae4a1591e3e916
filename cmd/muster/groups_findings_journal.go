package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// When a rebalance is worth a remark.
const (
	stuckRebalanceAge = 30 * time.Second
	slowJoin          = 5 * time.Second // A heartbeat interval, by default 3 s, is in order.
	slowAssign        = 5 * time.Second
	stormCount        = 5
	stormWindow       = 10 * time.Minute
	replacedTooOften  = 3
)

// underWay returns the entry of the rebalance that is under way: the first start
// after the last end.
func (e *evidence) underWay() *journalEntry {
	if e.group == nil || !e.group.rebalances() {
		return nil
	}
	var first *journalEntry
	for i := range e.entries {
		switch entry := &e.entries[i]; {
		case entry.Kind == entrySettled || entry.Kind == entryDeleted || entry.Kind == entryLoaded:
			first = nil
		case entry.Kind == entryStarted && first == nil:
			first = entry
		}
	}
	return first
}

// lastStart returns when the rebalance under way last began to wait for joins.
func (e *evidence) lastStart() *journalEntry {
	if e.underWay() == nil {
		return nil
	}
	var last *journalEntry
	for i := range e.entries {
		if e.entries[i].Kind == entryStarted {
			last = &e.entries[i]
		}
	}
	return last
}

// settled returns the rebalances that have come to their end.
func (e *evidence) settled() []*journalEntry {
	var out []*journalEntry
	for i := range e.entries {
		if e.entries[i].Kind == entrySettled {
			out = append(out, &e.entries[i])
		}
	}
	return out
}

// triggers returns the reasons of one kind: of all rebalances that have settled,
// and of the one under way.
func (e *evidence) triggers(kind string) []journalTrigger {
	var out []journalTrigger
	entries := e.settled()
	if now := e.underWay(); now != nil {
		entries = append(entries, now)
	}
	for _, entry := range entries {
		for _, t := range entry.Triggers {
			if t.Kind == kind {
				out = append(out, t)
			}
		}
	}
	return out
}

// counted words who caused something, and how often if more than once.
func counted(why []journalTrigger) string {
	var names []string
	count := map[string]int{}
	for _, t := range why {
		// A process that comes back has another member id.
		name := t.String()
		if t.Instance == "" && t.ClientID != "" {
			name = t.ClientID + " at " + t.Host
		}
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d times)", name, n)
		}
	}
	return list(names)
}

// stuckRebalance finds a rebalance that does not end.
func (e *evidence) stuckRebalance() []finding {
	if e.group == nil || !e.group.rebalances() {
		return nil
	}
	started := e.underWay()
	since := "for " + formatDuration(e.since) + " or longer"
	switch {
	case started != nil && e.now.Sub(started.Time) < stuckRebalanceAge:
		return nil
	case started != nil:
		since = "for " + formatDuration(e.now.Sub(started.Time))
	case !e.journal || len(e.entries) > 0:
		return nil // It began just now, or nobody knows when.
	}
	if e.group.State == stateCompleting {
		return []finding{{
			"stuck-rebalance",
			fmt.Sprintf("The group has been in %s %s: everybody has joined, and its leader has not sent the assignment. Nobody reads meanwhile.", e.group.State, since),
			"Look at the leader: it may be computing a large assignment, or be unable to reach the broker. It is removed when its rebalance timeout ends (max.poll.interval.ms in the Java client).",
		}}
	}
	waits := "members that have not joined again"
	if last := e.lastStart(); last != nil && last.WaitingN > 0 {
		waits += fmt.Sprintf(" (at %s: %s)", formatTime(last.Time, e.now), last.waiting())
	}
	return []finding{{
		"stuck-rebalance",
		fmt.Sprintf("The group has been in %s %s: it waits for %s. Nobody reads meanwhile, unless the assignor is cooperative.", e.group.State, since, waits),
		"A member that is busy joins again only when it next polls. The group waits for at most the rebalance timeout (max.poll.interval.ms in the Java client, 5 minutes by default): lower it, and process fewer records between polls (max.poll.records).",
	}}
}

// heartbeatsMissed finds members that were removed for their silence.
func (e *evidence) heartbeatsMissed() []finding {
	gone := e.staticGone()
	expired := slices.DeleteFunc(e.triggers(whyExpired), func(t journalTrigger) bool { return t.New || slices.Contains(gone, t) })
	if len(expired) == 0 {
		return nil
	}
	return []finding{{
		"heartbeats-missed",
		fmt.Sprintf("In the last %s, %s heartbeats and %s removed: %s.", formatDuration(e.since), plural(len(expired), "member")+" missed "+verb(len(expired), "its", "their"), verb(len(expired), "was", "were"), counted(expired)),
		fmt.Sprintf("Look there for a crash, a kill without shutdown, a long garbage collection or a broken network. If the process only paused, raise its session.timeout.ms (now %s) above the pause, and keep heartbeat.interval.ms at a third of it.", timeouts(expired)),
	}}
}

// pollTimeouts finds members that left because they processed for too long; the
// client says so when it leaves.
func (e *evidence) pollTimeouts() []finding {
	slow := slices.DeleteFunc(e.triggers(whyLeft), func(t journalTrigger) bool {
		reason := strings.ToLower(t.Reason)
		return !strings.Contains(reason, "poll timeout") && !strings.Contains(reason, "poll interval") && !strings.Contains(reason, "max.poll.interval")
	})
	if len(slow) == 0 {
		return nil
	}
	return []finding{{
		"poll-interval-exceeded",
		fmt.Sprintf("In the last %s, %s because the application did not poll in time: %s.", formatDuration(e.since), plural(len(slow), "member")+" left", counted(slow)),
		"Raise max.poll.interval.ms above the longest time that a batch takes, or lower max.poll.records.",
	}}
}

// lateJoins finds members that let the others wait, or came too late.
func (e *evidence) lateJoins() []finding {
	var missed, pending []journalTrigger
	var slowest *journalEntry
	for _, entry := range e.settled() {
		for _, who := range entry.Missed {
			switch {
			case who.Pending:
				pending = append(pending, journalTrigger{journalWho: who.journalWho})
			case !who.Kept:
				missed = append(missed, journalTrigger{journalWho: who.journalWho})
			}
		}
		late := entry.Before > 0 && entry.JoinPhase >= slowJoin && len(entry.Slowest) > 0
		if late && (slowest == nil || entry.JoinPhase > slowest.JoinPhase) {
			slowest = entry
		}
	}
	var out []finding
	if len(missed) > 0 {
		out = append(out, finding{
			"missed-rebalance",
			fmt.Sprintf("In the last %s, members did not join again within the rebalance timeout and were removed: %s.", formatDuration(e.since), counted(missed)),
			"They were busy for longer than that. Raise max.poll.interval.ms (which is the rebalance timeout), or lower max.poll.records.",
		})
	}
	if len(pending) > 0 {
		out = append(out, finding{
			"never-joined",
			fmt.Sprintf("In the last %s, the group waited in vain for clients that were given a member id and did not join with it: %s.", formatDuration(e.since), counted(pending)),
			"They died or gave up between two requests: look at their logs, and for a process that is restarted over and over.",
		})
	}
	if slowest != nil {
		out = append(out, finding{
			"slow-joiner",
			fmt.Sprintf("At %s the whole group waited for %s to join again, for %s.", formatTime(slowest.Started, e.now), slowest.Slowest[0], formatDuration(slowest.Slowest[0].Waited)),
			"A member joins again only when it next polls: lower max.poll.records, or process records outside of the poll loop. With the cooperative-sticky assignor the others go on reading meanwhile.",
		})
	}
	return out
}

// slowLeader finds leaders that take long to assign.
func (e *evidence) slowLeader() []finding {
	var worst *journalEntry
	for _, entry := range e.settled() {
		if entry.SyncPhase >= slowAssign && (worst == nil || entry.SyncPhase > worst.SyncPhase) {
			worst = entry
		}
	}
	if worst == nil || worst.Leader == nil {
		return nil
	}
	return []finding{{
		"slow-leader",
		fmt.Sprintf("At %s the leader, %s, took %s to assign %s to %s.", formatTime(worst.Started, e.now), worst.Leader, formatDuration(worst.SyncPhase), plural(worst.PartitionN, "partition"), plural(worst.After, "member")),
		"Look at that process: CPU, garbage collection, its assignor. Sticky assignors are slow in large groups of some clients; range is fast.",
	}}
}

// storm finds many rebalances in a short time.
func (e *evidence) storm() []finding {
	all := e.settled()
	var worst []*journalEntry
	for from, to := 0, 0; to < len(all); to++ {
		for all[to].Time.Sub(all[from].Time) > stormWindow {
			from++
		}
		if to-from+1 > len(worst) {
			worst = all[from : to+1]
		}
	}
	if len(worst) < stormCount {
		return nil
	}
	kinds := map[string]int{}
	for _, entry := range worst {
		for _, t := range entry.Triggers {
			kinds[t.Kind]++
		}
	}
	change := "A rolling deploy does this when members leave and join one by one. Give each a group.instance.id that it keeps over restarts, and a session.timeout.ms longer than a restart: then a restart causes no rebalance. Cooperative-sticky makes each one cheaper."
	if kinds[whyExpired]*2 >= len(worst) {
		change = "Most of it is members that miss heartbeats and come back: see above."
	}
	return []finding{{
		"rebalance-storm",
		fmt.Sprintf("There were %d rebalances between %s and %s%s.", len(worst), formatTime(worst[0].Time, e.now), formatTime(worst[len(worst)-1].Time, e.now), reasonCounts(kinds)),
		change,
	}}
}

// reasonCounts words how often members came and went.
func reasonCounts(kinds map[string]int) string {
	var out []string
	for _, k := range []struct{ kind, word string }{
		{whyJoined, "joins"}, {whyLeft, "leaves"}, {whyExpired, "missed heartbeats"}, {whyChanged, "changed subscriptions"},
		{whyLeader, "new assignments by the leader"}, {whyRemoved, "removals"}, {whyReplaced, "restarted static members"},
	} {
		if n := kinds[k.kind]; n > 0 {
			out = append(out, fmt.Sprintf("%s: %d", k.word, n))
		}
	}
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// staticGone returns the static members that went silent and have not come back.
func (e *evidence) staticGone() []journalTrigger {
	if e.group == nil {
		return nil
	}
	here := map[string]bool{}
	for _, m := range e.group.Members {
		if m.Instance != nil {
			here[*m.Instance] = true
		}
	}
	return slices.DeleteFunc(e.triggers(whyExpired), func(t journalTrigger) bool { return t.Instance == "" || here[t.Instance] })
}

// staticMembers finds static members that are gone.
func (e *evidence) staticMembers() []finding {
	var out []finding
	if gone := e.staticGone(); len(gone) > 0 {
		out = append(out, finding{
			"static-member-gone",
			fmt.Sprintf("Static %s %s did not come back within %s session timeout (%s) and %s removed. Until then nobody read %s partitions.",
				verb(len(gone), "member", "members"), counted(gone), verb(len(gone), "its", "their"), timeouts(gone), verb(len(gone), "was", "were"), verb(len(gone), "its", "their")),
			"If it should run, start it. When you take a static member away for good, say so and nobody waits: muster groups members remove " + e.group.Name + " --instance-id " + gone[0].Instance + ".",
		})
	}
	return out
}

// noSyncs finds members that joined and then vanished.
func (e *evidence) noSyncs() []finding {
	why := e.triggers(whyNoSync)
	if len(why) == 0 {
		return nil
	}
	return []finding{{
		"no-sync",
		fmt.Sprintf("In the last %s, members joined and then did not ask for their assignment: %s.", formatDuration(e.since), counted(why)),
		"They died or lost the connection in the middle of a rebalance, or their rebalance timeout is too short for the leader's assignment. Look at their logs.",
	}}
}
