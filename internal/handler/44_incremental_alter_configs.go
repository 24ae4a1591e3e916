// IncrementalAlterConfigs (key 44) changes some settings of a topic, broker or group.
//
//	v0 the original fields; v1 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

func (h *Handler) incrementalAlterConfigs(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.IncrementalAlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	key := func(r *kmsg.IncrementalAlterConfigsRequestResource) resource {
		return resource{r.ResourceType, r.ResourceName}
	}
	repeated := repeatedIn(req.Resources, key)
	for _, r := range once(req.Resources, key) {
		var changes []metadata.ConfigChange
		for _, cfg := range r.Configs {
			changes = append(changes, metadata.ConfigChange{Name: cfg.Name, Op: metadata.ConfigOp(cfg.Op), Value: cfg.Value})
		}
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		out.ErrorCode, out.ErrorMessage = h.code(h.alter(ctx, c, key(&r), repeated, changes, false, req.ValidateOnly))
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}
