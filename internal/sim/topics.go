package sim

import (
	"fmt"
	"slices"

	"muster/internal/group"
)

// topics is the metadata of topics, which clients learn of at once.
type topics struct {
	partitions []int
	version    int // counts changes
}

func newTopics(partitions []int) topics { return topics{partitions: slices.Clone(partitions)} }

func topicName(i int) string { return fmt.Sprintf("topic-%c", 'a'+i) }

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

// changeTopics gives a topic more partitions, or deletes it and creates it
// again. Leaders notice and join again.
func (w *world) changeTopics() {
	i := w.rand.IntN(len(w.topics.partitions))
	w.topics.version++
	if w.rand.IntN(2) == 0 {
		w.topics.partitions[i] = min(w.topics.partitions[i]+1, 8)
		w.count("topic grown")
		return
	}
	w.tracef("%s is deleted and created again", topicName(i))
	w.count("topic deleted")
	w.topics.partitions[i] = w.rand.IntN(6)
	for _, c := range w.alive {
		if !c.gone && !c.loading {
			c.step(cause{event: group.TopicsDeleted{Topics: []string{topicName(i)}}})
		}
	}
}

// changeSettings changes the configuration while the brokers run.
func (w *world) changeSettings() {
	cfg := w.plan.config
	switch w.rand.IntN(3) {
	case 0:
		cfg.MaxSize = 1 + w.rand.IntN(4)
	case 1:
		cfg.MaxSize = group.DefaultConfig().MaxSize
	case 2:
		cfg.InitialDelay = w.between(0, 3_000_000_000)
	}
	w.configure(cfg)
}

func (w *world) configure(cfg group.Config) {
	w.plan.config = cfg
	w.tracef("settings: max size %d, initial delay %s", cfg.MaxSize, cfg.InitialDelay)
	for _, c := range w.alive {
		if !c.gone && !c.loading {
			c.config = cfg
			c.step(cause{event: group.Configured{Config: cfg}})
		}
	}
}
