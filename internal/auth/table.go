package auth

import (
	"cmp"
	"slices"
	"strings"
)

// verdicts are the operations that rules allow and deny.
type verdicts struct{ allow, deny Operations }

func (v *verdicts) add(w verdicts) {
	v.allow |= w.allow
	v.deny |= w.deny
}

func (v verdicts) of(p Permission) Operations {
	if p == Deny {
		return v.deny
	}
	return v.allow
}

// hosted are the verdicts for one host.
type hosted struct {
	host string
	verdicts
}

// node is what all rules of one principal with one pattern say.
type node struct {
	name  string
	rules int // how many
	any   verdicts
	hosts []hosted // in the order of hosts
}

func (n *node) forHost(host string) (v verdicts) {
	if i, ok := slices.BinarySearchFunc(n.hosts, host, compareHost); ok {
		v = n.hosts[i].verdicts
	}
	return v
}

func compareHost(h hosted, host string) int { return strings.Compare(h.host, host) }

// change adds or removes a rule.
type change struct {
	rule Rule
	add  bool
}

// apply makes a change to a node whose hosts no one else has.
func (n *node) apply(c change) {
	v := &n.any
	at := -1
	if c.rule.Host != AnyHost {
		i, ok := slices.BinarySearchFunc(n.hosts, c.rule.Host, compareHost)
		if !ok {
			n.hosts = slices.Insert(n.hosts, i, hosted{host: c.rule.Host})
		}
		at, v = i, &n.hosts[i].verdicts
	}
	set := &v.allow
	if c.rule.Permission == Deny {
		set = &v.deny
	}
	if c.add {
		n.rules++
		*set |= bit(c.rule.Operation)
		return
	}
	n.rules--
	*set &^= bit(c.rule.Operation)
	if at >= 0 && *v == (verdicts{}) {
		n.hosts = slices.Delete(n.hosts, at, at+1)
	}
}

func search(nodes []node, name string) (int, bool) {
	return slices.BinarySearchFunc(nodes, name, func(n node, name string) int { return strings.Compare(n.name, name) })
}

// merge returns nodes with changes made to them. Both are in the order of names.
func merge(old []node, changes []change) []node {
	if len(changes) == 0 {
		return old
	}
	out := make([]node, 0, len(old)+len(changes))
	for len(changes) > 0 {
		name := changes[0].rule.Name
		i, found := search(old, name)
		out = append(out, old[:i]...)
		old = old[i:]
		n := node{name: name}
		if found {
			n, old = old[0], old[1:]
			n.hosts = slices.Clone(n.hosts)
		}
		for len(changes) > 0 && changes[0].rule.Name == name {
			n.apply(changes[0])
			changes = changes[1:]
		}
		if n.rules > 0 {
			out = append(out, n)
		}
	}
	return append(out, old...)
}

// none is the index of no node.
const none = -1

// table holds the rules of one principal for one resource type. It never changes;
// a nil table has no rules.
type table struct {
	literal  []node // in the order of names
	prefixed []node // in the order of names
	links    []link // of prefixed
	wildcard int    // of literal
}

// link places a prefix among those that are prefixes of it, which makes the
// prefixes a tree.
type link struct {
	// parent is the longest other prefix that it starts with, jump one further up:
	// by both any prefix up there is reached in a logarithmic number of steps.
	parent, jump int32
	depth        int32
	// hosted is the nearest with rules for a host of its own, itself included.
	hosted int32
	// any is what it and all further up say for all hosts.
	any verdicts
}

// with returns the table with changes, which are in the order of patterns and
// names; nil if nothing is left.
func (t *table) with(changes []change) *table {
	if t == nil {
		t = &table{wildcard: none}
	}
	first := slices.IndexFunc(changes, func(c change) bool { return c.rule.Pattern == Prefixed })
	if first < 0 {
		first = len(changes)
	}
	next := &table{literal: merge(t.literal, changes[:first]), prefixed: merge(t.prefixed, changes[first:]), links: t.links, wildcard: none}
	if len(next.literal)+len(next.prefixed) == 0 {
		return nil
	}
	if i, ok := search(next.literal, Wildcard); ok {
		next.wildcard = i
	}
	if first < len(changes) {
		next.links = linked(next.prefixed)
	}
	return next
}

