package auth

import (
	"fmt"
	"testing"

	"muster/internal/assert"
)

// many makes 10,000 rules: for each of the users literal topics, prefixes, groups,
// one with a host, and some for everyone.
func many(users int) []Rule {
	var out []Rule
	for i := 0; len(out) < 10000; i++ {
		user := User(fmt.Sprintf("user-%d", i%users))
		r := Rule{Type: Topic, Pattern: Literal, Name: fmt.Sprintf("team-%d.orders.%d", i%97, i), Principal: user, Host: AnyHost, Operation: Read, Permission: Allow}
		out = append(out, r)
		r.Type, r.Name = Group, fmt.Sprintf("group-%d", i)
		out = append(out, r)
		r.Type, r.Pattern, r.Name, r.Operation = Topic, Prefixed, fmt.Sprintf("team-%d.app-%d.", i%97, i), Write
		out = append(out, r)
		r.Name, r.Host, r.Permission = fmt.Sprintf("team-%d.app-%d.secret", i%97, i), fmt.Sprintf("10.0.%d.%d", i>>8&255, i&255), Deny
		out = append(out, r)
		if i%100 == 0 {
			r.Name, r.Host, r.Principal, r.Operation = fmt.Sprintf("private-%d", i), AnyHost, Everyone, All
			out = append(out, r)
		}
	}
	return out[:10000]
}

func ofMany(rules []Rule) *Index {
	edit := New(Policy{SuperUsers: []Principal{"User:root"}}).Edit()
	for _, r := range rules {
		edit.Add(r)
	}
	return edit.Index()
}

// BenchmarkRights is the cost of one question among 10,000 rules, beside a scan.
func BenchmarkRights(b *testing.B) {
	q := Request{Principal: "User:user-0", Host: "10.0.0.1", Operation: Write, Type: Topic, Name: "team-0.app-0.events"}
	for _, users := range []int{1000, 1} {
		all := many(users)
		b.Run(fmt.Sprintf("users=%d/index", users), func(b *testing.B) {
			x := ofMany(all)
			b.ReportAllocs()
			for b.Loop() {
				assert.MustTrue(b, x.Allows(q), "denied")
			}
		})
		b.Run(fmt.Sprintf("users=%d/scan", users), func(b *testing.B) {
			n := naive{rules: all}
			for b.Loop() {
				assert.MustTrue(b, n.decide(q).Allowed, "denied")
			}
		})
	}
}

// BenchmarkAnyOf is the worst case: a denial hides each of the principal's rules.
func BenchmarkAnyOf(b *testing.B) {
	all := many(1)
	for i := range 97 {
		all = append(all, Rule{Type: Topic, Pattern: Prefixed, Name: fmt.Sprintf("team-%d.", i), Principal: Everyone, Host: AnyHost, Operation: All, Permission: Deny})
	}
	x := ofMany(all)
	for b.Loop() {
		assert.MustFalse(b, x.AnyOf(Request{Principal: "User:user-0", Host: "10.0.0.1", Operation: Write, Type: Topic}), "allowed")
	}
}

// BenchmarkEdit is the cost of one rule more among 10,000, and of all at once.
func BenchmarkEdit(b *testing.B) {
	for _, users := range []int{1000, 1} {
		all := many(users)
		x := ofMany(all)
		r := all[0]
		r.Name = "one more"
		b.Run(fmt.Sprintf("users=%d/one", users), func(b *testing.B) {
			for b.Loop() {
				edit := x.Edit()
				edit.Add(r)
				edit.Index()
			}
		})
		b.Run(fmt.Sprintf("users=%d/all", users), func(b *testing.B) {
			for b.Loop() {
				ofMany(all)
			}
		})
	}
}
