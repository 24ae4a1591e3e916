package group

import (
	"maps"
	"slices"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// imageOf returns metadata with topics of these ids.
func imageOf(topics map[string]byte) *metadata.Image {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		edit.PutTopic(metadata.Topic{Name: name, ID: metadata.TopicID{15: topics[name]}})
	}
	return edit.Image()
}

// withPartitions gives topics so many partitions.
func withPartitions(image *metadata.Image, counts map[string]int) *metadata.Image {
	edit := image.Edit()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t := *image.Topic(name)
		t.Partitions = make([]metadata.Partition, counts[name])
		edit.PutTopic(t)
	}
	return edit.Image()
}

// asInternal makes topics the broker's own.
func asInternal(image *metadata.Image, names []string) *metadata.Image {
	edit := image.Edit()
	for _, name := range names {
		t := *image.Topic(name)
		t.Internal = true
		edit.PutTopic(t)
	}
	return edit.Image()
}

// committedTo lists the topics that groups have offsets of, under no
// particular id.
func (s *Shard) committedTo() map[string]byte {
	out := map[string]byte{}
	for _, g := range s.Groups {
		for _, topic := range g.Common().Topics() {
			out[topic] = 0
		}
	}
	return out
}

// withTransactions adds the topics that transactions need, each with three
// partitions that the brokers 1 to 3 lead.
func withTransactions(i *metadata.Image) *metadata.Image {
	edit := i.Edit()
	for n, name := range []string{metadata.OffsetsTopic, metadata.TransactionsTopic} {
		edit.PutTopic(metadata.Topic{Name: name, ID: metadata.TopicID{14: byte(n + 1)}, Partitions: []metadata.Partition{{Leader: 1}, {Leader: 2}, {Leader: 3}}})
	}
	return edit.Image()
}
