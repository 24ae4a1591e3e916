package handler_test

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/handler"
)

// FuzzSecurity lets arbitrary bodies of the requests about logins, rules, users and quotas
// at a handler with an authorizer, in the name of a super user and of someone who has no
// rights. Whatever comes, it answers or ends the connection, and no one who has no rights
// changes anything.
func FuzzSecurity(f *testing.F) {
	keys := []int16{17, 29, 30, 31, 36, 48, 49, 50, 51}
	for which, key := range keys {
		for _, filled := range []kmsg.Request{kmsg.RequestForKey(key), securityRequest(key)} {
			for version := int16(0); version <= filled.MaxVersion(); version++ {
				filled.SetVersion(version)
				f.Add(uint8(which), uint8(version), filled.AppendTo(nil))
			}
		}
	}
	w := newGuardedWorld(f)
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	f.Fuzz(func(t *testing.T, which, version uint8, body []byte) {
		w.t = t
		req := kmsg.RequestForKey(keys[int(which)%len(keys)])
		req.SetVersion(int16(version) % (req.MaxVersion() + 1))
		whole := format.AppendRequest(nil, req, 1)[4:]
		header := whole[:len(whole)-len(req.AppendTo(nil))]
		for _, who := range []auth.Principal{bob, root} {
			frame, before := append(append([]byte{}, header...), body...), w.c.Image()
			resp, err := w.h.Serve(context.Background(), handler.Origin{Listener: "L", Host: "127.0.0.1", Principal: who, Session: deaf{}}, frame)
			if err != nil || resp == nil {
				continue
			}
			w.decode(req, resp)
			if now := w.c.Image(); who == bob && (now.Rules != before.Rules || now.Users != before.Users || now.Quotas != before.Quotas) {
				t.Fatalf("%s v%d %x changes something", kmsg.NameForKey(req.Key()), req.GetVersion(), body)
			}
		}
		if rules := w.c.Image().Rules; rules.Len() > 1000 {
			w.c.DeleteRules(context.Background(), []auth.Filter{{Type: auth.AnyResource, Pattern: auth.AnyPattern, Operation: auth.AnyOperation, Permission: auth.AnyPermission}})
		}
	})
}

// securityRequest is a request with something in it.
func securityRequest(key int16) kmsg.Request {
	name := "alice"
	switch r := kmsg.RequestForKey(key).(type) {
	case *kmsg.SASLHandshakeRequest:
		r.Mechanism = "PLAIN"
		return r
	case *kmsg.SASLAuthenticateRequest:
		r.SASLAuthBytes = []byte("\x00alice\x00pw")
		return r
	case *kmsg.DescribeACLsRequest:
		r.ResourceType, r.ResourcePatternType, r.ResourceName, r.Operation, r.PermissionType = kmsg.ACLResourceTypeTopic, kmsg.ACLResourcePatternTypeMatch, &name, kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
		return r
	case *kmsg.CreateACLsRequest:
		r.Creations = []kmsg.CreateACLsRequestCreation{{
			ResourceType: kmsg.ACLResourceTypeTopic, ResourceName: "orders", ResourcePatternType: kmsg.ACLResourcePatternTypePrefixed,
			Principal: "User:alice", Host: "10.0.0.1", Operation: kmsg.ACLOperationRead, PermissionType: kmsg.ACLPermissionTypeDeny,
		}}
		return r
	case *kmsg.DeleteACLsRequest:
		r.Filters = []kmsg.DeleteACLsRequestFilter{{
			ResourceType: kmsg.ACLResourceTypeAny, ResourcePatternType: kmsg.ACLResourcePatternTypeAny,
			Principal: &name, Operation: kmsg.ACLOperationAny, PermissionType: kmsg.ACLPermissionTypeAny,
		}}
		return r
	case *kmsg.DescribeClientQuotasRequest:
		r.Components = []kmsg.DescribeClientQuotasRequestComponent{{EntityType: "user", Match: &name}, {EntityType: "client-id", MatchType: 2}}
		return r
	case *kmsg.AlterClientQuotasRequest:
		r.Entries = []kmsg.AlterClientQuotasRequestEntry{{
			Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &name}, {Type: "client-id"}},
			Ops:    []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1e6}, {Key: "consumer_byte_rate", Remove: true}},
		}}
		return r
	case *kmsg.DescribeUserSCRAMCredentialsRequest:
		r.Users = []kmsg.DescribeUserSCRAMCredentialsRequestUser{{Name: name}}
		return r
	case *kmsg.AlterUserSCRAMCredentialsRequest:
		r.Deletions = []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: "bob", Mechanism: 1}}
		r.Upsertions = []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{{Name: name, Mechanism: 2, Iterations: 4096, Salt: []byte("salt"), SaltedPassword: make([]byte, 64)}}
		return r
	}
	panic("there is no such request")
}

// deaf is a session in which no one logs in.
type deaf struct{}

func (deaf) Handshake(int16, string) (*kerr.Error, []string) {
	return kerr.UnsupportedSaslMechanism, []string{"PLAIN"}
}

func (deaf) Software(string, string) {}

func (deaf) Authenticate(context.Context, []byte) handler.Login {
	return handler.Login{Error: kerr.SaslAuthenticationFailed, Message: "no"}
}
