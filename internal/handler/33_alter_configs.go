// AlterConfigs (key 33) replaces all settings of a topic, broker or group.
//
//	v0-1 the original fields; v2 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) alterConfigs(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	key := func(r *kmsg.AlterConfigsRequestResource) resource { return resource{r.ResourceType, r.ResourceName} }
	repeated := repeatedIn(req.Resources, key)
	for _, r := range once(req.Resources, key) {
		var changes []metadata.ConfigChange
		for _, cfg := range r.Configs {
			changes = append(changes, metadata.ConfigChange{Name: cfg.Name, Op: metadata.ConfigSet, Value: cfg.Value})
		}
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		out.ErrorCode, out.ErrorMessage = h.code(h.alter(ctx, c, key(&r), repeated, changes, true, req.ValidateOnly))
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

// alter changes the settings of a resource, unless it is named repeatedly or the client
// may not.
func (h *Handler) alter(ctx context.Context, c *call, r resource, repeated map[resource]bool, changes []metadata.ConfigChange, replace, validateOnly bool) error {
	if repeated[r] {
		return metadata.Refuse(kerr.InvalidRequest, "each resource must appear at most once in the request")
	}
	if err := c.mayConfigure(auth.AlterConfigs, r); err != nil {
		return err
	}
	switch r.kind {
	case kmsg.ConfigResourceTypeTopic:
		return h.opts.Controller.AlterTopic(ctx, r.name, changes, replace, validateOnly)
	case kmsg.ConfigResourceTypeGroupConfig:
		return h.opts.Controller.AlterGroup(ctx, r.name, changes, replace, validateOnly)
	case kmsg.ConfigResourceTypeBroker:
		if err := h.checkBroker(r.name); err != nil {
			return err
		}
		return h.opts.Controller.AlterBroker(ctx, changes, replace, validateOnly)
	}
	return metadata.Refuse(kerr.InvalidRequest, "settings of resource type %d cannot be altered", r.kind)
}
