package auth

import (
	"strings"
	"testing"

	"muster/internal/assert"
)

// A rule as CreateAcls brings it is refused, or kept as it is and decides as a scan of
// the rules does. The question is a stranger's as well.
func FuzzRule(f *testing.F) {
	f.Add(int8(Topic), int8(Literal), int8(Read), int8(Allow), "orders", "User:alice", "*", "orders", "10.0.0.1")
	f.Add(int8(Group), int8(Prefixed), int8(All), int8(Deny), "a", "User:*", "::ffff:10.0.0.1", "abc", "10.0.0.1")
	f.Add(int8(Cluster), int8(Literal), int8(Alter), int8(Allow), ClusterName, "User:", "fe80::1%eth0", "", "fe80::1")
	f.Add(int8(7), int8(-1), int8(99), int8(0), "\xff", "nobody", "", "*", "*")
	f.Fuzz(func(t *testing.T, kind, pattern, op, permission int8, name, principal, host, asked, from string) {
		r, err := Rule{
			Type: ResourceType(kind), Pattern: PatternType(pattern), Operation: Operation(op), Permission: Permission(permission),
			Name: name, Principal: Principal(principal), Host: host,
		}.Check()
		if err != nil {
			return
		}
		if again, err := r.Check(); err != nil || again != r {
			t.Fatalf("%+v becomes %+v (%v) when it is checked again", r, again, err)
		}
		if back, err := DecodeRule(r.ID(), r.Value()); err != nil || back != r {
			t.Fatalf("%+v is stored as %+v (%v)", r, back, err)
		}
		edit := New(Policy{}).Edit()
		edit.Add(r)
		x, all := edit.Index(), naive{rules: []Rule{r}}
		var m Memo
		for _, who := range []Principal{r.Principal, "User:alice"} {
			q := Request{Principal: who, Host: from, Operation: Read, Type: r.Type, Name: asked}
			assert.MustEqual(t, x.Decide(q), all.decide(q), "%+v: %+v is decided as", r, q)
			if got := m.Rights(x, Request{Principal: who, Host: from, Type: r.Type, Name: asked}); got != x.Rights(Request{Principal: who, Host: from, Type: r.Type, Name: asked}) {
				t.Fatalf("%+v: the memo says %b to %+v", r, got, q)
			}
			if why := x.Why(q); why.Sentence == "" || strings.ContainsAny(why.Sentence+why.Fix, "\n\r\x1b") {
				t.Fatalf("%+v: %q, %q", q, why.Sentence, why.Fix)
			}
		}
		if edit = x.Edit(); len(x.Rules(exactly(r))) != 1 {
			t.Fatalf("%+v is not what a filter for it means", r)
		}
		if edit.Remove(r); edit.Index().Len() != 0 {
			t.Fatalf("%+v cannot be removed", r)
		}
	})
}

// exactly is a filter that means one rule.
func exactly(r Rule) Filter {
	who := string(r.Principal)
	return Filter{Type: r.Type, Pattern: r.Pattern, Name: &r.Name, Principal: &who, Host: &r.Host, Operation: r.Operation, Permission: r.Permission}
}

// A filter as DescribeAcls and DeleteAcls bring it is refused, or means what its words say.
func FuzzFilter(f *testing.F) {
	f.Add(int8(AnyResource), int8(Match), int8(AnyOperation), int8(AnyPermission), "orders", "User:alice", "*", uint8(0))
	f.Add(int8(Topic), int8(Prefixed), int8(Read), int8(Deny), "", "", "2001:DB8::0", uint8(7))
	f.Fuzz(func(t *testing.T, kind, pattern, op, permission int8, name, principal, host string, given uint8) {
		in := Filter{Type: ResourceType(kind), Pattern: PatternType(pattern), Operation: Operation(op), Permission: Permission(permission)}
		for i, field := range []**string{&in.Name, &in.Principal, &in.Host} {
			if given>>i&1 == 1 {
				*field = &[]string{name, principal, host}[i]
			}
		}
		filter, err := in.Check()
		if err != nil {
			return
		}
		r := Rule{Type: Topic, Pattern: Prefixed, Name: "ord", Principal: "User:alice", Host: "2001:db8::", Operation: Read, Permission: Deny}
		switch {
		case !filter.Matches(r):
		case filter.Type != AnyResource && filter.Type != Topic, filter.Operation != AnyOperation && filter.Operation != Read,
			filter.Permission != AnyPermission && filter.Permission != Deny, in.Principal != nil && principal != "User:alice",
			in.Host != nil && canonicalHost(host) != r.Host, in.Name != nil && !strings.HasPrefix(name, r.Name), filter.Pattern == Literal:
			t.Fatalf("%+v means %+v", in, r)
		}
	})
}

// The records of rules are read from a log that may be damaged.
func FuzzDecodeRule(f *testing.F) {
	r := Rule{Type: Topic, Pattern: Literal, Name: "orders", Principal: "User:alice", Host: AnyHost, Operation: Read, Permission: Allow}
	f.Add(r.ID(), r.Value())
	f.Add("", []byte(`{"type":"TOPIC","name":"\u0000"}`))
	f.Fuzz(func(t *testing.T, id string, value []byte) {
		r, err := DecodeRule(id, value)
		if err != nil {
			return
		}
		if back, err := DecodeRule(id, r.Value()); err != nil || back != r || r.ID() != id {
			t.Fatalf("%q: %+v comes back as %+v (%v)", value, r, back, err)
		}
	})
}

// What people write for principals and kinds, in settings and commands.
func FuzzWords(f *testing.F) {
	f.Add("User:alice; User:CN=bob,OU=x ;")
	f.Add("transactional-id")
	f.Add("alice")
	f.Fuzz(func(t *testing.T, s string) {
		if all, err := ParseSuperUsers(s); err == nil {
			var text []string
			for _, p := range all {
				text = append(text, string(p))
			}
			again, err := ParseSuperUsers(strings.Join(text, ";"))
			assert.MustTrue(t, err == nil && len(again) == len(all), "%q: %q, and again %q (%v)", s, all, again, err)
		}
		if p := ParsePrincipal(s); ParsePrincipal(p.short()) != p {
			t.Fatalf("%q: %q is written %q, which is %q", s, p, p.short(), ParsePrincipal(p.short()))
		}
		kinds(t, s, ParseResourceType)
		kinds(t, s, ParsePatternType)
		kinds(t, s, ParseOperation)
		kinds(t, s, ParsePermission)
	})
}

// kinds reads a word, and what it was read as once more.
func kinds[K interface {
	kind
	String() string
}](t *testing.T, s string, read func(string) (K, error)) {
	t.Helper()
	k, err := read(s)
	if err != nil {
		return
	}
	if again, err := read(k.String()); err != nil || again != k || k.String() == "UNKNOWN" {
		t.Fatalf("%q is %v, and that is %v (%v)", s, k, again, err)
	}
}
