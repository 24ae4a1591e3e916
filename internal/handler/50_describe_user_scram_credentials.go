// DescribeUserScramCredentials (key 50) lists users and the mechanisms by which they can
// log in (KIP-554). Salts and keys are never told.
//
//	v0 flexible

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
)

func (h *Handler) describeUserSCRAMCredentials(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeUserSCRAMCredentialsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeUserSCRAMCredentialsResponse)
	err := c.needsCluster(auth.Describe)
	if err == nil {
		err = checkTogether(len(req.Users))
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = h.code(err)
		return resp, nil
	}
	names := c.image.Users.Names()
	repeated := map[string]bool{}
	if len(req.Users) > 0 { // Without any, all are meant.
		key := func(u *kmsg.DescribeUserSCRAMCredentialsRequestUser) string { return u.Name }
		repeated, names = repeatedIn(req.Users, key), nil
		for _, u := range once(req.Users, key) {
			names = append(names, u.Name)
		}
	}
	for _, name := range names {
		out := kmsg.NewDescribeUserSCRAMCredentialsResponseResult()
		out.User = name
		credentials := c.image.Users.Credentials(name)
		if err := checkDescribed(name, repeated[name], credentials); err != nil {
			out.ErrorCode, out.ErrorMessage = h.code(err)
		} else {
			out.CredentialInfos = credentialInfos(credentials)
		}
		resp.Results = append(resp.Results, out)
	}
	return resp, nil
}

func checkDescribed(name string, repeated bool, credentials []metadata.Credential) error {
	switch {
	case repeated:
		return metadata.Refuse(kerr.DuplicateResource, "Cannot describe SCRAM credentials for the same user twice in a single request: %s", shorten(name))
	case len(credentials) == 0:
		return metadata.Refuse(kerr.ResourceNotFound, "Attempt to describe a user credential that does not exist: %s", shorten(name))
	}
	return nil
}

func credentialInfos(credentials []metadata.Credential) (out []kmsg.DescribeUserSCRAMCredentialsResponseResultCredentialInfo) {
	for _, c := range credentials {
		info := kmsg.NewDescribeUserSCRAMCredentialsResponseResultCredentialInfo()
		info.Mechanism, info.Iterations = c.Hash, int32(c.Iterations)
		out = append(out, info)
	}
	return out
}
