package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

const (
	// stuckAge is how old the first unread record of a partition must be before
	// the partition may count as stuck.
	stuckAge = 5 * time.Minute
	// stuckFactor is how many times older it must be than that of most others.
	stuckFactor = 10
)

// lagWithoutMembers finds a group that nobody runs.
func (e *evidence) lagWithoutMembers() []finding {
	g := e.group
	if g == nil || g.State != stateEmpty || g.TotalLag == nil || *g.TotalLag == 0 {
		return nil
	}
	text := fmt.Sprintf("The group has no members, and %s to be read.", plural(int(*g.TotalLag), "record")+verb(int(*g.TotalLag), " waits", " wait"))
	for _, entry := range slices.Backward(e.entries) {
		if entry.Kind == entrySettled && entry.After == 0 {
			text += fmt.Sprintf(" It has been empty since %s (%s).", formatTime(entry.Time, e.now), ago(entry.Time, e.now))
			break
		}
	}
	return []finding{{
		"lag-without-members", text,
		"Start its consumers. If the group is not needed any more: muster groups delete " + g.Name + ".",
	}}
}

// stuckPartitions finds partitions that stand still while the others get on. One
// look cannot see an offset move, but it sees how old the next record is.
func (e *evidence) stuckPartitions() []finding {
	if e.group == nil || len(e.group.Members) == 0 {
		return nil
	}
	var ages []float64
	for _, p := range e.group.Partitions {
		if p.LagSeconds != nil && p.Committed != nil {
			ages = append(ages, *p.LagSeconds)
		}
	}
	slices.Sort(ages)
	if len(ages) < 2 {
		return nil
	}
	usual := ages[(len(ages)-1)/2]
	var stuck []groupPartition
	for _, p := range e.group.Partitions {
		if p.Committed != nil && p.LagSeconds != nil && *p.LagSeconds >= max(stuckAge.Seconds(), stuckFactor*usual) {
			stuck = append(stuck, p)
		}
	}
	slices.SortStableFunc(stuck, func(a, b groupPartition) int { return cmp.Compare(*b.LagSeconds, *a.LagSeconds) })
	var out []finding
	for i, p := range stuck {
		if i == namedAtMost {
			break
		}
		owner := "It has no owner now."
		if p.Owner != nil {
			owner = "Its owner is " + e.group.member(*p.Owner) + "."
		}
		out = append(out, finding{
			"stuck-partition",
			fmt.Sprintf("%s stands out: its next record, offset %d, is %s old, while half of the partitions are at most %s behind. %s", p.name(), p.next(), formatLagTime(p.LagSeconds), formatLagTime(&usual), owner),
			fmt.Sprintf("Look in the owner's log for an error at that offset. See the record: muster consume %s --partition %d --from %d --count 1. To skip it, stop the group, then: muster groups reset %s --topic %s:%d --shift-by 1.", p.Topic, p.Partition, p.next(), e.group.Name, p.Topic, p.Partition),
		})
	}
	return out
}

// member words a member by its id.
func (g *groupState) member(id string) string {
	for i := range g.Members {
		if g.Members[i].Member == id {
			return g.Members[i].String()
		}
	}
	return shortMember(id)
}

// lostRecords finds committed offsets outside of the log.
func (e *evidence) lostRecords() []finding {
	if e.group == nil {
		return nil
	}
	var below, beyond []string
	var lost int64
	for _, p := range e.group.Partitions {
		switch {
		case p.Committed == nil || p.LogStart == nil:
		case *p.Committed < *p.LogStart:
			lost += *p.LogStart - *p.Committed
			below = append(below, fmt.Sprintf("%s (committed %d, log start %d)", p.name(), *p.Committed, *p.LogStart))
		case *p.Committed > *p.LogEnd:
			beyond = append(beyond, fmt.Sprintf("%s (committed %d, end %d)", p.name(), *p.Committed, *p.LogEnd))
		}
	}
	var out []finding
	if len(below) > 0 {
		out = append(out, finding{
			"offsets-below-log-start",
			fmt.Sprintf("Records were deleted before the group read them: %d offsets in %s. They are not in the lag.", lost, list(below)),
			"The consumer goes on where its auto.offset.reset says. To keep records for longer, raise retention.ms or retention.bytes of the topic.",
		})
	}
	if len(beyond) > 0 {
		out = append(out, finding{
			"offsets-beyond-log-end",
			"Committed offsets are beyond the end of the log: " + list(beyond) + ". The topic was probably deleted and created again.",
			"The consumer goes where its auto.offset.reset says, or ignores new records up to that offset. Stop the group, then: muster groups reset " + e.group.Name + " --all-topics --to-earliest.",
		})
	}
	return out
}
