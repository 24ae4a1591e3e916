// ListConfigResources (key 74) lists what has settings.
//
//	v0 ListClientMetricsResources: client metrics only (KIP-714)
//	v1 the types that are asked for, all of them if none is (KIP-1142)
//
// Left out: loggers and client metrics, which have no settings here. They may be
// asked for, and there are none.

package handler

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

// listable are the types of version 1, in the order in which Kafka answers them.
var listable = []kmsg.ConfigResourceType{
	kmsg.ConfigResourceTypeGroupConfig, kmsg.ConfigResourceTypeClientMetrics, kmsg.ConfigResourceTypeBrokerLogger,
	kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeTopic,
}

func (h *Handler) listConfigResources(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ListConfigResourcesRequest)
	resp := req.ResponseKind().(*kmsg.ListConfigResourcesResponse)
	if !c.mayCluster(auth.DescribeConfigs) {
		resp.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		return resp, nil
	}
	if req.Version == 0 {
		return resp, nil
	}
	unknown := func(t int8) bool { return !slices.Contains(listable, kmsg.ConfigResourceType(t)) }
	if slices.ContainsFunc(req.ResourceTypes, unknown) {
		resp.ErrorCode = kerr.UnsupportedVersion.Code
		return resp, nil
	}
	for _, t := range listable {
		if len(req.ResourceTypes) > 0 && !slices.Contains(req.ResourceTypes, int8(t)) {
			continue
		}
		for _, name := range c.resources(t) {
			out := kmsg.NewListConfigResourcesResponseConfigResource()
			out.Name, out.Type = name, int8(t)
			resp.ConfigResources = append(resp.ConfigResources, out)
		}
	}
	return resp, nil
}

// resources lists the names of one type. Of groups those have settings that were given
// some, while each topic and each broker has its own.
func (c *call) resources(t kmsg.ConfigResourceType) (names []string) {
	switch t {
	case kmsg.ConfigResourceTypeGroupConfig:
		return c.image.GroupSettings.Groups()
	case kmsg.ConfigResourceTypeBroker:
		for i := range c.image.Brokers {
			if _, ok := c.image.Brokers[i].Endpoint(c.origin.Listener); ok {
				names = append(names, strconv.Itoa(int(c.image.Brokers[i].ID)))
			}
		}
	case kmsg.ConfigResourceTypeTopic:
		for _, topic := range c.image.Topics() {
			names = append(names, topic.Name)
		}
	}
	return names
}
