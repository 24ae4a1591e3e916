package auth

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"pgregory.net/rapid"

	"muster/internal/assert"
)

func orders() Rule {
	return Rule{Type: Topic, Pattern: Literal, Name: "orders", Principal: "User:alice", Host: "*", Operation: Read, Permission: Allow}
}

func TestNonsenseIsNoRule(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Rule)
		want   string
	}{
		{"as it is", func(*Rule) {}, ""},
		{"resource type any", func(r *Rule) { r.Type = AnyResource }, "Invalid resourceType ANY"},
		{"resource type nobody knows", func(r *Rule) { r.Type = 99 }, "Invalid resourceType UNKNOWN"},
		{"the first resource type that there is not", func(r *Rule) { r.Type = 8 }, "Invalid resourceType UNKNOWN"},
		{"resource type 0", func(r *Rule) { r.Type = 0 }, "Invalid resourceType UNKNOWN"},
		{"resource type below", func(r *Rule) { r.Type = -1 }, "Invalid resourceType UNKNOWN"},
		{"delegation token", func(r *Rule) { r.Type = 6 }, "no delegation tokens"},
		{"user", func(r *Rule) { r.Type = 7 }, "no delegation tokens"},
		{"pattern any", func(r *Rule) { r.Pattern = AnyPattern }, "Invalid patternType ANY"},
		{"pattern match", func(r *Rule) { r.Pattern = Match }, "Invalid patternType MATCH"},
		{"pattern nobody knows", func(r *Rule) { r.Pattern = 5 }, "Invalid patternType UNKNOWN"},
		{"prefix", func(r *Rule) { r.Pattern = Prefixed }, ""},
		{"operation any", func(r *Rule) { r.Operation = AnyOperation }, "Invalid operation ANY"},
		{"operation 0", func(r *Rule) { r.Operation = 0 }, "Invalid operation UNKNOWN"},
		{"operation nobody knows", func(r *Rule) { r.Operation = 16 }, "Invalid operation UNKNOWN"},
		{"the last operation", func(r *Rule) { r.Operation = TwoPhaseCommit }, ""},
		{"an operation that topics do not have", func(r *Rule) { r.Operation = ClusterAction }, ""},
		{"permission any", func(r *Rule) { r.Permission = AnyPermission }, "Invalid permissionType ANY"},
		{"permission nobody knows", func(r *Rule) { r.Permission = 4 }, "Invalid permissionType UNKNOWN"},
		{"deny", func(r *Rule) { r.Permission = Deny }, ""},
		{"no name", func(r *Rule) { r.Name = "" }, "Invalid empty resource name"},
		{"no type of principal", func(r *Rule) { r.Principal = "alice" }, "Could not parse principal from `alice`"},
		{"another type of principal", func(r *Rule) { r.Principal = "Robot:alice" }, ""},
		{"the cluster by another name", func(r *Rule) { r.Type, r.Name = Cluster, "mine" }, "The only valid name for the CLUSTER resource is kafka-cluster"},
		{"every cluster", func(r *Rule) { r.Type, r.Name = Cluster, "*" }, "The only valid name for the CLUSTER resource is kafka-cluster"},
		{"the cluster", func(r *Rule) { r.Type, r.Name = Cluster, ClusterName }, ""},
		{"no host", func(r *Rule) { r.Host = "" }, "Invalid empty host"},
		{"a long name", func(r *Rule) { r.Name = strings.Repeat("x", maxText) }, ""},
		{"a name too long", func(r *Rule) { r.Name = strings.Repeat("x", maxText+1) }, "at most 32767 bytes"},
		{"a principal that is no text", func(r *Rule) { r.Principal = "User:\xff" }, "valid UTF-8"},
		{"a host that is no text", func(r *Rule) { r.Host = "\xff" }, "valid UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := orders()
			c.change(&r)
			got, err := r.Check()
			if c.want == "" {
				assert.MustTrue(t, err == nil && got == r, "%+v, %v", got, err)
				return
			}
			assert.MustTrue(t, err != nil && strings.Contains(err.Error(), c.want) && errors.Is(err, kerr.InvalidRequest), "%v, not %q", err, c.want)
		})
	}
}

