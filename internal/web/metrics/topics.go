package metrics

import (
	"strconv"

	"muster/internal/meter"
	"muster/internal/watch"
)

// How many series a topic and each of its partitions has, by set.
const (
	kafkaPerPartition = 7
	lagPerPartition   = 2
	jmxPerPartition   = 3
	jmxPerTopic       = 7
)

// topicClaim is a topic that wants to be exported.
type topicClaim struct {
	*watch.Topic
	traffic meter.Traffic
}

// addTopics adds topics and their partitions, within a number of series, and returns how
// many these were. Topics of users come first.
func (v *view) addTopics(a *admission, s *Settings, budget int) int {
	var topics []topicClaim
	var claims []claim
	for i := range v.snapshot.Topics {
		t := &v.snapshot.Topics[i]
		if !s.Topics.has(t.Name) {
			continue
		}
		c := topicClaim{Topic: t, traffic: v.meters.Topics.Read(t.Name)}
		topics = append(topics, c)
		claims = append(claims, v.claimOf(&c))
	}
	used := a.admit(v.now, claims, budget)
	for i := range topics {
		c := &claims[i]
		if c.level == counted {
			v.dropped[ofTopic] += c.whole
		} else {
			v.addTopic(&topics[i])
		}
		if c.level == parted {
			v.addPartitions(topics[i].Topic)
		} else {
			v.dropped[ofTopicPartition] += c.parts
		}
	}
	return used
}

// claimOf counts the series of a topic.
func (v *view) claimOf(t *topicClaim) claim {
	c := claim{name: t.Name, first: !t.Internal}
	first := v.cluster.isFirst()
	if first && v.on(KafkaExporter) {
		c.whole++
	}
	if v.on(JMX) && t.traffic != (meter.Traffic{}) {
		c.whole += jmxPerTopic
	}
	here := 0
	if v.on(KafkaExporter) {
		here += kafkaPerPartition
	}
	if v.on(LagExporter) {
		here += lagPerPartition
	}
	if v.on(JMX) {
		here += jmxPerPartition
	}
	for i := range t.Partitions {
		switch p := &t.Partitions[i]; {
		case p.Here:
			c.parts += here
		case p.Leader < 0 && first && v.on(KafkaExporter):
			c.parts++
		}
	}
	return c
}

// addTopic adds what is of a topic as a whole. As in Kafka there is nothing of its
// traffic before there is any.
func (v *view) addTopic(t *topicClaim) {
	topic := v.label(topicLabel, t.Name)
	if v.cluster.isFirst() {
		v.put(topicPartitionsFamily, float64(len(t.Partitions)), topic)
	}
	n := &t.traffic
	if *n == (meter.Traffic{}) {
		return
	}
	v.put(messagesInFamily, float64(n.Records), topic)
	v.put(bytesInFamily, float64(n.BytesIn), topic)
	v.put(bytesOutFamily, float64(n.BytesOut), topic)
	v.put(produceRequestsFamily, float64(n.Produced), topic)
	v.put(fetchRequestsFamily, float64(n.Fetched), topic)
	v.put(failedProducesFamily, float64(n.Refused), topic)
	v.put(failedFetchesFamily, float64(n.Failed), topic)
}

// addPartitions adds the partitions of a topic that this broker leads. Those that no one
// leads are told by the first broker.
func (v *view) addPartitions(t *watch.Topic) {
	cluster, topic := v.label(clusterNameLabel, v.cluster.ID), v.label(topicLabel, t.Name)
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if !p.Here && (p.Leader >= 0 || !v.cluster.isFirst()) {
			continue
		}
		partition := v.label(partitionLabel, strconv.Itoa(int(p.Number)))
		v.put(leaderFamily, float64(p.Leader), topic, partition)
		if !p.Here {
			continue
		}
		v.put(currentOffsetFamily, float64(p.End), topic, partition)
		v.put(oldestOffsetFamily, float64(p.Start), topic, partition)
		v.put(replicasFamily, 1, topic, partition)
		v.put(inSyncFamily, 1, topic, partition)
		v.put(preferredFamily, 1, topic, partition)
		v.put(underReplicatedFamily, 0, topic, partition)
		v.put(latestOffsetFamily, float64(p.End), cluster, topic, partition)
		v.put(earliestOffsetFamily, float64(p.Start), cluster, topic, partition)
		v.put(logStartFamily, float64(p.Start), topic, partition)
		v.put(logEndFamily, float64(p.End), topic, partition)
		if p.Bytes >= 0 {
			v.put(logSizeFamily, float64(p.Bytes), topic, partition)
		}
	}
}
