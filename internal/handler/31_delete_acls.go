// DeleteAcls (key 31) deletes the rules that filters mean.
//
//	v1 pattern types; v2 flexible; v3 the resource type of users (KIP-373), of which
//	there are no rules here

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) deleteACLs(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DeleteACLsRequest)
	if err := c.needsCluster(auth.Alter); err != nil {
		return h.refuseDeleteACLs(req, err), nil
	}
	if err := checkRules(c.image, len(req.Filters)); err != nil {
		return h.refuseDeleteACLs(req, err), nil
	}
	filters := make([]auth.Filter, len(req.Filters))
	for i, f := range req.Filters {
		filters[i] = auth.Filter{
			Type: auth.ResourceType(f.ResourceType), Pattern: auth.PatternType(f.ResourcePatternType), Name: f.ResourceName,
			Principal: f.Principal, Host: f.Host,
			Operation: auth.Operation(f.Operation), Permission: auth.Permission(f.PermissionType),
		}
	}
	resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
	deleted, errs := h.opts.Controller.DeleteRules(ctx, filters)
	for i, err := range errs {
		out := kmsg.NewDeleteACLsResponseResult()
		if out.ErrorCode, out.ErrorMessage = h.code(err); err == nil {
			out.MatchingACLs = deletedRules(deleted[i])
		}
		resp.Results = append(resp.Results, out)
	}
	return resp, nil
}

func deletedRules(rules []auth.Rule) []kmsg.DeleteACLsResponseResultMatchingACL {
	out := make([]kmsg.DeleteACLsResponseResultMatchingACL, len(rules))
	for i, r := range rules {
		out[i] = kmsg.NewDeleteACLsResponseResultMatchingACL()
		out[i].ResourceType, out[i].ResourceName = kmsg.ACLResourceType(r.Type), r.Name
		out[i].ResourcePatternType = kmsg.ACLResourcePatternType(r.Pattern)
		out[i].Principal, out[i].Host = string(r.Principal), r.Host
		out[i].Operation, out[i].PermissionType = kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
	}
	return out
}

// refuseDeleteACLs refuses all of a request.
func (h *Handler) refuseDeleteACLs(req *kmsg.DeleteACLsRequest, err error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
	resp.Results = make([]kmsg.DeleteACLsResponseResult, len(req.Filters))
	code, msg := h.code(err)
	refuseEach(len(resp.Results), code, msg, func(i int, code int16, msg *string) {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = code, msg
	})
	return resp
}