func TestAHostHasOneForm(t *testing.T) {
	for host, want := range map[string]string{
		"*": "*", "10.0.0.1": "10.0.0.1", "::1": "::1", "0:0:0:0:0:0:0:1": "::1", "::ffff:10.0.0.1": "10.0.0.1",
		"fe80:0:0:0:0:0:0:1%eth0": "fe80::1", "2001:DB8::A": "2001:db8::a", "some.host": "some.host",
	} {
		r := orders()
		r.Host = host
		if got, err := r.Check(); err != nil || got.Host != want {
			t.Errorf("a rule for %s is for %s, not %s: %v", host, got.Host, want, err)
		}
		f := Filter{Type: AnyResource, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission, Host: &host}
		r.Host = want
		if f, err := f.Check(); err != nil || !f.Matches(r) {
			t.Errorf("a filter for %s does not find the rule for %s: %v", host, want, err)
		}
	}
	assert.Equal(t, Host(netip.MustParseAddr("::ffff:10.0.0.1")), "10.0.0.1", "a connection")
	assert.Equal(t, Host(netip.MustParseAddr("fe80::1%eth0")), "fe80::1", "a connection")
}

func TestARuleIsReadBackFromItsRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := genRule.Draw(t, "rule")
		r.Name = rapid.StringN(1, 20, -1).Draw(t, "name")
		r.Principal = User(rapid.String().Draw(t, "user"))
		got, err := DecodeRule(r.ID(), r.Value())
		assert.MustTrue(t, err == nil && got == r, "%+v became %+v: %v", r, got, err)
		other := genRule.Draw(t, "other")
		if (other == r) != (other.ID() == r.ID()) {
			t.Fatalf("%+v and %+v have the ids %s and %s", r, other, r.ID(), other.ID())
		}
		if _, err := DecodeRule(other.ID(), r.Value()); err == nil && other != r {
			t.Fatalf("%+v was read under the id of another rule", r)
		}
	})
}

