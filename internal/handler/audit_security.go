package handler

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/protocol"
)

func addedRules(c *call, resp kmsg.Response) []change {
	asked := c.req.(*kmsg.CreateACLsRequest).Creations
	var out []audit.Resource
	for i, r := range resp.(*kmsg.CreateACLsResponse).Results {
		if r.ErrorCode != 0 || i >= len(asked) {
			continue
		}
		a := &asked[i]
		out = append(out, ruleResource(auth.Rule{
			Type: auth.ResourceType(a.ResourceType), Pattern: auth.PatternType(a.ResourcePatternType), Name: a.ResourceName,
			Principal: auth.Principal(a.Principal), Host: a.Host, Operation: auth.Operation(a.Operation), Permission: auth.Permission(a.PermissionType),
		}))
	}
	return []change{{audit.RuleAdded, out}}
}

func removedRules(_ *call, resp kmsg.Response) []change {
	var out []audit.Resource
	for _, r := range resp.(*kmsg.DeleteACLsResponse).Results {
		for _, m := range r.MatchingACLs {
			if r.ErrorCode == 0 && m.ErrorCode == 0 {
				out = append(out, ruleResource(auth.Rule{
					Type: auth.ResourceType(m.ResourceType), Pattern: auth.PatternType(m.ResourcePatternType), Name: m.ResourceName,
					Principal: auth.Principal(m.Principal), Host: m.Host, Operation: auth.Operation(m.Operation), Permission: auth.Permission(m.PermissionType),
				}))
			}
		}
	}
	return []change{{audit.RuleRemoved, out}}
}

func ruleResource(r auth.Rule) audit.Resource {
	return audit.Resource{Type: strings.ToLower(r.Type.String()), Name: r.Name, Detail: r.String()}
}

// usersChanged tells whose passwords were set or deleted, and never what they are.
func usersChanged(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.AlterUserSCRAMCredentialsRequest)
	results := resp.(*kmsg.AlterUserSCRAMCredentialsResponse).Results
	if protocol.AsksRotate(&req.UnknownTags) {
		if len(results) == 1 && results[0].ErrorCode == 0 {
			return []change{{audit.SecretRotated, []audit.Resource{{Type: audit.TypeCluster, Name: auth.ClusterName}}}}
		}
		return nil
	}
	done := map[string]bool{}
	for _, r := range results {
		done[r.User] = r.ErrorCode == 0
	}
	var set, deleted []audit.Resource
	for _, u := range req.Upsertions {
		if done[u.Name] {
			set = append(set, audit.Resource{Type: audit.TypeUser, Name: u.Name, Detail: scramName(u.Mechanism)})
		}
	}
	for _, d := range req.Deletions {
		if done[d.Name] {
			deleted = append(deleted, audit.Resource{Type: audit.TypeUser, Name: d.Name, Detail: scramName(d.Mechanism)})
		}
	}
	return []change{{audit.UserSet, set}, {audit.UserDeleted, deleted}}
}

func scramName(mechanism int8) string {
	switch mechanism {
	case 1:
		return "SCRAM-SHA-256"
	case 2:
		return "SCRAM-SHA-512"
	}
	return "mechanism " + strconv.Itoa(int(mechanism))
}

func quotasChanged(c *call, resp kmsg.Response) []change {
	req := c.req.(*kmsg.AlterClientQuotasRequest)
	if req.ValidateOnly {
		return nil
	}
	var out []audit.Resource
	for i, r := range resp.(*kmsg.AlterClientQuotasResponse).Entries {
		if r.ErrorCode != 0 || i >= len(req.Entries) {
			continue
		}
		var ops some
		for _, op := range req.Entries[i].Ops {
			if op.Remove {
				ops.addf("%s removed", op.Key)
			} else {
				ops.addf("%s=%s", op.Key, strconv.FormatFloat(op.Value, 'f', -1, 64))
			}
		}
		out = append(out, audit.Resource{Type: audit.TypeQuota, Name: quotaFor(req.Entries[i].Entity), Detail: ops.String()})
	}
	return []change{{audit.QuotaChanged, out}}
}

// quotaFor words whom a quota is for.
func quotaFor(parts []kmsg.AlterClientQuotasRequestEntryEntity) string {
	var out some
	for _, p := range parts {
		if p.Name == nil {
			out.addf("any %s", p.Type)
		} else {
			out.addf("%s %s", p.Type, *p.Name)
		}
	}
	return out.String()
}
