// AlterPartitionReassignments (key 45) gives partitions to other brokers.
//
//	v0 flexible; v1 whether the number of replicas may change, which it never does
//
// A partition has one replica, its leader. It moves at once, so that there never is a
// reassignment to cancel.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) alterPartitionReassignments(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterPartitionAssignmentsRequest)
	resp := req.ResponseKind().(*kmsg.AlterPartitionAssignmentsResponse)
	if !c.mayCluster(auth.Alter) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return resp, nil
	}
	topics, _ := distinct(req.Topics, func(t *kmsg.AlterPartitionAssignmentsRequestTopic) (string, *[]kmsg.AlterPartitionAssignmentsRequestTopicPartition) {
		return t.Topic, &t.Partitions
	}, func(p *kmsg.AlterPartitionAssignmentsRequestTopicPartition) int32 { return p.Partition })
	var moves []metadata.Reassignment
	for _, t := range topics {
		for _, p := range t.Partitions {
			moves = append(moves, metadata.Reassignment{Topic: t.Topic, Partition: p.Partition, Replicas: p.Replicas, Cancel: p.Replicas == nil})
		}
	}
	errs := h.opts.Controller.Reassign(ctx, moves)
	for _, t := range topics {
		out := kmsg.NewAlterPartitionAssignmentsResponseTopic()
		out.Topic = t.Topic
		for _, p := range t.Partitions {
			part := kmsg.NewAlterPartitionAssignmentsResponseTopicPartition()
			part.Partition = p.Partition
			part.ErrorCode, part.ErrorMessage = h.code(errs[0])
			errs = errs[1:]
			out.Partitions = append(out.Partitions, part)
		}
		resp.Topics = append(resp.Topics, out)
	}
	return resp, nil
}