// Records are on disks: their form cannot change any more.
func TestTheFormOfARecord(t *testing.T) {
	r := orders()
	const want = `{"type":"TOPIC","pattern":"LITERAL","name":"orders","principal":"User:alice","host":"*","operation":"READ","permission":"ALLOW"}`
	assert.Equal(t, string(r.Value()), want)
	assert.Equal(t, r.ID(), "ZrTELNbZ7lZJGH6tGcv7Lw", "id")
	for _, bad := range []string{
		``, `{}`, `[]`, `{"type":"TOPIC"}`, strings.Replace(want, "READ", "SING", 1), strings.Replace(want, "TOPIC", "ANY", 1),
		strings.Replace(want, "orders", "", 1), strings.Replace(want, `"*"`, `"0:0:0:0:0:0:0:1"`, 1),
	} {
		if _, err := DecodeRule(r.ID(), []byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestFiltersWithUnknownPartsAreRefused(t *testing.T) {
	all := Filter{Type: AnyResource, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission}
	if _, err := all.Check(); err != nil {
		t.Fatal(err)
	}
	tokens := all
	tokens.Type = 7
	if f, err := tokens.Check(); err != nil || f.Matches(orders()) {
		t.Errorf("a filter for rules that muster has not: %v", err)
	}
	for what, change := range map[string]func(*Filter){
		"resource type": func(f *Filter) { f.Type = 0 }, "resource type ": func(f *Filter) { f.Type = 8 },
		"pattern type": func(f *Filter) { f.Pattern = 0 }, "pattern type ": func(f *Filter) { f.Pattern = 5 },
		"operation": func(f *Filter) { f.Operation = 0 }, "operation ": func(f *Filter) { f.Operation = 16 },
		"permission type": func(f *Filter) { f.Permission = 0 }, "permission type ": func(f *Filter) { f.Permission = 4 },
	} {
		f := all
		change(&f)
		if _, err := f.Check(); !errors.Is(err, kerr.InvalidRequest) || !strings.HasSuffix(err.Error(), "unknown "+strings.TrimSpace(what)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAFilterMeansRulesByEachField(t *testing.T) {
	text := func(s string) *string { return &s }
	all := Filter{Type: AnyResource, Pattern: AnyPattern, Operation: AnyOperation, Permission: AnyPermission}
	prefix, wild := orders(), orders()
	prefix.Pattern, prefix.Name = Prefixed, "ord"
	wild.Name = "*"
	for _, c := range []struct {
		name                 string
		change               func(*Filter)
		literal, prefix, all bool
	}{
		{"all", func(*Filter) {}, true, true, true},
		{"the type", func(f *Filter) { f.Type = Topic }, true, true, true},
		{"another type", func(f *Filter) { f.Type = Group }, false, false, false},
		{"the name, any pattern", func(f *Filter) { f.Name = text("orders") }, true, false, false},
		{"the prefix, any pattern", func(f *Filter) { f.Name = text("ord") }, false, true, false},
		{"the name, literal", func(f *Filter) { f.Name, f.Pattern = text("orders"), Literal }, true, false, false},
		{"literal", func(f *Filter) { f.Pattern = Literal }, true, false, true},
		{"prefixed", func(f *Filter) { f.Pattern = Prefixed }, false, true, false},
		{"the name, prefixed", func(f *Filter) { f.Name, f.Pattern = text("orders"), Prefixed }, false, false, false},
		{"the wildcard, literal", func(f *Filter) { f.Name, f.Pattern = text("*"), Literal }, false, false, true},
		{"what matches the name", func(f *Filter) { f.Name, f.Pattern = text("orders"), Match }, true, true, true},
		{"what matches another name", func(f *Filter) { f.Name, f.Pattern = text("order"), Match }, false, true, true},
		{"what matches any name", func(f *Filter) { f.Pattern = Match }, true, true, true},
		{"the principal", func(f *Filter) { f.Principal = text("User:alice") }, true, true, true},
		{"everyone", func(f *Filter) { f.Principal = text("User:*") }, false, false, false},
		{"all hosts", func(f *Filter) { f.Host = text("*") }, true, true, true},
		{"a host", func(f *Filter) { f.Host = text("10.0.0.1") }, false, false, false},
		{"the operation", func(f *Filter) { f.Operation = Read }, true, true, true},
		{"an operation that is implied", func(f *Filter) { f.Operation = Describe }, false, false, false},
		{"the permission", func(f *Filter) { f.Permission = Allow }, true, true, true},
		{"the other permission", func(f *Filter) { f.Permission = Deny }, false, false, false},
	} {
		f := all
		c.change(&f)
		if a, b, d := f.Matches(orders()), f.Matches(prefix), f.Matches(wild); a != c.literal || b != c.prefix || d != c.all {
			t.Errorf("%s: literal %t, prefix %t, wildcard %t", c.name, a, b, d)
		}
	}
}

func TestARuleForAllTopicsDoesNotOpenTheAuditLog(t *testing.T) {
	who := Principal("User:ann")
	may := func(policy Policy, op Operation, rules ...Rule) bool {
		edit := New(policy).Edit()
		for _, r := range rules {
			edit.Add(r)
		}
		x := edit.Index()
		q := Request{Principal: who, Host: "10.0.0.1", Operation: op, Type: Topic, Name: AuditTopic}
		if d := x.Decide(q); d.Allowed != x.Allows(q) {
			t.Errorf("%+v is decided as %+v", q, d)
		}
		return x.Allows(q)
	}
	allow := func(pattern PatternType, name string, op Operation) Rule {
		return Rule{Type: Topic, Pattern: pattern, Name: name, Principal: who, Host: AnyHost, Operation: op, Permission: Allow}
	}
	deny := allow(Literal, Wildcard, Read)
	deny.Permission = Deny
	for name, c := range map[string]struct {
		policy Policy
		op     Operation
		rules  []Rule
		want   bool
	}{
		"read on all":               {Policy{}, Read, []Rule{allow(Literal, Wildcard, Read)}, false},
		"all on all":                {Policy{}, Read, []Rule{allow(Literal, Wildcard, All)}, false},
		"alter its settings by all": {Policy{}, AlterConfigs, []Rule{allow(Literal, Wildcard, All)}, false},
		"describe by all":           {Policy{}, Describe, []Rule{allow(Literal, Wildcard, Read)}, true},
		"no rule at all":            {Policy{AllowEveryone: true}, Read, nil, false},
		"by its name":               {Policy{}, Read, []Rule{allow(Literal, AuditTopic, Read)}, true},
		"by a prefix":               {Policy{}, Read, []Rule{allow(Prefixed, "__", Read)}, true},
		"denied by all":             {Policy{}, Read, []Rule{allow(Literal, AuditTopic, Read), deny}, false},
		"a super user":              {Policy{SuperUsers: []Principal{who}}, Read, nil, true},
	} {
		assert.Equal(t, may(c.policy, c.op, c.rules...), c.want, "%s", name)
	}
}
