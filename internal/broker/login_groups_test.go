package broker_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/logintest"
)

// bears returns a client that logs in by a token with groups, and the token.
func (k *tokens) bears(b *broker.Broker, user string, groups ...string) (*kgo.Client, string) {
	k.t.Helper()
	claims := logintest.ClaimsOf(user, "kafka", time.Now().Add(time.Hour))
	claims["teams"] = groups
	token, err := k.Token(claims)
	must(k.t, err)
	return client(k.t, b, kgo.SASL(k.login(token)), kgo.RequestRetries(0)), token
}

func TestRulesForGroupsHoldForThoseWhoseTokenNamesThem(t *testing.T) {
	issuer := newTokens(t)
	b := start(t, map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER", "connection.failed.authentication.delay.ms": "0", "muster.http.listener": "127.0.0.1:0",
		"sasl.oauthbearer.jwks.endpoint.url": issuer.url, "sasl.oauthbearer.expected.audience": "kafka",
		"muster.oauthbearer.groups.claim": "teams", "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "Group:admins",
	})
	ann, annToken := issuer.bears(b, "ann", "admins")
	admin := kadm.NewClient(ann)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	rules := []*kadm.ACLBuilder{
		kadm.NewACLs().Topics("orders").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpDescribe).Allow("Group:payments").AllowHosts(),
		kadm.NewACLs().Topics("orders").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpDescribe).Deny("Group:interns").DenyHosts(),
	}
	for _, r := range rules {
		if results, err := admin.CreateACLs(t.Context(), r); err != nil || results[0].Err != nil {
			t.Fatal(err, results)
		}
	}
	for _, c := range []struct {
		user   string
		groups []string
		want   bool
	}{{"bob", []string{"payments"}, true}, {"payments", nil, false}, {"cid", []string{"others"}, false}, {"dan", []string{"interns", "payments"}, false}} {
		other, token := issuer.bears(b, c.user, c.groups...)
		topics, err := kadm.NewClient(other).ListTopics(t.Context(), "orders")
		if (err == nil && topics["orders"].Err == nil) != c.want {
			t.Errorf("%s in %v: %v, %v", c.user, c.groups, err, topics["orders"].Err)
		}
		for who, want := range map[string]bool{token: c.want, annToken: true} {
			code, _ := people(t, b, nil, http.MethodGet, "/topics/orders", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+who) })
			assert.Equal(t, code == http.StatusOK, want, "%s in %v, over HTTP: %d", c.user, c.groups, code)
		}
	}
}