// linked makes the tree. A prefix comes right before all that start with it, so
// its parent is found among the one before it and those above that one.
func linked(nodes []node) []link {
	links := make([]link, len(nodes))
	for i := range nodes {
		l := link{parent: none, jump: none, hosted: none, any: nodes[i].any}
		parent := int32(i - 1)
		for parent >= 0 && !strings.HasPrefix(nodes[i].name, nodes[parent].name) {
			parent = links[parent].parent
		}
		if parent >= 0 {
			up := links[parent]
			l.parent, l.jump, l.depth, l.hosted = parent, parent, up.depth+1, up.hosted
			l.any.add(up.any)
			// The jump goes as far as two jumps of the parent if those are equally far.
			if up.jump >= 0 && links[up.jump].jump >= 0 && up.depth-links[up.jump].depth == links[up.jump].depth-links[links[up.jump].jump].depth {
				l.jump = links[up.jump].jump
			}
		}
		if len(nodes[i].hosts) > 0 {
			l.hosted = int32(i)
		}
		links[i] = l
	}
	return links
}

// longest returns the longest prefix that a name starts with. All such prefixes
// are the last one at or before the name in order, or above that one.
func (t *table) longest(name string) int32 {
	i, found := search(t.prefixed, name)
	if found {
		return int32(i)
	}
	at := int32(i - 1)
	if at < 0 {
		return none
	}
	common := commonPrefix(t.prefixed[at].name, name)
	fits := func(at int32) bool { return len(t.prefixed[at].name) <= common }
	for at >= 0 && !fits(at) {
		if jump := t.links[at].jump; jump >= 0 && !fits(jump) {
			at = jump
		} else {
			at = t.links[at].parent
		}
	}
	return at
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// gather returns what the rules whose pattern matches say for a host.
func (t *table) gather(host, name string) (v verdicts) {
	if t == nil {
		return v
	}
	if name != Wildcard {
		v = t.ofWildcard(host)
	}
	v.add(t.ofLiteral(host, name))
	v.add(t.ofPrefixes(host, name))
	return v
}

func (t *table) ofLiteral(host, name string) (v verdicts) {
	if t == nil {
		return v
	}
	if i, ok := search(t.literal, name); ok {
		v = t.literal[i].any
		v.add(t.literal[i].forHost(host))
	}
	return v
}

func (t *table) ofWildcard(host string) (v verdicts) {
	if t == nil || t.wildcard < 0 {
		return v
	}
	v = t.literal[t.wildcard].any
	v.add(t.literal[t.wildcard].forHost(host))
	return v
}

func (t *table) ofPrefixes(host, name string) (v verdicts) {
	if t == nil || len(t.prefixed) == 0 {
		return v
	}
	at := t.longest(name)
	if at < 0 {
		return v
	}
	v = t.links[at].any
	for at = t.links[at].hosted; at >= 0; {
		v.add(t.prefixed[at].forHost(host))
		if at = t.links[at].parent; at >= 0 {
			at = t.links[at].hosted
		}
	}
	return v
}

// matches says whether there is any pattern that matches a name.
func (t *table) matches(name string) bool {
	if t == nil {
		return false
	}
	if t.wildcard >= 0 {
		return true
	}
	if _, ok := search(t.literal, name); ok {
		return true
	}
	return t.longest(name) >= 0
}

// byPattern is the order in which changes are made to a table.
func byPattern(a, b change) int {
	return cmp.Or(cmp.Compare(a.rule.Type, b.rule.Type), cmp.Compare(a.rule.Pattern, b.rule.Pattern), strings.Compare(a.rule.Name, b.rule.Name))
}
