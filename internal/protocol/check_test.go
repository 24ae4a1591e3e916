package protocol

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestCheckPassesThroughTheWire(t *testing.T) {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	asks, silent, short := kmsg.NewDescribeTopicPartitionsRequestTopic(), kmsg.NewDescribeTopicPartitionsRequestTopic(), kmsg.NewDescribeTopicPartitionsRequestTopic()
	AskCheck(&asks.UnknownTags, 1<<40)
	silent.UnknownTags.Set(0, []byte("of Kafka"))
	short.UnknownTags.Set(TagCheck, []byte("short"))
	req.Topics = append(req.Topics, asks, silent, short)
	r := Request{Key: req.Key(), Body: req.AppendTo(nil)}
	got, err := r.Decode()
	assert.Must(t, err)
	for i, want := range []bool{true, false, false} {
		if from, ok := AsksCheck(&got.(*kmsg.DescribeTopicPartitionsRequest).Topics[i].UnknownTags); ok != want || ok && from != 1<<40 {
			t.Errorf("topic %d: %d, %v", i, from, ok)
		}
	}

	want := &Check{Layout: "indexed", Start: 1, End: 1 << 60, Next: 3, Records: 4, Deleted: 5, Wrong: []string{"a", "b"}}
	resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
	topic, p, bad := kmsg.NewDescribeTopicPartitionsResponseTopic(), kmsg.NewDescribeTopicPartitionsResponseTopicPartition(), kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
	SetCheck(&p.UnknownTags, want)
	bad.UnknownTags.Set(TagCheck, []byte("{"))
	topic.Partitions = append(topic.Partitions, p, kmsg.NewDescribeTopicPartitionsResponseTopicPartition(), bad)
	resp.Topics = append(resp.Topics, topic)
	read := kmsg.NewPtrDescribeTopicPartitionsResponse()
	assert.Must(t, read.ReadFrom(resp.AppendTo(nil)))
	partitions := read.Topics[0].Partitions
	assert.DeepEqual(t, GetCheck(&partitions[0].UnknownTags), want)
	assert.True(t, GetCheck(&partitions[1].UnknownTags) == nil && GetCheck(&partitions[2].UnknownTags) == nil, "there is a check where there is none")
}
