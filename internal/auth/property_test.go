package auth

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/assert"
)

var (
	genName = rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("ab*")), 1, 3, -1),
		rapid.SampledFrom([]string{"*", "a", "aaaaaaaaaaaaaaaa", "aaaaaaaab", "b", "__audit_log", "__audit"}),
	)
	genHost      = rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2", "::1"})
	genPrincipal = rapid.SampledFrom([]Principal{"User:p", "User:q", "User:*", "User:ANONYMOUS"})
	genGroups    = rapid.SampledFrom([]Groups{"", "", "Group:g", "Group:h", "Group:g\x00Group:h"})
	genOperation = rapid.OneOf(
		rapid.SampledFrom([]Operation{All, Read, Write, Describe, DescribeConfigs}),
		rapid.SampledFrom([]Operation{
			All, Read, Write, Create, Delete, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite, TwoPhaseCommit,
		}),
	)
	genType = rapid.SampledFrom([]ResourceType{Topic, Topic, Topic, Group})
	genRule = rapid.Custom(func(t *rapid.T) Rule {
		return Rule{
			Type:       genType.Draw(t, "type"),
			Pattern:    rapid.SampledFrom([]PatternType{Literal, Prefixed}).Draw(t, "pattern"),
			Name:       genName.Draw(t, "name"),
			Principal:  rapid.OneOf(genPrincipal, rapid.SampledFrom([]Principal{"Group:g", "Group:h", "Group:*"})).Draw(t, "principal"),
			Host:       rapid.OneOf(rapid.Just("*"), genHost).Draw(t, "host"),
			Operation:  genOperation.Draw(t, "operation"),
			Permission: rapid.SampledFrom([]Permission{Deny, Allow, Allow, Allow}).Draw(t, "permission"),
		}
	})
	genRequest = rapid.Custom(func(t *rapid.T) Request {
		return Request{
			Principal: genPrincipal.Draw(t, "principal"), Groups: genGroups.Draw(t, "groups"), Host: genHost.Draw(t, "host"),
			Operation: genOperation.Draw(t, "operation"), Type: genType.Draw(t, "type"), Name: genName.Draw(t, "name"),
		}
	})
)

// The index answers as a scan of all rules does, with rules added and removed in
// steps of any size, and an index from before a change still answers as it did.
func TestIndexAnswersAsAScanOfAllRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy := Policy{AllowEveryone: rapid.Bool().Draw(t, "everyone")}
		if rapid.Bool().Draw(t, "super") {
			policy.SuperUsers = []Principal{rapid.SampledFrom([]Principal{"User:q", "Group:h"}).Draw(t, "who")}
		}
		x, all := New(policy), naive{policy: policy}
		type moment struct {
			index *Index
			naive naive
		}
		moments := []moment{{x, all}}
		for range rapid.IntRange(1, 4).Draw(t, "edits") {
			edit := x.Edit()
			for range rapid.IntRange(0, 12).Draw(t, "changes") {
				if len(all.rules) == 0 || rapid.IntRange(0, 3).Draw(t, "add") > 0 {
					r := genRule.Draw(t, "rule")
					edit.Add(r)
					all.rules = slices.Clone(all.rules)
					all.add(r)
					continue
				}
				r := rapid.SampledFrom(all.rules).Draw(t, "old")
				if rapid.Bool().Draw(t, "by id") {
					edit.RemoveID(r.ID())
				} else {
					edit.Remove(r)
				}
				all.remove(r)
			}
			x = edit.Index()
			moments = append(moments, moment{x, all})
		}
		for range 20 {
			q := genRequest.Draw(t, "request")
			for i, m := range moments {
				same(t, i, m.index, &m.naive, q)
			}
		}
	})
}

func same(t *rapid.T, moment int, x *Index, n *naive, q Request) {
	t.Helper()
	want := n.decide(q)
	if got := x.Decide(q); got != want {
		t.Fatalf("moment %d: %+v is decided as\n%+v, not\n%+v by\n%v", moment, q, got, want, n.rules)
	}
	if got := x.Allows(q); got != want.Allowed {
		t.Fatalf("moment %d: Allows(%+v) is %t, but a scan of the rules says %t:\n%v", moment, q, got, want.Allowed, n.rules)
	}
	if got, want := x.AnyOf(q), n.anyOf(q); got != want {
		t.Fatalf("moment %d: AnyOf(%+v) is %t, but a scan of the rules says %t:\n%v", moment, q, got, want, n.rules)
	}
	assert.MustEqual(t, x.Len(), len(n.rules), "moment %d: rules", moment)
	for _, r := range n.rules {
		assert.MustTrue(t, x.Has(r), "moment %d: rule %v is missing", moment, r)
	}
}

// An index that was emptied holds nothing of what was there.
func TestAnIndexWithoutRulesIsEmptyAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := rapid.SliceOfN(genRule, 0, 20).Draw(t, "rules")
		edit := New(Policy{}).Edit()
		for _, r := range rules {
			edit.Add(r)
		}
		x := edit.Index()
		edit = x.Edit()
		for _, r := range rules {
			edit.Remove(r)
		}
		if x = edit.Index(); x.Len() != 0 || len(x.own) != 0 || x.named != (tables{}) {
			t.Fatalf("left over: %+v", x)
		}
	})
}

// A filter for one name with MATCH means the rules that would be looked at.
func TestMatchMeansThePatternsThatMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, q := genRule.Draw(t, "rule"), genRequest.Draw(t, "request")
		f, err := Filter{Type: q.Type, Pattern: Match, Name: &q.Name, Operation: AnyOperation, Permission: AnyPermission}.Check()
		assert.Must(t, err)
		assert.MustEqual(t, f.Matches(r), onResource(r, q.Type, q.Name), "filter for %q: for %+v", q.Name, r)
	})
}
