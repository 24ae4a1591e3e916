package metrics

import (
	"math"
	"slices"

	"muster/internal/watch/explain"
	"muster/internal/watch/lag"
)

// groupEntry is a family with one value of each group.
type groupEntry struct {
	entry
	value func(*group) (value float64, known bool)
}

// groupTable lists the families with one value of each group. Those that belong to a
// finding are in the table of findings.
var groupTable = append([]groupEntry{
	{
		entry{KafkaExporter, gauge, "kafka_consumergroup_members", "consumergroup", "How many members a group has."},
		func(g *group) (float64, bool) { return float64(g.Members), true },
	},
	{
		entry{LagExporter, gauge, "kafka_consumergroup_group_max_lag", "cluster_name group", "The most records that a group has yet to read of one partition."},
		measured(func(l *lag.GroupLag) (float64, bool) { return float64(l.Max), true }),
	},
	{
		entry{LagExporter, gauge, "kafka_consumergroup_group_max_lag_seconds", "cluster_name group", "How long ago the first record was appended that a group has yet to read, 0 without lag."},
		measured(func(l *lag.GroupLag) (float64, bool) { return l.Seconds, true }),
	},
	{
		entry{LagExporter, gauge, "kafka_consumergroup_group_sum_lag", "cluster_name group", "Records that a group has yet to read."},
		measured(func(l *lag.GroupLag) (float64, bool) { return float64(l.Lag), true }),
	},
	{
		entry{LagExporter, gauge, "kafka_consumergroup_group_state", "cluster_name group", "1 PreparingRebalance, 2 CompletingRebalance, 3 Stable, 4 Dead, 5 Empty, 6 Assigning, 7 Reconciling."},
		func(g *group) (n float64, known bool) { n, known = stateNumbers[g.State]; return n, known },
	},
	{
		entry{Muster, gauge, "muster_group_catchup_seconds", "group", "How long a group takes to have read everything, +Inf if it does not get nearer. Absent until it is known."},
		measured(catchUp),
	},
	{
		entry{Muster, gauge, "muster_group_last_rebalance_timestamp_seconds", "group", "When the last rebalance of a group ended."},
		lastRebalance,
	},
	{
		entry{Muster, gauge, "muster_group_retention_margin_seconds", "group", "When retention deletes the first record that a group has yet to read, at the earliest. Absent without lag or limit."},
		measured(func(l *lag.GroupLag) (float64, bool) { return l.Margin, !math.IsInf(l.Margin, 1) }),
	},
}, ofFindings()...)

// ofFindings are the metrics of findings.
func ofFindings() (out []groupEntry) {
	for _, k := range explain.WatchedKinds {
		if m := k.Metric; m != nil {
			out = append(out, groupEntry{
				entry{Muster, gauge, m.Name, "group", m.Help},
				measured(func(l *lag.GroupLag) (float64, bool) { return m.Value(l), true }),
			})
		}
	}
	return out
}

// measured is a value of how far a group is behind. If that is known of none of its
// partitions, it is no 0.
func measured(value func(*lag.GroupLag) (float64, bool)) func(*group) (float64, bool) {
	return func(g *group) (float64, bool) {
		if !g.known || len(g.partitions) > 0 && !slices.ContainsFunc(g.partitions, func(p lag.PartitionLag) bool { return p.Known }) {
			return 0, false
		}
		return value(&g.lag)
	}
}

func lastRebalance(g *group) (seconds float64, known bool) {
	if g.Rebalanced == nil {
		return 0, false
	}
	return float64(g.Rebalanced.UnixMilli()) / 1000, true
}

func catchUp(l *lag.GroupLag) (seconds float64, known bool) {
	switch l.CatchUp {
	case lag.CaughtUp:
		return 0, true
	case lag.Catching:
		return l.CatchUpTime.Seconds(), true
	case lag.NotCatching:
		return math.Inf(1), true
	}
	return 0, false
}

// stateNumbers are those of klag-exporter.
var stateNumbers = map[string]float64{
	"PreparingRebalance": 1, "CompletingRebalance": 2, "Stable": 3, "Dead": 4, "Empty": 5, "Assigning": 6, "Reconciling": 7,
}

func groupEntries() []entry {
	out := make([]entry, len(groupTable))
	for i := range groupTable {
		out[i] = groupTable[i].entry
	}
	return out
}

// perGroup is how many series a group as a whole has at most, of the sets that are exported.
func perGroup(sets Set) (n int) {
	for i := range groupTable {
		if groupTable[i].set&sets != 0 {
			n++
		}
	}
	return n
}
