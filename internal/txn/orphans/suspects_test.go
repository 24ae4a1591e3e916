package orphans

import (
	"testing"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/store"
)

func TestAnOrphanIsConfirmedByTheSameCoordinatorsOnly(t *testing.T) {
	one := []metadata.Partition{{Leader: 1, LeaderEpoch: 1}, {Leader: 2, LeaderEpoch: 1}}
	moved := []metadata.Partition{{Leader: 1, LeaderEpoch: 1}, {Leader: 2, LeaderEpoch: 2}}
	at := func(producer, first int64) orphan {
		return orphan{TopicPartition: store.TopicPartition{Topic: "t"}, OpenTxn: partition.OpenTxn{ProducerID: producer, FirstOffset: first}}
	}
	var s suspects
	for i, c := range []struct {
		found []orphan
		by    []metadata.Partition
		want  int
	}{
		{[]orphan{at(1, 5)}, one, 0},
		{[]orphan{at(1, 5), at(2, 6)}, one, 1},
		{[]orphan{at(1, 5), at(2, 6)}, moved, 0},
		{[]orphan{at(1, 5), at(2, 6)}, moved, 2},
		{[]orphan{at(1, 7)}, moved, 0}, // The next transaction of the producer.
		{nil, moved, 0},
		{[]orphan{at(1, 7)}, moved, 0}, // It was known in between.
	} {
		assert.Equal(t, len(s.confirm(c.found, c.by)), c.want, "look %d confirms", i)
	}
}
