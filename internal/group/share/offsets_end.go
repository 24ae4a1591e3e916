package share

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// latest is the timestamp by which ListOffsets is asked where a partition ends.
const latest = -1

// endsVersion is the version of ListOffsets that is asked for; brokers serve others as well.
const endsVersion = 7

// askEnds asks leaders where their partitions end.
func (d *described) askEnds(x *kind.Step, parts []partition) {
	by := map[int32][]partition{}
	for _, p := range parts {
		t := x.Image.TopicByID(p.Topic)
		if leader := t.Partitions[p.Number].Leader; leader != metadata.NoBroker {
			by[leader] = append(by[leader], p)
		}
	}
	for _, leader := range slices.Sorted(maps.Keys(by)) {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version = endsVersion
		e := &ends{d: d, ids: map[string]metadata.TopicID{}}
		for _, t := range modern.TopicsOf(by[leader]) {
			out := kmsg.NewListOffsetsRequestTopic()
			out.Topic = x.Image.TopicByID(t.Topic).Name
			e.ids[out.Topic] = t.Topic
			for _, n := range t.Partitions {
				p := kmsg.NewListOffsetsRequestTopicPartition()
				p.Partition, p.Timestamp = n, latest
				out.Partitions = append(out.Partitions, p)
			}
			req.Topics = append(req.Topics, out)
		}
		d.left++
		x.Ask(e, leader, req)
	}
}

// ends is the question where partitions end.
type ends struct {
	d   *described
	ids map[string]metadata.TopicID
}

// Answered takes the answer. Of a partition whose end is not told the lag is not known.
func (e *ends) Answered(x *kind.Step, a machine.Sent) {
	if m, ok := a.Msg.(*kmsg.ListOffsetsResponse); ok && a.Err == nil {
		for i := range m.Topics {
			for j := range m.Topics[i].Partitions {
				if p := &m.Topics[i].Partitions[j]; p.ErrorCode == 0 {
					e.d.ends[partition{Topic: e.ids[m.Topics[i].Topic], Number: p.Partition}] = p.Offset
				}
			}
		}
	}
	e.d.left--
	e.d.finish(x)
}
