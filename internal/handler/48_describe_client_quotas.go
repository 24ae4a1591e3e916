// DescribeClientQuotas (key 48) lists the quotas of users, client ids and addresses
// (KIP-546).
//
//	v0 the original fields; v1 flexible

package handler

import (
	"context"
	"maps"
	"net/netip"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// The types of entities, as on the wire.
const (
	quotaUser     = "user"
	quotaClientID = "client-id"
	quotaIP       = "ip"
)

// partFilter says which entities are meant by one of their parts.
type partFilter struct {
	given bool               // otherwise any, and with strict those without the part
	some  bool               // any that have the part
	exact metadata.QuotaName // this one
	never bool               // none
}

// quotaFilter has a filter for each part.
type quotaFilter struct {
	strict           bool
	user, client, ip partFilter
}

func (h *Handler) describeClientQuotas(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeClientQuotasRequest)
	resp := req.ResponseKind().(*kmsg.DescribeClientQuotasResponse)
	filter, err := newQuotaFilter(req)
	if denied := c.needsCluster(auth.DescribeConfigs); denied != nil {
		err = denied
	}
	if resp.ErrorCode, resp.ErrorMessage = h.code(err); err != nil {
		return resp, nil
	}
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{} // Null is for errors.
	for _, e := range c.image.Quotas.Entities() {
		if filter.matches(e) {
			resp.Entries = append(resp.Entries, describedQuotas(e, c.image.Quotas.Of(e)))
		}
	}
	return resp, nil
}

// newQuotaFilter has Kafka's checks and words.
func newQuotaFilter(req *kmsg.DescribeClientQuotasRequest) (f quotaFilter, err error) {
	f.strict = req.Strict
	for i := range req.Components {
		comp := &req.Components[i]
		part := f.part(comp.EntityType)
		switch {
		case comp.EntityType == "":
			return f, metadata.Refuse(kerr.InvalidRequest, "Invalid empty entity type.")
		case part == nil:
			return f, metadata.Refuse(kerr.UnsupportedVersion, "Unsupported entity type %s", shorten(comp.EntityType))
		case part.given:
			return f, metadata.Refuse(kerr.InvalidRequest, "Entity type %s cannot appear more than once in the filter.", comp.EntityType)
		}
		if *part, err = newPartFilter(comp); err != nil {
			return f, err
		}
	}
	if f.ip.given && (f.user.given || f.client.given) {
		return f, metadata.Refuse(kerr.InvalidRequest, "Invalid entity filter component combination. IP filter component should not be used with user or clientId filter component.")
	}
	return f, nil
}

func (f *quotaFilter) part(kind string) *partFilter {
	switch kind {
	case quotaUser:
		return &f.user
	case quotaClientID:
		return &f.client
	case quotaIP:
		return &f.ip
	}
	return nil
}

func newPartFilter(comp *kmsg.DescribeClientQuotasRequestComponent) (partFilter, error) {
	f := partFilter{given: true}
	switch comp.MatchType {
	case kmsg.QuotasMatchTypeExact:
		if comp.Match == nil {
			return f, metadata.Refuse(kerr.InvalidRequest, "Request specified MATCH_TYPE_EXACT, but set match string to null.")
		}
		f.exact, f.never = metadata.Some(*comp.Match), *comp.Match == "" // That is no one's name.
		if addr, err := netip.ParseAddr(*comp.Match); err == nil && comp.EntityType == quotaIP {
			f.exact.Name = auth.Host(addr)
		}
		return f, nil
	case kmsg.QuotasMatchTypeDefault:
		f.exact = metadata.Default()
	case kmsg.QuotasMatchTypeAny:
		f.some = true
	default:
		return f, metadata.Refuse(kerr.InvalidRequest, "Unknown match type %d", comp.MatchType)
	}
	if comp.Match != nil {
		return f, metadata.Refuse(kerr.InvalidRequest, "Request specified a match type without a match string, but also specified one.")
	}
	return f, nil
}

func (f *quotaFilter) matches(e metadata.QuotaEntity) bool {
	return f.user.matches(e.User, f.strict) && f.client.matches(e.ClientID, f.strict) && f.ip.matches(e.IP, f.strict)
}

func (f *partFilter) matches(part metadata.QuotaName, strict bool) bool {
	switch {
	case !f.given:
		return !strict || !part.Named
	case f.some:
		return part.Named
	}
	return !f.never && part == f.exact
}

func describedQuotas(e metadata.QuotaEntity, set map[string]float64) kmsg.DescribeClientQuotasResponseEntry {
	out := kmsg.NewDescribeClientQuotasResponseEntry()
	for _, part := range []struct { // In Kafka's order, which follows from the hashes of the types.
		kind string
		name metadata.QuotaName
	}{{quotaIP, e.IP}, {quotaClientID, e.ClientID}, {quotaUser, e.User}} {
		if !part.name.Named {
			continue
		}
		entity := kmsg.NewDescribeClientQuotasResponseEntryEntity()
		entity.Type = part.kind
		if part.name.Name != "" { // Null is the default.
			entity.Name = &part.name.Name
		}
		out.Entity = append(out.Entity, entity)
	}
	for _, key := range slices.Sorted(maps.Keys(set)) {
		value := kmsg.NewDescribeClientQuotasResponseEntryValue()
		value.Key, value.Value = key, set[key]
		out.Values = append(out.Values, value)
	}
	return out
}

// shorten cuts what a client wrote, for an answer.
func shorten(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
