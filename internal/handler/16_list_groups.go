// ListGroups (key 16) lists groups.
//
//	v1-2 the original fields; v3 flexible; v4 filter by state; v5 by type

package handler

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
)

// What groups can be filtered by, in lower case. Names that Kafka has and muster
// does not match nothing.
var (
	groupStates = []string{"preparingrebalance", "completingrebalance", "stable", "dead", "empty", "assigning", "reconciling", "notready"}
	groupTypes  = []string{"classic", "consumer", "share", "streams"}
)

// plausible returns a filter without what can match no group, since every group
// is held against it; all of it if it matches none.
func plausible(filter, known []string) []string {
	name := func(f *string) string { return strings.ToLower(strings.TrimSpace(*f)) }
	var out []string
	for _, f := range once(filter, name) {
		if slices.Contains(known, name(&f)) {
			out = append(out, f)
		}
	}
	if len(out) == 0 {
		return filter[:min(len(filter), 1)]
	}
	return out
}

func (h *Handler) listGroups(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.ListGroupsRequest)
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	req.StatesFilter, req.TypesFilter = plausible(req.StatesFilter, groupStates), plausible(req.TypesFilter, groupTypes)
	c.asking(h.opts.Groups).All(ctx, c.client(), func() kmsg.Request { return req }, func(r kmsg.Response) {
		part := r.(*kmsg.ListGroupsResponse)
		resp.Groups = append(resp.Groups, part.Groups...)
		if part.ErrorCode != 0 {
			resp.ErrorCode = part.ErrorCode
		}
	})
	if !c.seesCluster(auth.Describe) {
		resp.Groups = slices.DeleteFunc(resp.Groups, func(g kmsg.ListGroupsResponseGroup) bool { return !c.sees(auth.Describe, auth.Group, g.Group) })
	}
	sort.Slice(resp.Groups, func(i, j int) bool { return resp.Groups[i].Group < resp.Groups[j].Group })
	return resp, nil
}
