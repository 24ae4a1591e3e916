// AlterUserScramCredentials (key 51) sets and deletes what is kept of the passwords of
// users (KIP-554). Clients send the salted password, from which the kept keys are made.
//
//	v0 flexible
//
// A tagged field of muster's own rotates the secret of the brokers (protocol.TagRotate).

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/metadata"
	"muster/internal/protocol"
)

func (h *Handler) alterUserSCRAMCredentials(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.AlterUserSCRAMCredentialsRequest)
	if err := c.needsCluster(auth.Alter); err != nil {
		if protocol.AsksRotate(&req.UnknownTags) {
			return h.rotated(req, err), nil
		}
		return h.refuseAlterUserSCRAMCredentials(req, err), nil
	}
	if err := checkTogether(len(req.Deletions) + len(req.Upsertions)); err != nil {
		return h.refuseAlterUserSCRAMCredentials(req, err), nil
	}
	if protocol.AsksRotate(&req.UnknownTags) {
		return h.rotateSecret(ctx, req)
	}
	var changes []metadata.UserChange
	for _, d := range req.Deletions {
		changes = append(changes, metadata.UserChange{Name: d.Name, Hash: d.Mechanism})
	}
	for i := range req.Upsertions {
		changes = append(changes, upsertion(&req.Upsertions[i]))
	}
	errs := map[string]error{} // All changes of a user have the same.
	for i, err := range h.opts.Controller.AlterUsers(ctx, changes) {
		errs[changes[i].Name] = err
	}
	resp := alteredUsers(req)
	for i := range resp.Results {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = h.code(errs[resp.Results[i].User])
	}
	return resp, nil
}

// rotateSecret gives the brokers another secret. The request is about nothing else.
func (h *Handler) rotateSecret(ctx context.Context, req *kmsg.AlterUserSCRAMCredentialsRequest) (kmsg.Response, error) {
	if len(req.Deletions)+len(req.Upsertions) > 0 {
		return h.refuseAlterUserSCRAMCredentials(req, metadata.Refuse(kerr.InvalidRequest, "users are not changed together with the secret of brokers")), nil
	}
	return h.rotated(req, h.opts.Controller.RotateSecret(ctx, h.opts.Now())), nil
}

// rotated is the answer, with one result of no user.
func (h *Handler) rotated(req *kmsg.AlterUserSCRAMCredentialsRequest, err error) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterUserSCRAMCredentialsResponse)
	out := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
	out.ErrorCode, out.ErrorMessage = h.code(err)
	resp.Results = append(resp.Results, out)
	return resp
}

// upsertion makes a credential. One that cannot be made stays without keys, and is refused
// where all changes are checked in their order.
func upsertion(u *kmsg.AlterUserSCRAMCredentialsRequestUpsertion) metadata.UserChange {
	set := metadata.Credential{Hash: u.Mechanism, Salt: u.Salt, Iterations: int(u.Iterations)}
	if made, err := sasl.FromSalted(sasl.Hash(u.Mechanism), u.Salt, u.SaltedPassword, int(u.Iterations)); err == nil {
		set.StoredKey, set.ServerKey = made.StoredKey, made.ServerKey
	}
	return metadata.UserChange{Name: u.Name, Hash: u.Mechanism, Set: &set}
}

// refuseAlterUserSCRAMCredentials refuses all of a request.
func (h *Handler) refuseAlterUserSCRAMCredentials(req *kmsg.AlterUserSCRAMCredentialsRequest, err error) kmsg.Response {
	resp := alteredUsers(req)
	code, msg := h.code(err)
	refuseEach(len(resp.Results), code, msg, func(i int, code int16, msg *string) {
		resp.Results[i].ErrorCode, resp.Results[i].ErrorMessage = code, msg
	})
	return resp
}

// alteredUsers makes the answer, which has each user once.
func alteredUsers(req *kmsg.AlterUserSCRAMCredentialsRequest) *kmsg.AlterUserSCRAMCredentialsResponse {
	resp := req.ResponseKind().(*kmsg.AlterUserSCRAMCredentialsResponse)
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out := kmsg.NewAlterUserSCRAMCredentialsResponseResult()
			out.User = name
			resp.Results = append(resp.Results, out)
		}
	}
	for i := range req.Deletions {
		add(req.Deletions[i].Name)
	}
	for i := range req.Upsertions {
		add(req.Upsertions[i].Name)
	}
	return resp
}
