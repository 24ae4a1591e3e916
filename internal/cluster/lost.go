package cluster

import (
	"maps"
	"slices"

	"muster/internal/auth"
	"muster/internal/metadata"
)

// maxTold is how many things a line of the log names.
const maxTold = 20

// tellLost says which users, rules and quotas are not what they were before the store
// lost the end of the log. What was taken from someone may be back, which matters more
// than what is gone: then no one complains.
func (c *Controller) tellLost(before, after *metadata.Image) {
	for _, k := range []struct {
		kind string
		difference
	}{
		{"users", usersLost(before.Users, after.Users)},
		{"rules", rulesLost(before.Rules, after.Rules)},
		{"quotas", quotasLost(before.Quotas, after.Quotas)},
	} {
		for _, how := range []struct {
			words string
			names []string
		}{
			{"are gone with the end of the cluster metadata", k.gone},
			{"are back, since their deletion is gone with the end of the cluster metadata", k.back},
			{"are older ones, since a change is gone with the end of the cluster metadata", k.older},
		} {
			if n := len(how.names); n > 0 {
				c.opts.Logger.Warn(k.kind+" "+how.words, "count", n, "first", how.names[:min(n, maxTold)])
			}
		}
	}
}

// difference is what a loss did to things of one kind, by name.
type difference struct{ gone, back, older []string }

// note adds a thing that is there before a loss, after it, or both.
func (d *difference) note(name string, before, after, same bool) {
	switch {
	case before && !after:
		d.gone = append(d.gone, name)
	case after && !before:
		d.back = append(d.back, name)
	case !same:
		d.older = append(d.older, name)
	}
}

func usersLost(before, after *metadata.Users) (d difference) {
	for _, name := range union(before.Names(), after.Names()) {
		a, b := before.Credentials(name), after.Credentials(name)
		d.note(name, len(a) > 0, len(b) > 0, slices.EqualFunc(a, b, metadata.Credential.Equal))
	}
	return d
}

// rulesLost names a rule by the command that adds it.
func rulesLost(before, after *auth.Index) (d difference) {
	all := auth.Filter{Type: auth.AnyResource, Pattern: auth.AnyPattern, Operation: auth.AnyOperation, Permission: auth.AnyPermission}
	for _, r := range before.Rules(all) {
		if !after.Has(r) {
			d.note(r.Command("add"), true, false, false)
		}
	}
	for _, r := range after.Rules(all) {
		if !before.Has(r) {
			d.note(r.Command("add"), false, true, false)
		}
	}
	return d
}

// quotasLost names a quota by the key of its record.
func quotasLost(before, after *metadata.Quotas) (d difference) {
	of := func(q *metadata.Quotas) map[string]map[string]float64 {
		out := map[string]map[string]float64{}
		for _, e := range q.Entities() {
			out[quotaKeyOf(e)] = q.Of(e)
		}
		return out
	}
	a, b := of(before), of(after)
	for _, name := range union(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b))) {
		d.note(name, a[name] != nil, b[name] != nil, maps.Equal(a[name], b[name]))
	}
	return d
}

// union returns the names in two lists, in order and each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
