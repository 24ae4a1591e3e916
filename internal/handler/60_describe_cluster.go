// DescribeCluster (key 60) tells which brokers there are.
//
//	v0 flexible; v1 endpoint type; v2 fenced brokers

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) describeCluster(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeClusterRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.ClusterID, resp.ControllerID = c.image.ClusterID, c.image.Controller
	const endpointBrokers = 1
	if req.Version >= 1 && req.EndpointType != endpointBrokers {
		resp.ErrorCode = kerr.UnsupportedEndpointType.Code
		return resp, nil
	}
	if len(c.image.Brokers) == 0 {
		return nil, errNoBrokers
	}
	for i := range c.image.Brokers {
		b := &c.image.Brokers[i]
		e, ok := b.Endpoint(c.origin.Listener)
		if !ok {
			continue
		}
		out := kmsg.NewDescribeClusterResponseBroker()
		out.NodeID, out.Host, out.Port = b.ID, e.Host, e.Port
		if b.Rack != "" {
			out.Rack = &b.Rack
		}
		resp.Brokers = append(resp.Brokers, out)
	}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = c.clusterOperations()
	}
	return resp, nil
}
