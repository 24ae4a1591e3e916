package protocol

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

func TestBehindPassesThroughTheWire(t *testing.T) {
	for version := int16(8); version <= 10; version++ {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version = version
		asks, silent := kmsg.NewOffsetFetchRequestGroup(), kmsg.NewOffsetFetchRequestGroup()
		AskBehind(&asks.UnknownTags)
		silent.UnknownTags.Set(0, []byte("of Kafka"))
		req.Groups = append(req.Groups, asks, silent)
		r := Request{Key: req.Key(), Version: version, Body: req.AppendTo(nil)}
		got, err := r.Decode()
		assert.Must(t, err)
		groups := got.(*kmsg.OffsetFetchRequest).Groups
		assert.True(t, AsksBehind(&groups[0].UnknownTags) && !AsksBehind(&groups[1].UnknownTags), "v%d: the groups are %+v", version, groups)

		for _, want := range []Behind{{}, {Records: 7}, {Records: 1 << 40, AtLeast: true}} {
			resp := kmsg.NewPtrOffsetFetchResponse()
			resp.Version = version
			g, topic, p := kmsg.NewOffsetFetchResponseGroup(), kmsg.NewOffsetFetchResponseGroupTopic(), kmsg.NewOffsetFetchResponseGroupTopicPartition()
			SetBehind(&p.UnknownTags, want)
			topic.Partitions = append(topic.Partitions, p, kmsg.NewOffsetFetchResponseGroupTopicPartition())
			g.Topics = append(g.Topics, topic)
			resp.Groups = append(resp.Groups, g)
			read := kmsg.NewPtrOffsetFetchResponse()
			read.Version = version
			assert.Must(t, read.ReadFrom(resp.AppendTo(nil)))
			partitions := read.Groups[0].Topics[0].Partitions
			if got := GetBehind(&partitions[0].UnknownTags); got == nil || *got != want {
				t.Errorf("v%d: %+v came back as %+v", version, want, got)
			}
			if got := GetBehind(&partitions[1].UnknownTags); got != nil {
				t.Errorf("v%d: a partition without a count has %+v", version, got)
			}
		}
	}
}

func TestBehindIsReadWithCare(t *testing.T) {
	for _, value := range [][]byte{nil, {1, 2, 3}, {0xff, 0, 0, 0, 0, 0, 0, 0, 0}} {
		var tags kmsg.Tags
		tags.Set(TagBehind, value)
		if got := GetBehind(&tags); got != nil {
			t.Errorf("%v is %+v", value, got)
		}
	}
	var tags kmsg.Tags
	tags.Set(TagBehind, []byte{0, 0, 0, 0, 0, 0, 0, 7, 1, 99})
	if got := GetBehind(&tags); got == nil || *got != (Behind{7, true}) {
		t.Errorf("a longer value is %+v", got)
	}
}
