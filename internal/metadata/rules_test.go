package metadata

import (
	"testing"

	"muster/internal/auth"
)

func TestATopicIsShownToWhoMayDescribeIt(t *testing.T) {
	allow := func(host string, op auth.Operation, permission auth.Permission) auth.Rule {
		return auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "t", Principal: auth.User("ann"), Host: host, Operation: op, Permission: permission}
	}
	guarded := map[string]string{"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users": "User:root"}
	ann := Asker{Principal: auth.User("ann"), Host: "10.0.0.1"}
	for _, c := range []struct {
		name  string
		set   map[string]string
		rules []auth.Rule
		who   Asker
		want  bool
	}{
		{"without an authorizer", nil, nil, Asker{}, true},
		{"without a rule", guarded, nil, ann, false},
		{"to nobody", guarded, []auth.Rule{allow(auth.AnyHost, auth.Describe, auth.Allow)}, Asker{}, false},
		{"to a super user", guarded, nil, Asker{Principal: auth.User("root")}, true},
		{"by describe", guarded, []auth.Rule{allow(auth.AnyHost, auth.Describe, auth.Allow)}, ann, true},
		{"by read, which implies it", guarded, []auth.Rule{allow("10.0.0.1", auth.Read, auth.Allow)}, ann, true},
		{"from another host", guarded, []auth.Rule{allow("10.0.0.2", auth.Read, auth.Allow)}, ann, false},
		{"by a right that does not imply it", guarded, []auth.Rule{allow(auth.AnyHost, auth.DescribeConfigs, auth.Allow)}, ann, false},
		{"where it is denied", guarded, []auth.Rule{allow(auth.AnyHost, auth.Read, auth.Allow), allow(auth.AnyHost, auth.Describe, auth.Deny)}, ann, false},
	} {
		edit := imageWith(t, c.set).Edit()
		for _, r := range c.rules {
			edit.AddRule(r)
		}
		if got := edit.Image().Shows("t", c.who); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
