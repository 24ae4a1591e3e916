package handler_test

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"
	"hash"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/protocol"
)

const testPassword = "correct horse"

// upsert sets a user's password as a client does.
func upsert(t *testing.T, name string, mechanism int8) kmsg.AlterUserSCRAMCredentialsRequestUpsertion {
	t.Helper()
	salt := []byte("the salt of " + name)
	digest, size := sha256.New, sha256.Size
	if mechanism == 2 {
		digest, size = sha512.New, sha512.Size
	}
	salted, err := pbkdf2.Key(func() hash.Hash { return digest() }, testPassword, salt, 4096, size)
	must(t, err)
	return kmsg.AlterUserSCRAMCredentialsRequestUpsertion{Name: name, Mechanism: mechanism, Iterations: 4096, Salt: salt, SaltedPassword: salted}
}

// alterUsers returns the errors by user.
func (w *world) alterUsers(req *kmsg.AlterUserSCRAMCredentialsRequest) map[string]*kerr.Error {
	w.t.Helper()
	got := map[string]*kerr.Error{}
	for _, r := range w.request(req).(*kmsg.AlterUserSCRAMCredentialsResponse).Results {
		if _, again := got[r.User]; again || (r.ErrorCode == 0) != (r.ErrorMessage == nil) {
			w.t.Errorf("%+v", r)
		}
		got[r.User] = kerr.TypedErrorForCode(r.ErrorCode)
	}
	return got
}

func (w *world) describeUsers(names ...string) *kmsg.DescribeUserSCRAMCredentialsResponse {
	w.t.Helper()
	req := &kmsg.DescribeUserSCRAMCredentialsRequest{}
	for _, name := range names {
		req.Users = append(req.Users, kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: name})
	}
	return w.request(req).(*kmsg.DescribeUserSCRAMCredentialsResponse)
}

func TestAUserThatWasSetCanLogInAndNothingElseIsTold(t *testing.T) {
	w := emptyWorld(t)
	for mechanism := int8(1); mechanism <= 2; mechanism++ {
		up := upsert(t, "alice", mechanism)
		if got := w.alterUsers(&kmsg.AlterUserSCRAMCredentialsRequest{Upsertions: []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{up}}); len(got) != 1 || got["alice"] != nil {
			t.Fatalf("%v", got)
		}
		kept, ok := w.c.Image().Users.Credential("alice", mechanism)
		want, err := sasl.FromPassword(sasl.Hash(mechanism), testPassword, up.Salt, 4096)
		if err != nil || !ok || !bytes.Equal(kept.StoredKey, want.StoredKey) || !bytes.Equal(kept.ServerKey, want.ServerKey) || !bytes.Equal(kept.Salt, up.Salt) || kept.Iterations != 4096 {
			t.Errorf("mechanism %d: what is kept is not what the password gives (%v)", mechanism, err)
		}
	}
	for _, resp := range []*kmsg.DescribeUserSCRAMCredentialsResponse{w.describeUsers(), w.describeUsers("alice"), w.request(&kmsg.DescribeUserSCRAMCredentialsRequest{Users: []kmsg.DescribeUserSCRAMCredentialsRequestUser{}}).(*kmsg.DescribeUserSCRAMCredentialsResponse)} {
		if len(resp.Results) != 1 || resp.Results[0].User != "alice" || len(resp.Results[0].CredentialInfos) != 2 || resp.Results[0].ErrorCode != 0 {
			t.Fatalf("%+v", resp)
		}
		for i, info := range resp.Results[0].CredentialInfos {
			assert.True(t, info.Mechanism == int8(i+1) && info.Iterations == 4096, "%+v", info)
		}
		raw := resp.AppendTo(nil)
		for _, c := range w.c.Image().Users.Credentials("alice") {
			for _, secret := range [][]byte{c.Salt, c.StoredKey, c.ServerKey, upsert(t, "alice", c.Hash).SaltedPassword} {
				assert.False(t, bytes.Contains(raw, secret), "the answer has a secret")
			}
		}
	}
}

