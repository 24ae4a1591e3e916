package redis

import (
	"fmt"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store"
)

func TestLengthsAreNumbersOfRecords(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		b := newBedAt(t, url, inStreams)
		var logs []store.TopicPartition
		for i, cfg := range []store.LogConfig{inStreams, inIndex, inBatches} {
			b.cfg, b.at.Partition = cfg, int32(i)
			b.append(b.open(1), b.valued("a", "b", "c"))
			logs = append(logs, b.at)
		}
		b.do("XDEL", logKeys(b.prefix, logs[1]).stream, b.idsOf(logKeys(b.prefix, logs[1]).stream)[1])
		logs = append(logs, store.TopicPartition{Topic: "nothing"})
		got, err := b.store.Lengths(b.ctx, logs)
		if err != nil || fmt.Sprint(got) != "[3 2 -1 -1]" {
			t.Errorf("%v, %v", got, err)
		}
	})
}
