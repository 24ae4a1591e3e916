package cluster

import (
	"testing"

	"muster/internal/metadata"
	"muster/internal/store/mem"
)

func TestWhoeverCreatesAnInternalTopicDoesNotDecideWhatItIsLike(t *testing.T) {
	c := open(t, mem.New(), false)
	err := create(t, c, metadata.NewTopic{Name: metadata.OffsetsTopic, Partitions: 1, Replication: 1, Set: map[string]string{"cleanup.policy": "delete"}})
	if err != nil {
		t.Fatal(err)
	}
	topic := c.Image().Topic(metadata.OffsetsTopic)
	if len(topic.Partitions) != 50 || !topic.Config.Compact || topic.Config.Delete {
		t.Errorf("%d partitions, %+v", len(topic.Partitions), topic.Config)
	}
}

func TestAnInternalTopicOfAnOlderMusterIsMadeSafeWhenItIsLoaded(t *testing.T) {
	s := mem.New()
	c := open(t, s, false)
	old := metadata.Topic{Name: metadata.OffsetsTopic, ID: metadata.TopicID{1}, Partitions: make([]metadata.Partition, 1), Set: map[string]string{"segment.bytes": "1048576"}}
	if err := c.attempt(t.Context(), func() error { return c.write(t.Context(), topicRecord(old, false)) }); err != nil {
		t.Fatal(err)
	}
	topic := open(t, s, false).Image().Topic(metadata.OffsetsTopic)
	if len(topic.Partitions) != 1 || !topic.Config.Compact || topic.Config.Delete || topic.Config.SegmentBytes != 1<<20 {
		t.Errorf("%d partitions, %+v", len(topic.Partitions), topic.Config)
	}
}
