package metrics

import (
	"strconv"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"

	"muster/internal/meter"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// How many series each topic and each partition of a group has at most, by set.
const (
	kafkaPerGroupTopic     = 2
	kafkaPerGroupPartition = 2
	lagPerGroupTopic       = 1
	lagPerGroupPartition   = 3
)

// group is a group that is exported.
type group struct {
	*list.GroupRow
	rebalances []meter.Rebalances
	lag        lag.GroupLag
	known      bool // The lag is.
	partitions []lag.PartitionLag
}

// addGroups adds groups, within a number of series. Those with members or lag come first.
func (v *view) addGroups(a *admission, s *Settings, read func(func(*lag.Tracker)), budget int) {
	if v.snapshot.At.IsZero() {
		return // No one has looked yet.
	}
	rebalances := v.meters.Groups.Read()
	var groups []group
	var claims []claim
	for g := range v.snapshot.Groups.All() {
		if !s.Groups.has(g.Name) {
			continue
		}
		c := v.claimOfGroup(g, len(rebalances[g.Name]))
		if len(g.Name) > meter.LongestName {
			v.dropped[ofGroup] += c.whole
			v.dropped[ofGroupPartition] += c.parts
			continue
		}
		groups = append(groups, group{GroupRow: g, rebalances: rebalances[g.Name]})
		claims = append(claims, c)
	}
	a.admit(v.now, claims, budget)
	for from := 0; from < len(groups); from += atOnce {
		to := min(from+atOnce, len(groups))
		read(func(t *lag.Tracker) { fill(t, groups[from:to], claims[from:to]) })
	}
	v.addGroupCounts()
	for i := range groups {
		if claims[i].level == counted {
			v.dropped[ofGroup] += claims[i].whole
		} else {
			v.addGroup(&groups[i], claims[i].level)
		}
		if claims[i].level != parted {
			v.dropped[ofGroupPartition] += claims[i].parts
		}
	}
}

// atOnce is how many groups are looked up while passes wait.
const atOnce = 256

// fill adds how far those groups are behind that are exported.
func fill(t *lag.Tracker, groups []group, claims []claim) {
	for i := range groups {
		g := &groups[i]
		if claims[i].level == counted {
			continue
		}
		if g.lag, g.known = t.Of(g.Name); g.known {
			g.partitions = t.Partitions(g.Name)
		}
	}
}

// claimOfGroup counts the series of a group.
func (v *view) claimOfGroup(g *list.GroupRow, triggers int) claim {
	c := claim{name: g.Name, first: g.Members > 0 || g.Lag > 0, whole: perGroup(v.sets)}
	if v.on(KafkaExporter) {
		c.whole += kafkaPerGroupTopic * len(g.Topics)
		c.parts += kafkaPerGroupPartition * g.Partitions
	}
	if v.on(LagExporter) {
		c.whole += lagPerGroupTopic * len(g.Topics)
		c.parts += lagPerGroupPartition * g.Partitions
	}
	if v.on(Muster) {
		c.whole += triggers
	}
	return c
}

// addGroupCounts adds how many groups this broker coordinates.
func (v *view) addGroupCounts() {
	if !v.on(JMX) {
		return
	}
	states, offsets := map[string]int{}, 0
	for g := range v.snapshot.Groups.All() {
		states[g.State]++
		offsets += int(g.Offsets)
	}
	v.put(numGroupsFamily, float64(v.snapshot.Groups.Len()))
	v.put(numOffsetsFamily, float64(offsets))
	v.put(numStableFamily, float64(states["Stable"]))
	v.put(numEmptyFamily, float64(states["Empty"]))
	v.put(numPreparingFamily, float64(states["PreparingRebalance"]))
	v.put(numCompletingFamily, float64(states["CompletingRebalance"]))
}

// groupLabels are the labels of a group under the names of each set.
type groupLabels struct{ consumer, cluster, group *dto.LabelPair }

// addGroup adds a group.
func (v *view) addGroup(g *group, l level) {
	name := labelText(g.Name)
	labels := groupLabels{v.label(consumergroupLabel, name), v.label(clusterNameLabel, v.cluster.ID), v.label(groupLabel, name)}
	consumer, both := []*dto.LabelPair{labels.consumer}, []*dto.LabelPair{labels.cluster, labels.group}
	sets := map[string][]*dto.LabelPair{"consumergroup": consumer, "cluster_name group": both, "group": both[1:]}
	for i := range groupTable {
		if value, known := groupTable[i].value(g); known {
			v.put(families+family(i), value, sets[groupTable[i].labels]...)
		}
	}
	for _, r := range g.rebalances {
		v.put(rebalancesFamily, float64(r.Count), labels.group, v.label(triggerLabel, r.Trigger))
	}
	if g.known {
		v.addGroupTopics(g, labels, l)
	}
}

// addGroupTopics adds the topics of a group, whose partitions come together.
func (v *view) addGroupTopics(g *group, labels groupLabels, l level) {
	for from := 0; from < len(g.partitions); {
		to := from + 1
		for to < len(g.partitions) && g.partitions[to].Topic == g.partitions[from].Topic {
			to++
		}
		topic := v.label(topicLabel, g.partitions[from].Topic)
		offsets, records, known := 0.0, 0.0, false
		for i := from; i < to; i++ {
			p := &g.partitions[i]
			if !p.Known {
				continue // Of what has no leader, not even the offset is of now.
			}
			offsets, records, known = offsets+float64(p.Committed), records+float64(p.Lag), true
			if l == parted {
				v.addGroupPartition(p, labels, topic)
			}
		}
		if known { // What is not known is no 0.
			v.put(groupOffsetSumFamily, offsets, labels.consumer, topic)
			v.put(groupLagSumFamily, records, labels.consumer, topic)
			v.put(lagTopicSumFamily, records, labels.cluster, labels.group, topic)
		}
		from = to
	}
}

func (v *view) addGroupPartition(p *lag.PartitionLag, labels groupLabels, topic *dto.LabelPair) {
	partition := v.label(partitionLabel, strconv.Itoa(int(p.Partition)))
	v.put(groupOffsetFamily, float64(p.Committed), labels.consumer, topic, partition)
	v.put(lagOffsetFamily, float64(p.Committed), labels.cluster, labels.group, topic, partition)
	v.put(groupLagFamily, float64(p.Lag), labels.consumer, topic, partition)
	v.put(lagRecordsFamily, float64(p.Lag), labels.cluster, labels.group, topic, partition)
	v.put(lagSecondsFamily, p.Seconds, labels.cluster, labels.group, topic, partition)
}

// labelText makes a label of a name. Clients choose any bytes for the names of groups,
// and one that is no text would make Prometheus refuse everything.
func labelText(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}
