package explain

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"muster/internal/journal"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

const (
	// stuckAge is how old the first unread record of a partition must be before
	// the partition may count as stuck.
	stuckAge = 5 * time.Minute
	// stuckFactor is how many times older it must be than that of most others.
	stuckFactor = 10
)

// lagWithoutMembers finds a group that no one runs. Whoever assigns partitions by itself, as
// Flink and Spark do, is no member: a broker that watches the group sees its commits.
func (e *Evidence) lagWithoutMembers() []Finding {
	g := e.Group
	if g == nil || g.State != groupview.Empty || g.TotalLag == nil || *g.TotalLag == 0 {
		return nil
	}
	if e.Watched != nil && e.Watched.ReadOutside {
		return nil
	}
	waiting := words.Plural(int(*g.TotalLag), "record") + words.Verb(int(*g.TotalLag), " waits", " wait")
	if g.TotalLagAtLeast {
		waiting = "at least " + waiting
	}
	text := fmt.Sprintf("The group has no members, and %s to be read.", waiting)
	for _, entry := range slices.Backward(e.Entries) {
		if entry.Kind == journal.KindSettled && entry.After == 0 {
			text += fmt.Sprintf(" It has been empty since %s (%s).", words.Time(entry.Time, e.Now), words.Ago(entry.Time, e.Now))
			break
		}
	}
	return []Finding{{
		"lag-without-members", text,
		"Start its consumers. If the group is not needed any more: " + words.Command("groups delete", g.Name) + ".",
	}}
}

// stuckPartitions finds partitions that stand still while the others get on. One
// look cannot see an offset move, but it sees how old the next record is. A broker that
// watches the group has seen more.
func (e *Evidence) stuckPartitions() []Finding {
	if e.Watched != nil {
		return e.stoodStill()
	}
	if e.Group == nil || len(e.Group.Members) == 0 {
		return nil
	}
	var ages []float64
	for _, p := range e.Group.Partitions {
		if p.LagSeconds != nil && p.Committed != nil {
			ages = append(ages, *p.LagSeconds)
		}
	}
	slices.Sort(ages)
	if len(ages) < 2 {
		return nil
	}
	usual := ages[(len(ages)-1)/2]
	var stuck []groupview.Partition
	for _, p := range e.Group.Partitions {
		if _, held := e.heldBack(&p); held {
			continue // It is not the consumer that stands still.
		}
		if p.Committed != nil && p.LagSeconds != nil && *p.LagSeconds >= max(stuckAge.Seconds(), stuckFactor*usual) {
			stuck = append(stuck, p)
		}
	}
	sort.SliceStable(stuck, func(i, j int) bool { return *stuck[i].LagSeconds > *stuck[j].LagSeconds })
	var out []Finding
	for i, p := range stuck {
		if i == words.Named {
			break
		}
		owner := "It has no owner now."
		if p.Owner != nil {
			owner = "Its owner is " + e.Group.MemberName(*p.Owner) + "."
		}
		out = append(out, Finding{
			"stuck-partition",
			fmt.Sprintf("%s stands out: its next record, offset %d, is %s old, while half of the partitions are at most %s behind. %s", p.Name(), p.Next(), age(*p.LagSeconds), age(usual), owner),
			"Look in the owner's log for an error at that offset. " + seeAndSkip(e.Group.Name, p.Topic, p.Partition, p.Next()),
		})
	}
	return out
}

// seeAndSkip words how to look at a record, and how to go on behind it.
func seeAndSkip(group, topic string, partition int32, next int64) string {
	see := words.Command("consume", topic, "--partition", fmt.Sprint(partition), "--from", fmt.Sprint(next), "--count", "1")
	skip := words.Command("groups reset", group, "--topic", fmt.Sprintf("%s:%d", topic, partition), "--shift-by", "1")
	return fmt.Sprintf("See the record: %s. To skip it, stop the group, then: %s.", see, skip)
}

// lostRecords finds committed offsets outside of the log.
func (e *Evidence) lostRecords() []Finding {
	if e.Group == nil {
		return nil
	}
	var below, beyond []string
	var lost int64
	for _, p := range e.Group.Partitions {
		switch {
		case p.Committed == nil || p.LogStart == nil:
		case *p.Committed < *p.LogStart:
			lost += *p.LogStart - *p.Committed
			below = append(below, fmt.Sprintf("%s (committed %d, log start %d)", p.Name(), *p.Committed, *p.LogStart))
		case *p.Committed > *p.LogEnd:
			beyond = append(beyond, fmt.Sprintf("%s (committed %d, end %d)", p.Name(), *p.Committed, *p.LogEnd))
		}
	}
	var out []Finding
	if len(below) > 0 {
		out = append(out, Finding{
			"offsets-below-log-start",
			fmt.Sprintf("Records were deleted before the group read them: %d offsets in %s. They are not in the lag.", lost, words.List(below)),
			"The consumer goes on where its auto.offset.reset says. To keep records for longer, raise retention.ms or retention.bytes of the topic.",
		})
	}
	if len(beyond) > 0 {
		out = append(out, Finding{
			"offsets-beyond-log-end",
			"Committed offsets are beyond the end of the log: " + words.List(beyond) + ". The topic was probably deleted and created again.",
			"The consumer goes where its auto.offset.reset says, or ignores new records up to that offset. Stop the group, then: " + words.Command("groups reset", e.Group.Name, "--all-topics", "--to-earliest") + ".",
		})
	}
	return out
}

// age words how old a record is.
func age(seconds float64) string {
	return words.Duration(time.Duration(seconds * float64(time.Second)).Round(time.Second))
}
