package auth

import "math/bits"

// Reason is why a request was decided as it was.
type Reason int8

// The reasons.
const (
	// BySuperUser: super users may do everything.
	BySuperUser Reason = iota + 1
	// ByRule: a rule says so.
	ByRule
	// NoRule: the resource has no rule, for no one, and the policy decides.
	NoRule
	// NoneMatches: the resource has rules, and none allows this.
	NoneMatches
)

// Decision answers a request.
type Decision struct {
	Allowed bool
	Reason  Reason
	Rule    Rule // the deciding one, for ByRule
}

// Decide answers a request as Allows does, and says why. Of many rules that
// decide alike it names the one that is most about this very request: one that
// names the principal before one of a group before one for everyone, then the name itself before the
// longest prefix before the wildcard, then the host before all hosts, then the
// operation itself before ALL before one that implies it.
func (x *Index) Decide(q Request) Decision {
	if q.Type < 0 || q.Type >= resourceTypes {
		return Decision{Reason: NoneMatches}
	}
	if x.IsSuper(q.Principal, q.Groups) {
		return Decision{Allowed: true, Reason: BySuperUser}
	}
	for _, permission := range []Permission{Deny, Allow} {
		if r, ok := x.find(q, permission); ok {
			return Decision{Allowed: permission == Allow, Reason: ByRule, Rule: r}
		}
	}
	if !x.named[q.Type].matches(q.Name) {
		return Decision{Allowed: x.allowEveryone && !q.needsName(), Reason: NoRule}
	}
	return Decision{Reason: NoneMatches}
}

// find returns the rule of a permission that is most about a request, of all whose rules
// count for it.
func (x *Index) find(q Request, permission Permission) (r Rule, ok bool) {
	p, rest := q.Principal, q.Groups
	for last := false; ; {
		if r, ok = x.own[p][q.Type].find(q, permission); ok || last {
			r.Principal = p
			return r, ok
		}
		if p, rest = rest.next(); p == "" {
			p, last = Everyone, true
		}
	}
}

// find returns the rule of a permission that is most about a request.
func (t *table) find(q Request, permission Permission) (r Rule, ok bool) {
	if t == nil {
		return r, false
	}
	r = Rule{Type: q.Type, Pattern: Literal, Permission: permission}
	if i, found := search(t.literal, q.Name); found && t.literal[i].find(&r, q) {
		return r, true
	}
	r.Pattern = Prefixed
	for i := t.longest(q.Name); i >= 0; i = t.links[i].parent {
		if t.prefixed[i].find(&r, q) {
			return r, true
		}
	}
	r.Pattern = Literal
	if permission == Allow && q.needsName() {
		return r, false
	}
	return r, t.wildcard >= 0 && t.literal[t.wildcard].find(&r, q)
}

// find completes a rule by one of the node's that decides, if there is one.
func (n *node) find(r *Rule, q Request) bool {
	r.Name, r.Host = n.name, q.Host
	if r.Operation = mostAbout(n.forHost(q.Host).of(r.Permission), r.Permission, q.Operation); r.Operation != UnknownOperation {
		return true
	}
	r.Host = AnyHost
	r.Operation = mostAbout(n.any.of(r.Permission), r.Permission, q.Operation)
	return r.Operation != UnknownOperation
}

// mostAbout returns the operation among those of rules that decides about one.
func mostAbout(s Operations, permission Permission, op Operation) Operation {
	if permission == Deny {
		s &= Set(op, All)
	} else {
		s &= allowing(op)
	}
	switch {
	case s.Has(op):
		return op
	case s == 0:
		return UnknownOperation
	}
	return Operation(bits.TrailingZeros32(uint32(s))) // ALL is the lowest.
}

// AnyOf says whether someone may do something with any resource of a type, which
// InitProducerId asks of topics; the name does not count. It goes by patterns and not by resources, by
// Kafka's rule: an ALLOW counts unless a DENY hides it, which is one of the same
// literal name, one with a prefix of its pattern, or one of the wildcard. It looks
// at the rules for the principal and for everyone until one counts.
func (x *Index) AnyOf(q Request) bool {
	host, op, t := q.Host, q.Operation, q.Type
	if t < 0 || t >= resourceTypes {
		return false
	}
	if x.IsSuper(q.Principal, q.Groups) {
		return true
	}
	var room askedTables
	own := x.tablesOf(&room, q)
	var wild verdicts
	for _, of := range own {
		wild.add(of.ofWildcard(host))
	}
	switch {
	case wild.deny.denied().Has(op):
		return false
	case wild.allow.allowed().Has(op):
		return true
	case x.allowEveryone && (x.named[t] == nil || x.named[t].wildcard < 0):
		return true // By whatever name no rule is about.
	}
	for _, of := range own {
		if of.anyCounts(own, host, op) {
			return true
		}
	}
	return false
}

// anyCounts looks for an ALLOW that no DENY of the tables hides.
func (t *table) anyCounts(all []*table, host string, op Operation) bool {
	if t == nil {
		return false
	}
	allows := func(n *node) bool {
		v := n.any
		v.add(n.forHost(host))
		return v.allow.allowed().Has(op)
	}
	hidden := func(name string, literal bool) bool {
		var v verdicts
		for _, of := range all {
			if v.add(of.ofPrefixes(host, name)); literal {
				v.add(of.ofLiteral(host, name))
			}
		}
		return v.deny.denied().Has(op)
	}
	for i := range t.literal {
		if allows(&t.literal[i]) && !hidden(t.literal[i].name, true) {
			return true
		}
	}
	for i := range t.prefixed {
		if allows(&t.prefixed[i]) && !hidden(t.prefixed[i].name, false) {
			return true
		}
	}
	return false
}