func TestUsersAreAlteredAndDescribedWithKafkasErrors(t *testing.T) {
	w := emptyWorld(t)
	change := func(u kmsg.AlterUserSCRAMCredentialsRequestUpsertion, f func(*kmsg.AlterUserSCRAMCredentialsRequestUpsertion)) kmsg.AlterUserSCRAMCredentialsRequestUpsertion {
		f(&u)
		return u
	}
	type up = kmsg.AlterUserSCRAMCredentialsRequestUpsertion
	got := w.alterUsers(&kmsg.AlterUserSCRAMCredentialsRequest{
		Deletions: []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: "nobody", Mechanism: 1}, {Name: "unknown mechanism", Mechanism: 0}},
		Upsertions: []up{
			upsert(t, "good", 1), upsert(t, "", 1), upsert(t, "mechanism", 3), upsert(t, "both", 1), upsert(t, "both", 2), upsert(t, "nobody", 1),
			change(upsert(t, "few", 1), func(u *up) { u.Iterations = 4095 }), change(upsert(t, "many", 1), func(u *up) { u.Iterations = 16385 }),
			change(upsert(t, "negative", 1), func(u *up) { u.Iterations = -4096 }),
			change(upsert(t, "no salt", 1), func(u *up) { u.Salt = nil }), change(upsert(t, "long salt", 1), func(u *up) { u.Salt = make([]byte, 100_000) }),
			change(upsert(t, "no password", 1), func(u *up) { u.SaltedPassword = nil }), change(upsert(t, "other length", 1), func(u *up) { u.SaltedPassword = make([]byte, 64) }),
			change(upsert(t, "a short one", 2), func(u *up) { u.SaltedPassword = []byte("my-salted-password") }),
		},
	})
	for name, want := range map[string]*kerr.Error{
		"nobody": kerr.ResourceNotFound, "unknown mechanism": kerr.UnsupportedSaslMechanism, "good": nil, "": kerr.UnacceptableCredential, "mechanism": kerr.UnsupportedSaslMechanism,
		"both": kerr.DuplicateResource, "few": kerr.UnacceptableCredential, "many": kerr.UnacceptableCredential, "negative": kerr.UnacceptableCredential,
		"no salt": kerr.UnacceptableCredential, "long salt": kerr.UnacceptableCredential, "no password": kerr.UnacceptableCredential, "other length": nil, "a short one": nil,
	} {
		if is, ok := got[name]; !ok || is != want {
			t.Errorf("%q: %v, want %v", name, is, want)
		}
	}
	assert.EqualSlices(t, w.c.Image().Users.Names(), []string{"a short one", "good", "other length"}, "users")
	resp := w.describeUsers("nobody", "good", "twice", "good", "twice", "only good")
	for _, r := range resp.Results {
		want := map[string]*kerr.Error{"nobody": kerr.ResourceNotFound, "only good": kerr.ResourceNotFound, "good": kerr.DuplicateResource, "twice": kerr.DuplicateResource}[r.User]
		assert.True(t, kerr.TypedErrorForCode(r.ErrorCode) == want && r.ErrorMessage != nil && len(r.CredentialInfos) == 0, "%+v, want %v", r, want)
	}
	assert.True(t, len(resp.Results) == 4 && resp.ErrorCode == 0, "%+v", resp)
	all := []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: "good", Mechanism: 1}, {Name: "a short one", Mechanism: 2}, {Name: "other length", Mechanism: 1}}
	if got := w.alterUsers(&kmsg.AlterUserSCRAMCredentialsRequest{Deletions: all}); got["good"] != nil || w.c.Image().Users != nil {
		t.Errorf("%v", got)
	}
	if resp := w.describeUsers(); len(resp.Results) != 0 || resp.ErrorCode != 0 {
		t.Errorf("%+v", resp)
	}
}

func TestThousandsOfUsersInARequest(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	const many = 10_000
	w := emptyWorld(t)
	one := upsert(t, "", 1)
	req := &kmsg.AlterUserSCRAMCredentialsRequest{}
	var names []string
	for i := range many {
		one.Name = fmt.Sprint(i)
		req.Upsertions = append(req.Upsertions, one)
		names = append(names, one.Name)
	}
	for name, err := range w.alterUsers(req) {
		assert.MustEqual(t, err, nil, "%s", name)
	}
	for _, resp := range []*kmsg.DescribeUserSCRAMCredentialsResponse{w.describeUsers(), w.describeUsers(names...)} {
		assert.True(t, len(resp.Results) == many && resp.Results[many-1].ErrorCode == 0, "%d users", len(resp.Results))
	}
	if got := w.describeUsers(make([]string, 200_000)...); got.ErrorCode != kerr.InvalidRequest.Code || len(got.Results) != 0 {
		t.Errorf("%d results", len(got.Results))
	}
	long := strings.Repeat("n", 30_000)
	assert.True(t, len(*w.describeUsers(long).Results[0].ErrorMessage) <= 300, "the answer has the name a second time")
	req.Upsertions = make([]kmsg.AlterUserSCRAMCredentialsRequestUpsertion, 200_000)
	if got := w.request(req).(*kmsg.AlterUserSCRAMCredentialsResponse); len(got.Results) != 1 || got.Results[0].ErrorCode != kerr.InvalidRequest.Code {
		t.Errorf("%d results", len(got.Results))
	}
	assert.Equal(t, w.c.Image().Users.Len(), many, "users are gone")
}

func TestTheSecretOfBrokersIsRotatedByWhoMayAlterTheCluster(t *testing.T) {
	w := newGuardedWorld(t)
	rotate := func(who auth.Principal, users ...kmsg.AlterUserSCRAMCredentialsRequestUpsertion) kmsg.AlterUserSCRAMCredentialsResponseResult {
		req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
		protocol.AskRotate(&req.UnknownTags)
		req.Upsertions = users
		got := w.as(who, req).(*kmsg.AlterUserSCRAMCredentialsResponse).Results
		assert.MustEqual(t, len(got), 1, "%+v", got)
		return got[0]
	}
	if got := rotate(alice); got.ErrorCode != kerr.ClusterAuthorizationFailed.Code {
		t.Errorf("without the right: %+v", got)
	}
	w.may(alice, auth.Alter, auth.Cluster, auth.ClusterName)
	// The broker of this test is alone, so it has gone as far as it can.
	if got := rotate(alice); got.ErrorCode != kerr.InvalidRequest.Code || !strings.Contains(*got.ErrorMessage, "does not share its store") {
		t.Errorf("with the right: %+v", got)
	}
	if got := rotate(alice, upsert(t, "bob", 1)); got.ErrorCode != kerr.InvalidRequest.Code || got.User != "bob" || w.c.Image().Users.Len() != 0 {
		t.Errorf("together with a user: %+v", got)
	}
}
