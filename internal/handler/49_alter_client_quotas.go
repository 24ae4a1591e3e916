// AlterClientQuotas (key 49) changes quotas of users, client ids and addresses (KIP-546).
//
//	v0 the original fields; v1 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// maxQuotaOps is how many quotas of one entity a request may change. There are fewer keys.
const maxQuotaOps = 100

func (h *Handler) alterClientQuotas(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterClientQuotasRequest)
	if err := c.needsCluster(auth.AlterConfigs); err != nil {
		return h.refuseAlterClientQuotas(req, err), nil
	}
	if err := checkTogether(len(req.Entries)); err != nil {
		return h.refuseAlterClientQuotas(req, err), nil
	}
	errs := make([]error, len(req.Entries))
	var changes []metadata.QuotaChange
	var at []int // where in the request a change is
	for i := range req.Entries {
		change, err := quotaChange(&req.Entries[i])
		if errs[i] = err; err == nil {
			changes, at = append(changes, change), append(at, i)
		}
	}
	for i, err := range h.opts.Controller.AlterQuotas(ctx, changes, req.ValidateOnly) {
		errs[at[i]] = err
	}
	resp := alteredQuotas(req)
	for i, err := range errs {
		resp.Entries[i].ErrorCode, resp.Entries[i].ErrorMessage = h.code(err)
	}
	return resp, nil
}

// refuseAlterClientQuotas refuses all of a request.
func (h *Handler) refuseAlterClientQuotas(req *kmsg.AlterClientQuotasRequest, err error) kmsg.Response {
	resp := alteredQuotas(req)
	code, msg := h.code(err)
	refuseEach(len(resp.Entries), code, msg, func(i int, code int16, msg *string) {
		resp.Entries[i].ErrorCode, resp.Entries[i].ErrorMessage = code, msg
	})
	return resp
}

// alteredQuotas makes the answer, in which each entity is named as the client did.
func alteredQuotas(req *kmsg.AlterClientQuotasRequest) *kmsg.AlterClientQuotasResponse {
	resp := req.ResponseKind().(*kmsg.AlterClientQuotasResponse)
	resp.Entries = make([]kmsg.AlterClientQuotasResponseEntry, len(req.Entries))
	for i := range req.Entries {
		for _, part := range req.Entries[i].Entity {
			out := kmsg.NewAlterClientQuotasResponseEntryEntity()
			out.Type, out.Name = part.Type, part.Name
			resp.Entries[i].Entity = append(resp.Entries[i].Entity, out)
		}
	}
	return resp
}

// quotaChange reads one entry. What is allowed is decided where it is changed.
func quotaChange(entry *kmsg.AlterClientQuotasRequestEntry) (ch metadata.QuotaChange, err error) {
	if ch.Entity, err = quotaEntity(entry); err != nil {
		return ch, err
	}
	if len(entry.Ops) > maxQuotaOps {
		return ch, metadata.Refuse(kerr.InvalidRequest, "an entity has fewer than %d quotas", maxQuotaOps)
	}
	seen := map[string]bool{}
	ch.Set = map[string]float64{}
	for _, op := range entry.Ops {
		switch {
		case seen[op.Key]:
			return ch, metadata.Refuse(kerr.InvalidRequest, "Duplicate quota key %s", shorten(op.Key))
		case op.Remove:
			ch.Remove = append(ch.Remove, op.Key)
		default:
			ch.Set[op.Key] = op.Value
		}
		seen[op.Key] = true
	}
	return ch, nil
}

func quotaEntity(entry *kmsg.AlterClientQuotasRequestEntry) (e metadata.QuotaEntity, err error) {
	for i := range entry.Entity {
		in := &entry.Entity[i]
		part := map[string]*metadata.QuotaName{quotaUser: &e.User, quotaClientID: &e.ClientID, quotaIP: &e.IP}[in.Type]
		switch {
		case part == nil:
			return e, metadata.Refuse(kerr.InvalidRequest, "Unhandled client quota entity type: %s", shorten(in.Type))
		case part.Named:
			return e, metadata.Refuse(kerr.InvalidRequest, "Invalid client quota entity, duplicate entity entry %s", in.Type)
		case in.Name == nil:
			*part = metadata.Default()
		case *in.Name == "":
			return e, metadata.Refuse(kerr.InvalidRequest, "Empty %s not supported", in.Type)
		default:
			*part = metadata.Some(*in.Name)
		}
	}
	return e, nil
}
