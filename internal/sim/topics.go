package sim

import (
	"fmt"
	"slices"

	"muster/internal/group"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// topics is the metadata of topics, which clients and brokers learn of at once. A
// topic without partitions does not exist.
type topics struct {
	partitions []int
	ids        []byte
	version    int // counts changes
	image      *metadata.Image
	defaults   *config.Broker
}

func newTopics(partitions []int) topics {
	t := topics{partitions: slices.Clone(partitions), ids: make([]byte, len(partitions)), defaults: &config.Broker{}}
	for i := range partitions {
		t.ids[i] = byte(i + 1)
	}
	t.publish()
	return t
}

func topicName(i int) string { return fmt.Sprintf("topic-%c", 'a'+i) }

// publish makes the image anew.
func (t *topics) publish() {
	edit := metadata.NewImage(t.defaults).Edit()
	for i, n := range t.partitions {
		if n > 0 {
			edit.PutTopic(metadata.Topic{Name: topicName(i), ID: metadata.TopicID{15: t.ids[i]}, Partitions: make([]metadata.Partition, n)})
		}
	}
	for i, name := range []string{metadata.OffsetsTopic, metadata.TransactionsTopic} {
		edit.PutTopic(metadata.Topic{Name: name, ID: metadata.TopicID{14: byte(i + 1)}, Partitions: make([]metadata.Partition, 1)})
	}
	t.image = edit.Image()
}

// id returns a topic's id, zero if it does not exist.
func (t *topics) id(name string) byte {
	if topic := t.image.Topic(name); topic != nil {
		return topic.ID[15]
	}
	return 0
}

// all lists the partitions of all topics, in order.
func (t *topics) all() []topicPartition {
	var out []topicPartition
	for i, n := range t.partitions {
		for p := range n {
			out = append(out, topicPartition{topicName(i), int32(p)})
		}
	}
	return out
}

// changeTopics gives a topic more partitions, deletes it, or creates it again
// under another id. Leaders notice and join again; a coordinator that is loading
// sees it when it has loaded.
func (w *world) changeTopics() {
	i := w.Rand.IntN(len(w.topics.partitions))
	t := &w.topics
	change := machine.TopicsChanged{Topics: []string{topicName(i)}}
	t.version++
	if t.partitions[i] > 0 && w.Rand.IntN(2) == 0 {
		t.partitions[i] = min(t.partitions[i]+1, 8)
		w.Count("topic grown")
	} else {
		change.Gone = change.Topics
		t.ids[i] += byte(len(t.ids))
		t.partitions[i] = w.Rand.IntN(6)
		w.Tracef("%s is deleted, and created again with %d partitions", topicName(i), t.partitions[i])
		w.Count("topic deleted")
	}
	t.publish()
	for _, c := range w.alive {
		if !c.gone {
			c.host.Tell(change)
		}
	}
}

// changeSettings changes the configuration while the brokers run.
func (w *world) changeSettings() {
	cfg := w.plan.config
	switch w.Rand.IntN(3) {
	case 0:
		cfg.MaxSize = 1 + w.Rand.IntN(4)
	case 1:
		cfg.MaxSize = group.DefaultConfig().MaxSize
	case 2:
		cfg.InitialDelay = w.Between(0, 3_000_000_000)
	}
	if len(w.plan.consumers) > 0 {
		changeConsumerSettings(w.Rand, &cfg)
	}
	if len(w.slots) > 0 {
		cfg.Consumer.Migration = anyPolicy(w.Rand)
	}
	w.configure(cfg)
}

func (w *world) configure(cfg group.Config) {
	w.plan.config = cfg
	w.Tracef("settings: max size %d, initial delay %s", cfg.MaxSize, cfg.InitialDelay)
	for _, c := range w.alive {
		if !c.gone && !c.loading {
			c.config = cfg
			c.host.Tell(group.Configured{Config: cfg})
		}
	}
}
