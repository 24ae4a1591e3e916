// DescribeAcls (key 29) lists the rules that a filter means.
//
//	v1 pattern types; v2 flexible; v3 the resource type of users (KIP-373), of which
//	there are no rules here

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

func (h *Handler) describeACLs(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeACLsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeACLsResponse)
	err := c.needsCluster(auth.Describe)
	if err == nil {
		err = checkRules(c.image, 1)
	}
	var filter auth.Filter
	if err == nil {
		filter, err = auth.Filter{
			Type: auth.ResourceType(req.ResourceType), Pattern: auth.PatternType(req.ResourcePatternType), Name: req.ResourceName,
			Principal: req.Principal, Host: req.Host,
			Operation: auth.Operation(req.Operation), Permission: auth.Permission(req.PermissionType),
		}.Check()
	}
	if resp.ErrorCode, resp.ErrorMessage = h.code(err); err == nil {
		resp.Resources = describedRules(c.image.Rules.Rules(filter))
	}
	return resp, nil
}

// describedRules puts the rules of each resource together. They are in that order.
func describedRules(rules []auth.Rule) []kmsg.DescribeACLsResponseResource {
	var out []kmsg.DescribeACLsResponseResource
	for i, r := range rules {
		if i == 0 || r.Type != rules[i-1].Type || r.Name != rules[i-1].Name || r.Pattern != rules[i-1].Pattern {
			of := kmsg.NewDescribeACLsResponseResource()
			of.ResourceType, of.ResourceName = kmsg.ACLResourceType(r.Type), r.Name
			of.ResourcePatternType = kmsg.ACLResourcePatternType(r.Pattern)
			out = append(out, of)
		}
		acl := kmsg.NewDescribeACLsResponseResourceACL()
		acl.Principal, acl.Host = string(r.Principal), r.Host
		acl.Operation, acl.PermissionType = kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
		of := &out[len(out)-1]
		of.ACLs = append(of.ACLs, acl)
	}
	return out
}
