package auth

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Edit makes the next index. Any number of rules may be added and removed; Index
// returns the result. What no change touches is shared with the index before: one
// rule more among 10,000 is a few copies of slices, and nothing is sorted anew.
type Edit struct {
	base    *Index
	changes map[string]change // by id
}

// Edit starts a change.
func (x *Index) Edit() *Edit { return &Edit{base: x, changes: map[string]change{}} }

// Add adds a rule that Check returned. A rule that is there stays.
func (e *Edit) Add(r Rule) { e.changes[r.ID()] = change{rule: r, add: true} }

// Remove removes a rule if it is there.
func (e *Edit) Remove(r Rule) { e.changes[r.ID()] = change{rule: r} }

// RemoveID removes the rule with that id if it is there.
func (e *Edit) RemoveID(id string) {
	if i, ok := e.base.position(id); ok {
		e.changes[id] = change{rule: *e.base.rules[i].rule}
		return
	}
	delete(e.changes, id)
}

// Index returns the changed index.
func (e *Edit) Index() *Index {
	next := *e.base
	rules, changes := e.mergeRules()
	if len(changes) == 0 {
		return e.base
	}
	next.version = &version{}
	next.rules, next.own = rules, maps.Clone(e.base.own)
	for _, c := range changes {
		if c.add {
			next.size += c.rule.Size()
		} else {
			next.size -= c.rule.Size()
		}
	}

	sort.Slice(changes, func(i, j int) bool {
		a, b := changes[i], changes[j]
		return cmp.Or(cmp.Compare(a.rule.Principal, b.rule.Principal), byPattern(a, b)) < 0
	})
	for part := range runs(changes, func(a, b change) bool { return a.rule.Principal == b.rule.Principal }) {
		principal := part[0].rule.Principal
		own := next.own[principal].with(part)
		if own == (tables{}) {
			delete(next.own, principal)
		} else {
			next.own[principal] = own
		}
	}

	// Only the pattern counts for the question whether a resource has any rule.
	for i, c := range changes {
		changes[i].rule = Rule{Type: c.rule.Type, Pattern: c.rule.Pattern, Name: c.rule.Name, Host: AnyHost}
	}
	sort.Slice(changes, func(i, j int) bool { return byPattern(changes[i], changes[j]) < 0 })
	next.named = next.named.with(changes)
	return &next
}

// mergeRules returns all rules after the changes, and the changes that are any.
func (e *Edit) mergeRules() ([]stored, []change) {
	var changes []change
	old := e.base.rules
	out := make([]stored, 0, len(old)+len(e.changes))
	for _, id := range slices.Sorted(maps.Keys(e.changes)) {
		c := e.changes[id]
		i, found := slices.BinarySearchFunc(old, id, func(s stored, id string) int { return strings.Compare(s.id, id) })
		out = append(out, old[:i]...)
		old = old[i:]
		if found {
			old = old[1:]
		}
		if c.add {
			out = append(out, stored{id: id, rule: &c.rule})
		}
		if c.add != found {
			changes = append(changes, c)
		}
	}
	return append(out, old...), changes
}

// with returns the tables with changes, which are in the order of byPattern.
func (t tables) with(changes []change) tables {
	for part := range runs(changes, func(a, b change) bool { return a.rule.Type == b.rule.Type }) {
		of := part[0].rule.Type
		t[of] = t[of].with(part)
	}
	return t
}

// runs yields the stretches of changes that are alike.
func runs(changes []change, alike func(a, b change) bool) func(yield func([]change) bool) {
	return func(yield func([]change) bool) {
		for len(changes) > 0 {
			n := 1
			for n < len(changes) && alike(changes[0], changes[n]) {
				n++
			}
			if !yield(changes[:n]) {
				return
			}
			changes = changes[n:]
		}
	}
}
