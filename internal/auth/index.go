package auth

import (
	"maps"
	"slices"
	"sort"
	"strings"
)

// Policy is what the broker's settings say besides the rules.
type Policy struct {
	// SuperUsers may do everything, whatever the rules say.
	SuperUsers []Principal
	// AllowEveryone is allow.everyone.if.no.acl.found.
	AllowEveryone bool
}

// Index holds all rules in a form that can be asked. It never changes.
type Index struct {
	version       *version // no other index has it
	super         map[Principal]struct{}
	allowEveryone bool

	rules []stored             // in the order of ids
	size  int                  // bytes of their strings
	own   map[Principal]tables // the rules that name a principal
	named tables               // the patterns of all rules, whomever they name
}

// stored is a rule with its id. It is small, because each edit copies them all.
type stored struct {
	id   string
	rule *Rule
}

// tables has a table for each resource type.
type tables [resourceTypes]*table

// New returns an index without rules.
func New(policy Policy) *Index {
	return (&Index{own: map[Principal]tables{}}).WithPolicy(policy)
}

// WithPolicy returns an index with the same rules and another policy.
func (x *Index) WithPolicy(policy Policy) *Index {
	next := *x
	next.version = &version{}
	next.allowEveryone = policy.AllowEveryone
	next.super = make(map[Principal]struct{}, len(policy.SuperUsers))
	for _, p := range policy.SuperUsers {
		next.super[p] = struct{}{}
	}
	return &next
}

// Policy returns the policy, with the super users in order.
func (x *Index) Policy() Policy {
	return Policy{SuperUsers: slices.Sorted(maps.Keys(x.super)), AllowEveryone: x.allowEveryone}
}

// Len returns how many rules there are.
func (x *Index) Len() int { return len(x.rules) }

// Size returns how many bytes the strings of all rules take.
func (x *Index) Size() int { return x.size }

// Has says whether a rule is there.
func (x *Index) Has(r Rule) bool {
	_, ok := x.position(r.ID())
	return ok
}

func (x *Index) position(id string) (int, bool) {
	return slices.BinarySearchFunc(x.rules, id, func(s stored, id string) int { return strings.Compare(s.id, id) })
}

// Rules returns the rules that a filter means, by resource, in order. It looks at
// every rule, which is for people who manage them.
func (x *Index) Rules(f Filter) []Rule {
	var out []Rule
	for i := range x.rules {
		if r := *x.rules[i].rule; f.Matches(r) {
			out = append(out, r)
		}
	}
	sort.Slice(out, func(i, j int) bool { return compare(out[i], out[j]) < 0 })
	return out
}

// Request asks whether someone may do something.
type Request struct {
	Principal Principal
	Groups    Groups
	// Host is where the principal connects from, as func Host returns it.
	Host      string
	Operation Operation
	Type      ResourceType
	// Name of the resource: ClusterName for the cluster.
	Name string
}

// Rights returns all that someone may do with a resource, whichever operation they ask for. It takes time by the
// length of the name and the logarithm of the number of rules (and looks at each
// prefix of the name that has a rule for a host of its own), and no memory.
func (x *Index) Rights(q Request) Operations {
	t := q.Type
	if t < 0 || t >= resourceTypes {
		return 0
	}
	if x.IsSuper(q.Principal, q.Groups) {
		return everything
	}
	if guarded(t, q.Name) {
		return x.guardedRights(q)
	}
	v := x.own[q.Principal][t].gather(q.Host, q.Name)
	if q.Principal != Everyone {
		v.add(x.own[Everyone][t].gather(q.Host, q.Name))
	}
	for p, rest := q.Groups.next(); p != ""; p, rest = rest.next() {
		v.add(x.own[p][t].gather(q.Host, q.Name))
	}
	if x.allowEveryone && v == (verdicts{}) && !x.named[t].matches(q.Name) {
		return everything
	}
	return v.allow.allowed() &^ v.deny.denied()
}

// Allows answers a request.
func (x *Index) Allows(q Request) bool {
	return x.Rights(q).Has(q.Operation)
}

// AuthorizedOperations returns what the wire calls by that name: of the
// operations that the resource type has, those that someone may do.
func (x *Index) AuthorizedOperations(q Request) int32 {
	return int32(x.Rights(q) & q.Type.Operations())
}

// IsSuper says whether someone may do everything.
func (x *Index) IsSuper(p Principal, of Groups) bool {
	_, ok := x.super[p]
	for p, rest := of.next(); p != "" && !ok; p, rest = rest.next() {
		_, ok = x.super[p]
	}
	return ok
}
