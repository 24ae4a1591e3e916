package metrics

import (
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// values returns what is said of a group, by name.
func values(g *group) map[string]float64 {
	out := map[string]float64{}
	for i := range groupTable {
		if n, known := groupTable[i].value(g); known {
			out[groupTable[i].name] = n
		}
	}
	return out
}

func TestEachMetricOfAGroupHasItsValue(t *testing.T) {
	g := &group{
		GroupRow: &list.GroupRow{Name: "billing", Members: 3, State: "Stable", Rebalanced: new(time.UnixMilli(1_700_000_000_500))}, known: true,
		lag: lag.GroupLag{
			Total: lag.Total{Lag: 70, Max: 50}, Seconds: 12.5, CatchUp: lag.Catching, CatchUpTime: 90 * time.Second, Stuck: 4, Poison: 5, Margin: 600,
		},
		partitions: []lag.PartitionLag{{}, {Known: true}},
	}
	outside := map[string]float64{
		"kafka_consumergroup_members": 3, "kafka_consumergroup_group_state": 3, "muster_group_last_rebalance_timestamp_seconds": 1_700_000_000.5,
	}
	want := maps.Clone(outside)
	maps.Copy(want, map[string]float64{
		"kafka_consumergroup_group_max_lag": 50, "kafka_consumergroup_group_max_lag_seconds": 12.5, "kafka_consumergroup_group_sum_lag": 70,
		"muster_group_catchup_seconds": 90, "muster_group_retention_margin_seconds": 600, "muster_group_stuck_partitions": 4, "muster_group_poison_suspects": 5,
	})
	if got := values(g); !maps.Equal(got, want) || len(want) != len(groupTable) {
		t.Errorf("%v\nwant %v", got, want)
	}
	// What is not known is no 0.
	for name, change := range map[string]func(*group){
		"not watched": func(g *group) { g.known = false }, "partitions without a leader": func(g *group) { g.partitions = g.partitions[:1] },
	} {
		unknown := *g
		change(&unknown)
		assert.EqualMaps(t, values(&unknown), outside, "%s", name)
	}
	g.lag.CatchUp, g.lag.Margin, g.State, g.Rebalanced = lag.Unknown, math.Inf(1), "Odd", nil
	for _, name := range []string{"muster_group_catchup_seconds", "muster_group_retention_margin_seconds", "kafka_consumergroup_group_state", "muster_group_last_rebalance_timestamp_seconds"} {
		if n, known := values(g)[name]; known {
			t.Errorf("%s is %v", name, n)
		}
	}
	for state, want := range map[lag.CatchUp]float64{lag.CaughtUp: 0, lag.NotCatching: math.Inf(1)} {
		g.lag.CatchUp = state
		assert.Equal(t, values(g)["muster_group_catchup_seconds"], want, "%v", state)
	}
}

// A group's series are counted before they are made.
func TestSeriesOfAGroupAreCountedBySet(t *testing.T) {
	assert.Equal(t, fmt.Sprint(perGroup(KafkaExporter), perGroup(LagExporter), perGroup(Muster), perGroup(JMX), perGroup(KafkaExporter|Muster)), "1 4 5 0 6")
}
