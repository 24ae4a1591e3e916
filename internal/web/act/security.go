package act

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
)

// SetPassword sets what a user logs in with, by the mechanisms that are named. A request may name a user once, so there is one for
// each mechanism.
func (a *Acts) SetPassword(ctx context.Context, who Asker, user, password string, mechanisms []string) error {
	for _, mechanism := range mechanisms {
		u := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		u.Name, u.Iterations = user, sasl.MinIterations
		var err error
		if u.Salt, err = sasl.NewSalt(rand.Reader); err != nil {
			return err
		}
		switch mechanism {
		case "SCRAM-SHA-256":
			u.Mechanism = int8(sasl.SHA256)
			u.SaltedPassword, err = pbkdf2.Key(sha256.New, password, u.Salt, sasl.MinIterations, sha256.Size)
		case "SCRAM-SHA-512":
			u.Mechanism = int8(sasl.SHA512)
			u.SaltedPassword, err = pbkdf2.Key(sha512.New, password, u.Salt, sasl.MinIterations, sha512.Size)
		default:
			err = fmt.Errorf("there is no mechanism %q", mechanism)
		}
		if err != nil {
			return err
		}
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		req.Upsertions = append(req.Upsertions, u)
		if err := a.alterUser(ctx, who, req); err != nil {
			return err
		}
	}
	return nil
}

// DeleteUser deletes a user.
func (a *Acts) DeleteUser(ctx context.Context, who Asker, user string) error {
	hashes := []int8{int8(sasl.SHA256)} // Of no user it is refused.
	if all := a.Image().Users.Credentials(user); len(all) > 0 {
		hashes = nil
		for _, c := range all {
			hashes = append(hashes, c.Hash)
		}
	}
	for _, hash := range hashes {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		d := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		d.Name, d.Mechanism = user, hash
		req.Deletions = append(req.Deletions, d)
		if err := a.alterUser(ctx, who, req); err != nil {
			return err
		}
	}
	return nil
}

func (a *Acts) alterUser(ctx context.Context, who Asker, req *kmsg.AlterUserSCRAMCredentialsRequest) error {
	o, err := request[*kmsg.AlterUserSCRAMCredentialsResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Results) != 1 {
		return errNoOutcome
	}
	return o.failed(o.answer.Results[0].ErrorCode, o.answer.Results[0].ErrorMessage, "")
}

// AddRule adds an ACL rule.
func (a *Acts) AddRule(ctx context.Context, who Asker, r auth.Rule) error {
	req := kmsg.NewPtrCreateACLsRequest()
	req.Version = 3
	c := kmsg.NewCreateACLsRequestCreation()
	c.ResourceType, c.ResourceName, c.ResourcePatternType = kmsg.ACLResourceType(r.Type), r.Name, kmsg.ACLResourcePatternType(r.Pattern)
	c.Principal, c.Host, c.Operation, c.PermissionType = string(r.Principal), r.Host, kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
	req.Creations = append(req.Creations, c)
	o, err := request[*kmsg.CreateACLsResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Results) != 1 {
		return errNoOutcome
	}
	return o.failed(o.answer.Results[0].ErrorCode, o.answer.Results[0].ErrorMessage, "")
}

// RemoveRule removes an ACL rule, and says whether there was one.
func (a *Acts) RemoveRule(ctx context.Context, who Asker, r auth.Rule) (bool, error) {
	req := kmsg.NewPtrDeleteACLsRequest()
	req.Version = 3
	f := kmsg.NewDeleteACLsRequestFilter()
	principal := string(r.Principal)
	f.ResourceType, f.ResourceName, f.ResourcePatternType = kmsg.ACLResourceType(r.Type), &r.Name, kmsg.ACLResourcePatternType(r.Pattern)
	f.Principal, f.Host, f.Operation, f.PermissionType = &principal, &r.Host, kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
	req.Filters = append(req.Filters, f)
	o, err := request[*kmsg.DeleteACLsResponse](ctx, a, who, req)
	if err != nil {
		return false, err
	}
	if len(o.answer.Results) != 1 {
		return false, errNoOutcome
	}
	done := &o.answer.Results[0]
	if err := o.failed(done.ErrorCode, done.ErrorMessage, ""); err != nil {
		return false, err
	}
	for _, m := range done.MatchingACLs {
		if err := o.failed(m.ErrorCode, m.ErrorMessage, ""); err != nil {
			return false, err
		}
	}
	return len(done.MatchingACLs) > 0, nil
}

// AlterQuota changes quotas.
func (a *Acts) AlterQuota(ctx context.Context, who Asker, q *ChangedQuota, validateOnly bool) error {
	req := kmsg.NewPtrAlterClientQuotasRequest()
	req.Version, req.ValidateOnly = 1, validateOnly
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for _, part := range q.Entity {
		e := kmsg.NewAlterClientQuotasRequestEntryEntity()
		e.Type, e.Name = part.Type, part.Name
		entry.Entity = append(entry.Entity, e)
	}
	for _, v := range q.Set {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Value = v.Name, v.Value
		entry.Ops = append(entry.Ops, op)
	}
	for _, name := range q.Remove {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Remove = name, true
		entry.Ops = append(entry.Ops, op)
	}
	req.Entries = append(req.Entries, entry)
	o, err := request[*kmsg.AlterClientQuotasResponse](ctx, a, who, req)
	if err != nil {
		return err
	}
	if len(o.answer.Entries) != 1 {
		return errNoOutcome
	}
	return o.failed(o.answer.Entries[0].ErrorCode, o.answer.Entries[0].ErrorMessage, "")
}
