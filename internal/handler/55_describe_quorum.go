// DescribeQuorum (key 55) tells of the quorum that keeps the cluster's metadata. Here the
// store keeps it, and any broker may change it: the answer is that of a quorum with one
// voter, the broker that clients are told is the controller.
//
//	v0 flexible; v1 times; v2 error messages, directory ids and the voters' addresses

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) describeQuorum(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeQuorumRequest)
	resp := req.ResponseKind().(*kmsg.DescribeQuorumResponse)
	if !c.mayCluster(auth.Describe) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return resp, nil
	}
	topics, _ := distinct(req.Topics, func(t *kmsg.DescribeQuorumRequestTopic) (string, *[]kmsg.DescribeQuorumRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.DescribeQuorumRequestTopicPartition) int32 { return p.Partition })
	for _, t := range topics {
		out := kmsg.NewDescribeQuorumResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			out.Partitions = append(out.Partitions, h.quorumOf(c, t.Topic, p.Partition))
		}
		resp.Topics = append(resp.Topics, out)
	}
	if b := c.image.Broker(c.image.Controller); b != nil && req.Version >= 2 {
		node := kmsg.NewDescribeQuorumResponseNode()
		node.NodeID = b.ID
		if e, ok := b.Endpoint(c.origin.Listener); ok {
			l := kmsg.NewDescribeQuorumResponseNodeListener()
			l.Name, l.Host, l.Port = e.Listener, e.Host, uint16(e.Port)
			node.Listeners = append(node.Listeners, l)
		}
		resp.Nodes = append(resp.Nodes, node)
	}
	return resp, nil
}

func (h *Handler) quorumOf(c *call, topic string, index int32) kmsg.DescribeQuorumResponseTopicPartition {
	part := kmsg.NewDescribeQuorumResponseTopicPartition()
	part.Partition = index
	switch {
	case topic != metadata.ClusterMetadataTopic || index != 0:
		part.ErrorCode = kerr.UnknownTopicOrPartition.Code
		return part
	case c.image.Broker(c.image.Controller) == nil:
		part.ErrorCode = kerr.LeaderNotAvailable.Code
		return part
	}
	end, now := h.opts.Controller.LogEndOffset(), h.opts.Now().UnixMilli()
	part.LeaderID, part.HighWatermark = c.image.Controller, end
	voter := kmsg.NewDescribeQuorumResponseTopicPartitionReplicaState()
	voter.ReplicaID, voter.LogEndOffset, voter.LastFetchTimestamp, voter.LastCaughtUpTimestamp = part.LeaderID, end, now, now
	part.CurrentVoters = append(part.CurrentVoters, voter)
	return part
}
