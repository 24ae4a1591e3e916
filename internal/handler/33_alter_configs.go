// AlterConfigs (key 33) replaces all settings of a topic or broker.
//
//	v0-1 as ever; v2 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

func (h *Handler) alterConfigs(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterConfigsRequest)
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	for _, r := range req.Resources {
		var changes []metadata.ConfigChange
		for _, cfg := range r.Configs {
			changes = append(changes, metadata.ConfigChange{Name: cfg.Name, Op: metadata.ConfigSet, Value: cfg.Value})
		}
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		out.ErrorCode, out.ErrorMessage = h.code(h.alter(ctx, r.ResourceType, r.ResourceName, changes, true, req.ValidateOnly))
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

// alter changes the settings of a resource.
func (h *Handler) alter(ctx context.Context, kind kmsg.ConfigResourceType, name string, changes []metadata.ConfigChange, replace, validateOnly bool) error {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		return h.opts.Controller.AlterTopic(ctx, name, changes, replace, validateOnly)
	case kmsg.ConfigResourceTypeBroker:
		if err := h.checkBroker(name); err != nil {
			return err
		}
		return h.opts.Controller.AlterBroker(ctx, changes, replace, validateOnly)
	}
	return metadata.Refuse(kerr.InvalidRequest, "settings of resource type %d cannot be altered", kind)
}
