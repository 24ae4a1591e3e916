package protocol

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestRecordsPassThroughTheWire(t *testing.T) {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	asks, silent := kmsg.NewDescribeTopicPartitionsRequestTopic(), kmsg.NewDescribeTopicPartitionsRequestTopic()
	AskRecords(&asks.UnknownTags)
	silent.UnknownTags.Set(TagCheck, []byte("another"))
	req.Topics = append(req.Topics, asks, silent)
	r := Request{Key: req.Key(), Body: req.AppendTo(nil)}
	got, err := r.Decode()
	assert.Must(t, err)
	topics := got.(*kmsg.DescribeTopicPartitionsRequest).Topics
	assert.True(t, AsksRecords(&topics[0].UnknownTags) && !AsksRecords(&topics[1].UnknownTags), "%+v", topics)
	for _, want := range []int64{0, 7, 1 << 40, -1} {
		resp := kmsg.NewPtrDescribeTopicPartitionsResponse()
		topic, p, short := kmsg.NewDescribeTopicPartitionsResponseTopic(), kmsg.NewDescribeTopicPartitionsResponseTopicPartition(), kmsg.NewDescribeTopicPartitionsResponseTopicPartition()
		SetRecords(&p.UnknownTags, want)
		short.UnknownTags.Set(TagRecords, []byte("short"))
		topic.Partitions = append(topic.Partitions, p, short)
		resp.Topics = append(resp.Topics, topic)
		read := kmsg.NewPtrDescribeTopicPartitionsResponse()
		assert.Must(t, read.ReadFrom(resp.AppendTo(nil)))
		partitions := read.Topics[0].Partitions
		if got, ok := GetRecords(&partitions[0].UnknownTags); !ok || got != want {
			t.Errorf("%d, %v, want %d", got, ok, want)
		}
		if _, ok := GetRecords(&partitions[1].UnknownTags); ok {
			t.Error("a short value is a number")
		}
	}
}

func TestAsksBesideOtherTags(t *testing.T) {
	var tags kmsg.Tags
	tags.Set(1, nil)
	tags.Set(1<<20, nil)
	assert.True(t, !AsksRecords(&tags) && !AsksBehind(&tags), "other tags ask")
	AskRecords(&tags)
	AskBehind(&tags)
	assert.True(t, AsksRecords(&tags) && AsksBehind(&tags), "other tags hide what is asked for")
}
