package metadata

import (
	"testing"

	"muster/internal/assert"
	"muster/internal/metadata/config"
)

// The history of groups is as large as it may be, whether it has one partition or many.
func TestPartitionsOfTheHistoryShareItsSize(t *testing.T) {
	edit := NewImage(&config.Broker{}).Edit()
	edit.PutTopic(Topic{Name: OffsetsTopic, Partitions: make([]Partition, 50)})
	image := edit.Image()
	for _, c := range []struct {
		shared         bool
		partitions     int32
		bytes, segment string
	}{{false, 1, "268435456", "16777216"}, {true, 50, "5368709", "1048576"}} {
		got, ok := NewInternal(image, HistoryTopic, c.shared)
		if !ok || got.Partitions != c.partitions || got.Set["retention.bytes"] != c.bytes || got.Set["segment.bytes"] != c.segment || got.Set["retention.ms"] != "604800000" {
			t.Errorf("shared %t: %+v", c.shared, got)
		}
		for name, value := range got.Set {
			assert.NoError(t, config.CheckTopic(name, value))
		}
	}
	assert.Equal(t, JournalOf(HistoryTopic), OffsetsTopic, "its leaders are not those of the groups")
}
