package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/words"
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
func (e *Evidence) underWay() *Entry {
	if e.Group == nil || !e.Group.Rebalances() {
		return nil
	}
	var first *Entry
	for i := range e.Entries {
		switch entry := &e.Entries[i]; {
		case entry.Kind == journal.KindSettled || entry.Kind == journal.KindDeleted || entry.Kind == journal.KindLoaded:
			if first = nil; entry.resumes() {
				first = entry
			}
		case entry.isStart() && first == nil:
			first = entry
		}
	}
	return first
}

// lastStart returns when the rebalance under way last began to wait for joins.
func (e *Evidence) lastStart() *Entry {
	if e.underWay() == nil {
		return nil
	}
	var last *Entry
	for i := range e.Entries {
		if e.Entries[i].isStart() {
			last = &e.Entries[i]
		}
	}
	return last
}

// settled returns the rebalances that have come to their end.
func (e *Evidence) settled() []*Entry {
	var out []*Entry
	for i := range e.Entries {
		if e.Entries[i].Kind == journal.KindSettled {
			out = append(out, &e.Entries[i])
		}
	}
	return out
}

// triggers returns the reasons of one kind: of all rebalances that have settled,
// and of the one under way.
func (e *Evidence) triggers(kind journal.TriggerKind) []journal.Trigger {
	var out []journal.Trigger
	entries := e.settled()
	if now := e.underWay(); now != nil && !now.assigns() {
		entries = append(entries, now)
	} else if now != nil {
		entries = append(entries, e.risen()...)
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

// culprits names who caused something, and how often if more than once.
func culprits(why []journal.Trigger) []string {
	var names []string
	count := map[string]int{}
	for _, t := range why {
		// A process that comes back has another member id.
		who := name(t.Who)
		if t.Instance == "" && t.ClientID != "" {
			who = t.ClientID + " at " + t.Host
		}
		if count[who]++; count[who] == 1 {
			names = append(names, who)
		}
	}
	for i, who := range names {
		if n := count[who]; n > 1 {
			names[i] = fmt.Sprintf("%s (%d times)", who, n)
		}
	}
	return names
}

// counted words culprits.
func counted(why []journal.Trigger) string { return words.List(culprits(why)) }

// stuckRebalance finds a rebalance that does not end.
func (e *Evidence) stuckRebalance() []Finding {
	if e.Group == nil || !e.Group.Rebalances() || e.assigns() {
		return nil
	}
	started := e.underWay()
	since := "for " + words.Duration(e.Since) + " or longer"
	switch {
	case started != nil && e.Now.Sub(started.Time) < stuckRebalanceAge:
		return nil
	case started != nil:
		since = "for " + words.Duration(e.Now.Sub(started.Time))
	case !e.Journal || len(e.Entries) > 0:
		return nil // It began just now, or no one knows when.
	}
	if e.Group.State == groupview.Completing {
		return []Finding{{
			"stuck-rebalance",
			fmt.Sprintf("The group has been in %s %s: all members have joined, and its leader has not sent the assignment. No one reads meanwhile.", e.Group.State, since),
			"Look at the leader: it may be computing a large assignment, or be unable to reach the broker. It is removed when its rebalance timeout ends (max.poll.interval.ms in the Java client).",
		}}
	}
	waits := "members that have not joined again"
	if last := e.lastStart(); last != nil && last.WaitingN > 0 {
		waits += fmt.Sprintf(" (at %s: %s)", words.Time(last.Time, e.Now), last.waiting())
	}
	return []Finding{{
		"stuck-rebalance",
		fmt.Sprintf("The group has been in %s %s: it waits for %s. No one reads meanwhile, unless the assignor is cooperative.", e.Group.State, since, waits),
		"A member that is busy joins again only when it next polls. The group waits for at most the rebalance timeout (max.poll.interval.ms in the Java client, 5 minutes by default): lower it, and process fewer records between polls (max.poll.records).",
	}}
}

// heartbeatsMissed finds members that were removed for their silence.
func (e *Evidence) heartbeatsMissed() []Finding {
	gone := e.gone()
	expired := slices.DeleteFunc(e.triggers(journal.TriggerExpired), func(t journal.Trigger) bool { return t.New || gone(t) })
	if len(expired) == 0 {
		return nil
	}
	return []Finding{{
		"heartbeats-missed",
		fmt.Sprintf("In the last %s, %s heartbeats and %s removed: %s.", words.Past(e.Since), words.Plural(len(expired), "member")+" missed "+words.Verb(len(expired), "its", "their"), words.Verb(len(expired), "was", "were"), counted(expired)),
		"Look there for a crash, a kill without shutdown, a long garbage collection or a broken network. " + e.raiseSession(timeouts(expired)),
	}}
}

// pollTimeouts finds members that left because they processed for too long; the
// client says so when it leaves.
func (e *Evidence) pollTimeouts() []Finding {
	slow := slices.DeleteFunc(e.triggers(journal.TriggerLeft), func(t journal.Trigger) bool {
		reason := strings.ToLower(t.Reason)
		return !strings.Contains(reason, "poll timeout") && !strings.Contains(reason, "poll interval") && !strings.Contains(reason, "max.poll.interval")
	})
	if len(slow) == 0 {
		return nil
	}
	return []Finding{{
		"poll-interval-exceeded",
		fmt.Sprintf("In the last %s, %s because the application did not poll in time: %s.", words.Past(e.Since), words.Plural(len(slow), "member")+" left", counted(slow)),
		"Raise max.poll.interval.ms above the longest time that a batch takes, or lower max.poll.records.",
	}}
}

// lateJoins finds members that let the others wait, or came too late.
func (e *Evidence) lateJoins() []Finding {
	var missed, pending []journal.Trigger
	var slowest *Entry
	for _, entry := range e.settled() {
		for _, who := range entry.Missed {
			switch {
			case who.Pending:
				pending = append(pending, journal.Trigger{Who: who.Who})
			case !who.Kept:
				missed = append(missed, journal.Trigger{Who: who.Who})
			}
		}
		late := entry.Before > 0 && entry.JoinPhase >= slowJoin && len(entry.Slowest) > 0
		if late && (slowest == nil || entry.JoinPhase > slowest.JoinPhase) {
			slowest = entry
		}
	}
	var out []Finding
	if len(missed) > 0 {
		out = append(out, Finding{
			"missed-rebalance",
			fmt.Sprintf("In the last %s, members did not join again within the rebalance timeout and were removed: %s.", words.Past(e.Since), counted(missed)),
			"They were busy for longer than that. Raise max.poll.interval.ms (which is the rebalance timeout), or lower max.poll.records.",
		})
	}
	if len(pending) > 0 {
		out = append(out, Finding{
			"never-joined",
			fmt.Sprintf("In the last %s, the group waited in vain for clients that were given a member id and did not join with it: %s.", words.Past(e.Since), counted(pending)),
			"They died or gave up between two requests: look at their logs, and for a process that is restarted over and over.",
		})
	}
	if slowest != nil {
		out = append(out, Finding{
			"slow-joiner",
			fmt.Sprintf("At %s the whole group waited for %s to join again, for %s.", words.Time(slowest.Started, e.Now), name(slowest.Slowest[0].Who), words.Duration(slowest.Slowest[0].Waited)),
			"A member joins again only when it next polls: lower max.poll.records, or process records outside of the poll loop. With the cooperative-sticky assignor the others go on reading meanwhile.",
		})
	}
	return out
}

// slowLeader finds leaders that take long to assign.
func (e *Evidence) slowLeader() []Finding {
	var worst *Entry
	for _, entry := range e.settled() {
		if entry.SyncPhase >= slowAssign && (worst == nil || entry.SyncPhase > worst.SyncPhase) {
			worst = entry
		}
	}
	if worst == nil || worst.Leader == nil {
		return nil
	}
	return []Finding{{
		"slow-leader",
		fmt.Sprintf("At %s the leader, %s, took %s to assign %s to %s.", words.Time(worst.Started, e.Now), name(*worst.Leader), words.Duration(worst.SyncPhase), words.Plural(worst.PartitionN, "partition"), words.Plural(worst.After, "member")),
		"Look at that process: CPU, garbage collection, its assignor. Sticky assignors are slow in large groups of some clients; range is fast.",
	}}
}

// raiseSession words which setting to raise if a process only pauses.
func (e *Evidence) raiseSession(now string) string {
	if e.assigned() {
		return fmt.Sprintf("If the process only paused, raise the session timeout above the pause. In the consumer protocol it is the broker's: group.consumer.session.timeout.ms (now %s).", now)
	}
	return fmt.Sprintf("If the process only paused, raise its session.timeout.ms (now %s) above the pause, and keep heartbeat.interval.ms at a third of it.", now)
}

// storm finds many rebalances in a short time.
func (e *Evidence) storm() []Finding {
	if e.assigned() {
		return e.flapping()
	}
	worst := densest(e.settled())
	if len(worst) < stormCount {
		return nil
	}
	kinds := map[journal.TriggerKind]int{}
	for _, entry := range worst {
		for _, t := range entry.Triggers {
			kinds[t.Kind]++
		}
	}
	change := "A rolling deploy does this when members leave and join one by one. Give each a group.instance.id that it keeps over restarts, and a session.timeout.ms longer than a restart: then a restart causes no rebalance. Cooperative-sticky makes each one cheaper."
	if kinds[journal.TriggerExpired]*2 >= len(worst) {
		change = "Most of it is members that miss heartbeats and come back: see above."
	}
	return []Finding{{
		"rebalance-storm",
		fmt.Sprintf("There were %d rebalances between %s and %s%s.", len(worst), words.Time(worst[0].Time, e.Now), words.Time(worst[len(worst)-1].Time, e.Now), reasonCounts(kinds)),
		change,
	}}
}

// densest returns as many entries as there are in any one window, of those in order.
func densest(all []*Entry) (worst []*Entry) {
	for from, to := 0, 0; to < len(all); to++ {
		for all[to].Time.Sub(all[from].Time) > stormWindow {
			from++
		}
		if to-from+1 > len(worst) {
			worst = all[from : to+1]
		}
	}
	return worst
}

// reasonCounts words how often members came and went.
func reasonCounts(kinds map[journal.TriggerKind]int) string {
	out := counts(kinds)
	if len(out) == 0 {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

// gone returns what says whether someone is a static member that has not come back.
func (e *Evidence) gone() func(journal.Trigger) bool {
	if e.Group == nil {
		return func(journal.Trigger) bool { return false }
	}
	here := map[string]bool{}
	for _, m := range e.Group.Members {
		if m.Instance != nil {
			here[*m.Instance] = true
		}
	}
	return func(t journal.Trigger) bool { return t.Instance != "" && !here[t.Instance] }
}

// staticGone returns the static members that went silent and have not come back.
func (e *Evidence) staticGone() []journal.Trigger {
	gone := e.gone()
	return slices.DeleteFunc(e.triggers(journal.TriggerExpired), func(t journal.Trigger) bool { return !gone(t) })
}

// staticMembers finds static members that are gone.
func (e *Evidence) staticMembers() []Finding {
	var out []Finding
	if gone := e.staticGone(); len(gone) > 0 {
		who := culprits(gone) // One of them may have gone more than once.
		n := len(who)
		out = append(out, Finding{
			"static-member-gone",
			fmt.Sprintf("Static %s %s did not come back within %s session timeout (%s) and %s removed. Until then no one read %s partitions.",
				words.Verb(n, "member", "members"), words.List(who), words.Verb(n, "its", "their"), timeouts(gone), words.Verb(n, "was", "were"), words.Verb(n, "its", "their")),
			"If it should run, start it. When you take a static member away for good, say so and no one waits: " + words.Command("groups members remove", e.Group.Name, "--instance-id", gone[0].Instance) + ".",
		})
	}
	return out
}

// noSyncs finds members that joined and then vanished.
func (e *Evidence) noSyncs() []Finding {
	why := e.triggers(journal.TriggerNoSync)
	if len(why) == 0 {
		return nil
	}
	return []Finding{{
		"no-sync",
		fmt.Sprintf("In the last %s, members joined and then did not ask for their assignment: %s.", words.Past(e.Since), counted(why)),
		"They died or lost the connection in the middle of a rebalance, or their rebalance timeout is too short for the leader's assignment. Look at their logs.",
	}}
}

// tooLarge finds assignments that could not be stored.
func (e *Evidence) tooLarge() []Finding {
	why := e.triggers(journal.TriggerTooLarge)
	if len(why) == 0 {
		return nil
	}
	last := why[len(why)-1]
	return []Finding{{
		"assignment-too-large",
		fmt.Sprintf("In the last %s, the leader's assignment was refused %s, because the group's record would have been too large: %s, and %s can be stored. The group does not get past its rebalance.",
			words.Past(e.Since), words.Times(len(why)), words.Size(int64(last.Bytes)), words.Size(int64(last.MaxBytes))),
		"The record has every member's subscription and assignment: let fewer members subscribe to fewer topics, as several groups, or use an assignor that keeps less in its user data.",
	}}
}
