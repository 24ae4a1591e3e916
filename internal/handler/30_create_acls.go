// CreateAcls (key 30) adds rules.
//
//	v1 pattern types; v2 flexible; v3 the resource type of users (KIP-373), which is
//	refused here: there are no delegation tokens

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) createACLs(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.CreateACLsRequest)
	if err := c.needsCluster(auth.Alter); err != nil {
		return h.refuseCreateACLs(req, err), nil
	}
	if err := checkRules(c.image, len(req.Creations)); err != nil {
		return h.refuseCreateACLs(req, err), nil
	}
	rules := make([]auth.Rule, len(req.Creations))
	for i, r := range req.Creations {
		rules[i] = auth.Rule{
			Type: auth.ResourceType(r.ResourceType), Pattern: auth.PatternType(r.ResourcePatternType), Name: r.ResourceName,
			Principal: auth.Principal(r.Principal), Host: r.Host,
			Operation: auth.Operation(r.Operation), Permission: auth.Permission(r.PermissionType),
		}
	}
	resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
	for _, err := range h.opts.Controller.CreateRules(ctx, rules) {
		out := kmsg.NewCreateACLsResponseResult()
		out.ErrorCode, out.ErrorMessage = h.code(err)
		resp.Results = append(resp.Results, out)
	}
	return resp, nil
}

// refuseCreateACLs refuses all of a request.
func (h *Handler) refuseCreateACLs(req *kmsg.CreateACLsRequest, err error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
	resp.Results = make([]kmsg.CreateACLsResponseResult, len(req.Creations))
	code, msg := h.code(err)
	refuseEach(len(resp.Results), code, msg, func(i int, code int16, msg *string) {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = code, msg
	})
	return resp
}
