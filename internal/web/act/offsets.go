package act

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/watch/groupview"
)

// Timestamps that stand for the log start offset, and for the high watermark.
const (
	earliest = -2
	latest   = -1
)

// listVersion is the version of ListOffsets that is asked in.
const listVersion = 7

// Offsets returns the bounds of partitions, and where records of a time begin, if one is
// given. Partitions without a leader are left out. Whether someone may know them is decided by this
// broker's handler; partitions that others lead are then asked of these.
func (a *Acts) Offsets(ctx context.Context, who Asker, of []groupview.TopicPartition, from *time.Time) (map[groupview.TopicPartition]Place, error) {
	starts, err := a.listOffsets(ctx, who, of, earliest)
	if err != nil {
		return nil, err
	}
	var at map[groupview.TopicPartition]int64
	if from != nil {
		if at, err = a.listOffsets(ctx, who, of, max(from.UnixMilli(), 0)); err != nil {
			return nil, err
		}
	}
	ends, err := a.listOffsets(ctx, who, of, latest) // Last, so that a log never seems to end before it begins.
	if err != nil {
		return nil, err
	}
	out := map[groupview.TopicPartition]Place{}
	for _, tp := range of {
		start, known := starts[tp]
		end, too := ends[tp]
		if !known || !too {
			continue
		}
		p := Place{Start: start, End: max(end, start), At: max(end, start), Dense: a.Image().Dense(tp.Topic)}
		if offset, found := at[tp]; found && offset >= 0 {
			p.At = offset
		}
		out[tp] = p
	}
	return out, nil
}

// listOffsets asks where partitions begin, end, or have records of a time. It is -1 where
// there is no such record.
func (a *Acts) listOffsets(ctx context.Context, who Asker, of []groupview.TopicPartition, timestamp int64) (map[groupview.TopicPartition]int64, error) {
	o, err := request[*kmsg.ListOffsetsResponse](ctx, a, who, listOffsetsRequest(of, timestamp))
	if err != nil {
		return nil, err
	}
	out := map[groupview.TopicPartition]int64{}
	others := map[int32][]groupview.TopicPartition{}
	for _, t := range o.answer.Topics {
		for _, p := range t.Partitions {
			tp := groupview.TopicPartition{Topic: t.Topic, Partition: p.Partition}
			switch {
			case p.ErrorCode == 0:
				out[tp] = p.Offset
			case denies(p.ErrorCode):
				return nil, o.failed(p.ErrorCode, nil, "")
			case p.ErrorCode == kerr.NotLeaderForPartition.Code:
				if leader, ok := a.leaderOf(tp); ok {
					others[leader] = append(others[leader], tp)
				}
			}
		}
	}
	for leader, tps := range others {
		a.listElsewhere(ctx, leader, tps, timestamp, out)
	}
	return out, ctx.Err()
}

func listOffsetsRequest(of []groupview.TopicPartition, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = listVersion, -1
	for topic, partitions := range byTopic(of) {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, i := range partitions {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = i, timestamp
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	return req
}

// leaderOf returns the other broker that leads a partition.
func (a *Acts) leaderOf(tp groupview.TopicPartition) (int32, bool) {
	t := a.Image().Topic(tp.Topic)
	if t == nil || int(tp.Partition) >= len(t.Partitions) {
		return 0, false
	}
	leader := t.Partitions[tp.Partition].Leader
	return leader, leader >= 0 && leader != a.Node()
}

// listElsewhere asks another broker. What it does not answer stays unknown.
func (a *Acts) listElsewhere(ctx context.Context, leader int32, of []groupview.TopicPartition, timestamp int64, out map[groupview.TopicPartition]int64) {
	resp, err := a.Peer(ctx, leader, listOffsetsRequest(of, timestamp))
	if err != nil {
		a.Logger.Debug("a leader could not be asked for offsets", "node", leader, "partitions", len(of), "error", err)
		return
	}
	answer, ok := resp.(*kmsg.ListOffsetsResponse)
	if !ok {
		return
	}
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				out[groupview.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = p.Offset
			}
		}
	}
}
