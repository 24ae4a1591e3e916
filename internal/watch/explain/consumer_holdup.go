package explain

import (
	"fmt"
	"slices"
	"time"

	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// slowMoment is how long something takes that is worth a word.
const slowMoment = time.Second

// slowHeartbeat is how long a member may be silent without a word: two of the usual
// intervals.
const slowHeartbeat = 10 * time.Second

// epochAway is the epoch of a static member that has left for a while.
const epochAway = -2

// holdup is a member that others wait for.
type holdup struct {
	member  *groupview.Member
	parts   []groupview.TopicPartition // that it has yet to give up
	told    bool                       // that it is to
	waiting []*groupview.Member
}

// isBehind says whether a member has not come to the target yet.
func (e *Evidence) isBehind(m *groupview.Member) bool {
	return m.Epoch != nil && e.Group.TargetEpoch != nil && *m.Epoch < *e.Group.TargetEpoch
}

// hasAll says whether a member has what it is to have.
func (e *Evidence) hasAll(m *groupview.Member) bool {
	return !e.isBehind(m) && !m.Waits && len(m.Revoking) == 0 && len(partsOf(m.Target)) == len(partsOf(m.Assigned))
}

func partsOf(assigned []groupview.Assigned) (out []groupview.TopicPartition) {
	for _, t := range assigned {
		for _, p := range t.Partitions {
			out = append(out, groupview.TopicPartition{Topic: t.Topic, Partition: p})
		}
	}
	return out
}

// heldUp finds who has partitions that others are to have, and who these are.
func (e *Evidence) heldUp() []*holdup {
	wants := map[groupview.TopicPartition]*groupview.Member{}
	for i := range e.Group.Members {
		m := &e.Group.Members[i]
		for _, p := range partsOf(m.Target) {
			wants[p] = m
		}
	}
	var out []*holdup
	for i := range e.Group.Members {
		m := &e.Group.Members[i]
		h := &holdup{member: m, told: len(m.Revoking) > 0, parts: partsOf(m.Revoking)}
		if !h.told {
			h.parts = slices.DeleteFunc(partsOf(m.Assigned), func(p groupview.TopicPartition) bool { return wants[p] == m })
		}
		for _, p := range h.parts {
			if other := wants[p]; other != nil && other != m && !slices.Contains(h.waiting, other) {
				h.waiting = append(h.waiting, other)
			}
		}
		if len(h.parts) > 0 {
			out = append(out, h)
		}
	}
	return out
}

// holdups words who holds up whom, for how long, and when that ends.
func (e *Evidence) holdups() []string {
	var out []string
	held := e.heldUp()
	for i, h := range held {
		if i == words.Named {
			out = append(out, fmt.Sprintf("%s more have partitions that they are to give up.", words.Plural(len(held)-i, "member")))
			break
		}
		out = append(out, e.holdupText(h))
	}
	var quiet []*groupview.Member
	for i := range e.Group.Members {
		m := &e.Group.Members[i]
		if e.isBehind(m) && *m.Epoch != epochAway && !slices.ContainsFunc(held, func(h *holdup) bool { return h.member == m }) {
			quiet = append(quiet, m)
		}
	}
	if n := len(quiet); n > 0 {
		out = append(out, fmt.Sprintf("%s %s been told yet, which the next heartbeat does.", listMembers(quiet), words.Verb(n, "has not", "have not")))
	}
	return out
}

// holdupText words one of them.
func (e *Evidence) holdupText(h *holdup) string {
	var names []string
	for _, p := range h.parts {
		names = append(names, fmt.Sprintf("%s-%d", p.Topic, p.Partition))
	}
	what := words.List(names)
	waits := ""
	if n := len(h.waiting); n > 0 {
		waits = fmt.Sprintf(", which %s %s for", listMembers(h.waiting), words.Verb(n, "waits", "wait"))
	}
	switch {
	case *orZero(h.member.Epoch) == epochAway:
		return fmt.Sprintf("%s, a static member, has left for a while and keeps %s%s; if it does not come back within the session timeout, it is removed.", h.member, what, waits)
	case !h.told:
		return fmt.Sprintf("%s still has %s%s. It is told to give %s up with its next heartbeat.", h.member, what, waits, words.Verb(len(names), "it", "them"))
	}
	text := fmt.Sprintf("%s has not given up %s%s.", h.member, what, waits)
	if since := h.member.Since; since != nil {
		text += fmt.Sprintf(" It was told to do so %s.", words.Ago(*since, e.Now))
	}
	if heard := h.member.Heard; heard != nil && e.Now.Sub(*heard) >= slowHeartbeat {
		text += fmt.Sprintf(" It has not sent a heartbeat for %s either.", words.Duration(e.Now.Sub(*heard).Round(time.Second)))
	}
	return text + e.ends(h.member)
}

// ends words when a member that does not give up its partitions is removed.
func (e *Evidence) ends(m *groupview.Member) string {
	if m.Until == nil {
		return " When its rebalance timeout ends, it is removed from the group."
	}
	until, why := *m.Until, "its rebalance timeout"
	if m.Session != nil && m.Session.Before(until) && e.Now.Sub(*m.Heard) >= slowHeartbeat {
		until, why = *m.Session, "the session timeout"
	}
	if left := until.Sub(e.Now); left >= time.Second {
		return fmt.Sprintf(" If nothing changes it is removed from the group at %s (in %s), when %s ends, and the others get its partitions.", words.Time(until, e.Now), words.Duration(left.Round(time.Second)), why)
	}
	return fmt.Sprintf(" %s is over: it is removed from the group now, and the others get its partitions.", words.Capital(why))
}

func orZero(n *int32) *int32 {
	if n == nil {
		return new(int32)
	}
	return n
}

// progress words how far the members of a consumer group have come.
func (e *Evidence) progress() string {
	g := e.Group
	members := words.Plural(len(g.Members), "member")
	if g.State == groupview.Assigning {
		return fmt.Sprintf("its epoch has risen, and the broker is about to share out the partitions among its %s anew.", members)
	}
	there := 0
	for i := range g.Members {
		if e.hasAll(&g.Members[i]) {
			there++
		}
	}
	if there == 0 {
		return fmt.Sprintf("its %s %s on the way to the partitions that the %s assignor gave %s.", members, words.Verb(len(g.Members), "is", "are"), g.Assignor, words.Verb(len(g.Members), "it", "them"))
	}
	return fmt.Sprintf("%d of its %s %s all the partitions that the %s assignor gave %s; the others are on their way.", there, members, words.Verb(there, "has", "have"), g.Assignor, words.Verb(there, "it", "them"))
}
