package auth

import (
	"slices"
	"strings"
)

// naive answers by looking at every rule. It is what the index must be equal to,
// written from Kafka's description and from nothing of the index.
type naive struct {
	rules  []Rule
	policy Policy
}

func (n *naive) add(r Rule) {
	if !slices.Contains(n.rules, r) {
		n.rules = append(n.rules, r)
	}
}

func (n *naive) remove(r Rule) {
	n.rules = slices.DeleteFunc(slices.Clone(n.rules), func(x Rule) bool { return x == r })
}

// whoAsks lists the principals whose rules count, those that are named first.
func whoAsks(q Request) []Principal {
	all := []Principal{q.Principal}
	if q.Groups != "" {
		for group := range strings.SplitSeq(string(q.Groups), "\x00") {
			all = append(all, Principal(group))
		}
	}
	return append(all, "User:*")
}

func isSuper(p Policy, q Request) bool {
	return slices.ContainsFunc(p.SuperUsers, func(super Principal) bool {
		return super == q.Principal || slices.Contains(whoAsks(q)[1:len(whoAsks(q))-1], super)
	})
}

func concerns(r Rule, q Request) bool {
	if !slices.Contains(whoAsks(q), r.Principal) {
		return false
	}
	if r.Host != q.Host && r.Host != "*" {
		return false
	}
	if r.Operation == q.Operation || r.Operation == All {
		return true
	}
	if r.Permission == Deny {
		return false
	}
	switch q.Operation {
	case Describe:
		return r.Operation == Read || r.Operation == Write || r.Operation == Delete || r.Operation == Alter
	case DescribeConfigs:
		return r.Operation == AlterConfigs
	}
	return false
}

func onResource(r Rule, t ResourceType, name string) bool {
	if r.Type != t {
		return false
	}
	if r.Pattern == Prefixed {
		return len(name) >= len(r.Name) && name[:len(r.Name)] == r.Name
	}
	return r.Name == "*" || r.Name == name
}

func (n *naive) decide(q Request) Decision {
	if isSuper(n.policy, q) {
		return Decision{Allowed: true, Reason: BySuperUser}
	}
	var deny, allow []Rule
	some := false
	for _, r := range n.rules {
		if !onResource(r, q.Type, q.Name) {
			continue
		}
		some = true
		switch {
		case hidden(q) && r.Permission == Allow && r.Pattern == Literal && r.Name == "*":
		case !concerns(r, q):
		case r.Permission == Deny:
			deny = append(deny, r)
		default:
			allow = append(allow, r)
		}
	}
	switch {
	case len(deny) > 0:
		return Decision{Reason: ByRule, Rule: mostSpecific(deny, q)}
	case len(allow) > 0:
		return Decision{Allowed: true, Reason: ByRule, Rule: mostSpecific(allow, q)}
	case some:
		return Decision{Reason: NoneMatches}
	}
	return Decision{Allowed: n.policy.AllowEveryone && !hidden(q), Reason: NoRule}
}

// hidden says whether a request is one that only a rule with the topic's name allows.
func hidden(q Request) bool {
	return q.Type == Topic && q.Name == "__audit_log" && q.Operation != Describe && q.Operation != DescribeConfigs
}

// mostSpecific sorts by what Decide promises to name.
func mostSpecific(rules []Rule, q Request) Rule {
	rank := func(r Rule) []int {
		out := []int{0, 0, 0, 0, 0}
		out[0] = slices.Index(whoAsks(q), r.Principal)
		switch {
		case r.Pattern == Prefixed:
			out[1], out[2] = 1, -len(r.Name)
		case r.Name != q.Name:
			out[1] = 2
		}
		if r.Host != q.Host {
			out[3] = 1
		}
		out[4] = int(r.Operation) + 100
		if r.Operation == All {
			out[4] = 1
		}
		if r.Operation == q.Operation {
			out[4] = 0
		}
		return out
	}
	return slices.MinFunc(rules, func(a, b Rule) int { return slices.Compare(rank(a), rank(b)) })
}

func (n *naive) anyOf(q Request) bool {
	if isSuper(n.policy, q) {
		return true
	}
	var deny, allow []Rule
	wildcard := false
	for _, r := range n.rules {
		if r.Type != q.Type {
			continue
		}
		isWild := r.Pattern == Literal && r.Name == "*"
		wildcard = wildcard || isWild
		switch {
		case !concerns(r, q):
		case r.Permission == Deny && isWild:
			return false
		case r.Permission == Deny:
			deny = append(deny, r)
		default:
			allow = append(allow, r)
		}
	}
	hides := func(d, a Rule) bool {
		if d.Pattern == Literal {
			return a.Pattern == Literal && a.Name == d.Name
		}
		return strings.HasPrefix(a.Name, d.Name)
	}
	for _, a := range allow {
		isWild := a.Pattern == Literal && a.Name == "*"
		if isWild || !slices.ContainsFunc(deny, func(d Rule) bool { return hides(d, a) }) {
			return true
		}
	}
	return n.policy.AllowEveryone && !wildcard
}
