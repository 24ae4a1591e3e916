package source

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/watch/groupview"
)

// DescribeConsumers asks for those groups that are none of the classic protocol. It
// goes past kadm for the tagged fields, in which a muster broker says more than Kafka's
// answer has a place for.
func (s *Source) DescribeConsumers(ctx context.Context, described kadm.DescribedGroups) map[string]groupview.Description {
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	for name, d := range described {
		if errors.Is(d.Err, kerr.GroupIDNotFound) || d.Err == nil && d.State == groupview.Dead {
			req.Groups = append(req.Groups, name)
		}
	}
	if len(req.Groups) == 0 {
		return nil
	}
	out := map[string]groupview.Description{}
	for _, shard := range s.Client.RequestSharded(ctx, req) {
		resp, ok := shard.Resp.(*kmsg.ConsumerGroupDescribeResponse)
		if shard.Err != nil || !ok { // A broker that has no such groups does not know the request either.
			continue
		}
		for i := range resp.Groups {
			if g := &resp.Groups[i]; g.ErrorCode == 0 {
				out[g.Group] = consumerDescription(g, shard.Meta)
			}
		}
	}
	return out
}

func consumerDescription(g *kmsg.ConsumerGroupDescribeResponseGroup, coordinator kgo.BrokerMetadata) groupview.Description {
	out := groupview.Description{Group: groupview.FromConsumer(g)}
	out.Coordinator = coordinatorOf(coordinator)
	return out
}
