package broker

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/watch/groupview"
	"muster/internal/web"
)

const earliest = -2 // The timestamp that stands for the log start offset.

// Offsets implements web.Actions. Whether somebody may know them is decided by this
// broker's handler; partitions that others lead are then asked of these.
func (a *httpActs) Offsets(ctx context.Context, who web.Asker, of []groupview.TopicPartition, from *time.Time) (map[groupview.TopicPartition]web.Place, error) {
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
	out := map[groupview.TopicPartition]web.Place{}
	for _, tp := range of {
		start, known := starts[tp]
		end, too := ends[tp]
		if !known || !too {
			continue
		}
		p := web.Place{Start: start, End: max(end, start), At: max(end, start), Dense: a.b.dense(tp.Topic)}
		if offset, found := at[tp]; found && offset >= 0 {
			p.At = offset
		}
		out[tp] = p
	}
	return out, nil
}

// dense says whether a difference of offsets in a topic is a number of records.
func (b *Broker) dense(topic string) bool {
	t := b.image().Topic(topic)
	return t == nil || t.Config.Traits.Dense
}

// listOffsets asks where partitions begin, end, or have records of a time. It is -1 where
// there is no such record.
func (a *httpActs) listOffsets(ctx context.Context, who web.Asker, of []groupview.TopicPartition, timestamp int64) (map[groupview.TopicPartition]int64, error) {
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

const (
	boundsVersion = 7  // Of ListOffsets.
	latest        = -1 // The timestamp that stands for the high watermark.
)

func listOffsetsRequest(of []groupview.TopicPartition, timestamp int64) *kmsg.ListOffsetsRequest {
	req := kmsg.NewPtrListOffsetsRequest()
	req.Version, req.ReplicaID = boundsVersion, -1
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
func (a *httpActs) leaderOf(tp groupview.TopicPartition) (int32, bool) {
	t := a.b.image().Topic(tp.Topic)
	if t == nil || int(tp.Partition) >= len(t.Partitions) {
		return 0, false
	}
	leader := t.Partitions[tp.Partition].Leader
	return leader, leader >= 0 && leader != a.b.nodeID()
}

// listElsewhere asks another broker. What it does not answer stays unknown.
func (a *httpActs) listElsewhere(ctx context.Context, leader int32, of []groupview.TopicPartition, timestamp int64, out map[groupview.TopicPartition]int64) {
	resp, err := a.b.peers.Do(ctx, leader, listOffsetsRequest(of, timestamp))
	if err != nil {
		a.b.logger.Debug("a leader could not be asked for offsets", "node", leader, "partitions", len(of), "error", err)
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
