package metrics

import "muster/internal/meter"

// addCounters adds what was counted besides requests, topics and groups.
func (v *view) addCounters() {
	if !v.on(Muster) {
		return
	}
	m := v.meters
	for l, n := range m.Logins.Read() {
		v.put(loginsFamily, n, v.label(listenerLabel, l[0]), v.label(mechanismLabel, l[1]), v.label(resultLabel, l[2]))
	}
	for l, n := range m.Denials.Read() {
		v.put(denialsFamily, n, v.label(operationLabel, l[0]), v.label(resourceTypeLabel, l[1]))
	}
	for l, n := range m.Throttled.Read() {
		v.put(throttledFamily, n, v.label(kindLabel, l[0]))
	}
	v.put(journalDroppedFamily, float64(m.JournalDropped.Load()))
	v.put(panicsFamily, float64(m.Panics.Load()))
	phases := m.Groups.Phases()
	for _, phase := range []string{meter.Join, meter.Reconcile, meter.Sync} {
		v.putDurations(rebalanceTookFamily, phases[phase], v.label(phaseLabel, phase))
	}
	if v.cluster.Flushes {
		v.putDurations(flushTookFamily, m.Flushes.Read())
	}
}

// The levels of what there was no room for.
const (
	ofGroup = iota
	ofGroupPartition
	ofTopic
	ofTopicPartition
	levels
)

var levelNames = [levels]string{"group", "partition", "topic", "topic_partition"}

// droppedSeries is how many series tell of it.
const droppedSeries = levels

// addDropped adds how many series there was no room for.
func (v *view) addDropped() {
	for level, n := range v.dropped {
		v.put(droppedFamily, float64(n), v.label(levelLabel, levelNames[level]))
	}
}
