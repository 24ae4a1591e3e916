package handler_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/protocol"
	"muster/internal/store"
)

// fixedLengths is a store that has so many records in each log.
type fixedLengths struct {
	store.Store
	counts map[string]int64
	asked  int
	err    error
}

func (f *fixedLengths) Lengths(_ context.Context, logs []store.TopicPartition) ([]int64, error) {
	out := make([]int64, len(logs))
	for i, l := range logs {
		out[i] = f.counts[fmt.Sprint(l.Topic, l.Partition)]
	}
	f.asked++
	return out, f.err
}

func TestNumbersOfRecordsAreToldWhereOffsetsDoNotTell(t *testing.T) {
	w := worldWith(t, map[string]string{"muster.store": "redis"})
	w.create(metadata.NewTopic{Name: "t", Partitions: 2, Replication: 1, Set: map[string]string{"muster.redis.layout": "stream"}})
	w.create(metadata.NewTopic{Name: "u", Partitions: 2, Replication: 1, Set: map[string]string{"muster.redis.layout": "log"}})
	f := &fixedLengths{counts: map[string]int64{"t0": 7, "t1": -1, "u0": 5, "u1": -1}}
	w.opts.Lengths = f
	w.h = handler.New(w.opts)
	told := func(asks bool) string {
		req := kmsg.NewPtrDescribeTopicPartitionsRequest()
		req.ResponsePartitionLimit = 10
		for _, name := range []string{"t", "u"} {
			topic := kmsg.NewDescribeTopicPartitionsRequestTopic()
			topic.Topic = name
			if asks {
				protocol.AskRecords(&topic.UnknownTags)
			}
			req.Topics = append(req.Topics, topic)
		}
		out := ""
		for _, topic := range w.request(req).(*kmsg.DescribeTopicPartitionsResponse).Topics {
			for _, p := range topic.Partitions {
				if n, ok := protocol.GetRecords(&p.UnknownTags); ok {
					out += fmt.Sprint(*topic.Topic, p.Partition, "=", n, " ")
				}
			}
		}
		return out
	}
	if got := told(false); got != "" || f.asked != 0 {
		t.Errorf("no one has asked: %s", got)
	}
	if got := told(true); got != "t0=7 t1=-1 u0=5 " || f.asked != 1 {
		t.Errorf("%s, in %d questions", got, f.asked)
	}
	f.err = errors.New("away")
	assert.Equal(t, told(true), "t0=-1 t1=-1 ", "the store is away")
}
