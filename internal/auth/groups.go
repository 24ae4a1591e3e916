package auth

import (
	"slices"
	"strings"
)

// Groups are the groups that someone is in besides being a user, as an issuer of tokens says: principals
// like "Group:payments", each once and in order, with a NUL between them. Rules that name one
// of them are for all who are in it. The form can be compared, and asked without memory.
type Groups string

// MaxGroups is how many groups someone may be in, and maxGroupBytes how long their
// principals may be together: every request asks for each of them.
const (
	MaxGroups     = 64
	maxGroupBytes = 4 << 10

	groupPrefix = "Group:"
)

// GroupsOf returns the groups with these names.
func GroupsOf(names []string) (Groups, error) {
	if len(names) > MaxGroups {
		return "", invalid("%d groups are more than %d", len(names), MaxGroups)
	}
	all := make([]string, len(names))
	for i, name := range names {
		// White space around a name would let two names look alike.
		if name == "" || strings.TrimSpace(name) != name || strings.Contains(name, "\x00") {
			return "", invalid("%q is not the name of a group", shorten(name))
		}
		all[i] = groupPrefix + name
	}
	slices.Sort(all)
	g := Groups(strings.Join(slices.Compact(all), "\x00"))
	if len(g) > maxGroupBytes {
		return "", invalid("the names of the groups are longer than %d bytes", maxGroupBytes)
	}
	return g, nil
}

// askedTables is room for the tables of all that a request is of.
type askedTables [2 + MaxGroups]*table

// tablesOf returns the rules that a request is asked of, for its type: those for the
// principal, for everyone, and for the groups.
func (x *Index) tablesOf(room *askedTables, q Request) []*table {
	all := room[:2]
	all[0], all[1] = x.own[q.Principal][q.Type], x.own[Everyone][q.Type]
	for p, rest := q.Groups.next(); p != ""; p, rest = rest.next() {
		all = append(all, x.own[p][q.Type])
	}
	return all
}

// next returns the first group, and the others.
func (g Groups) next() (Principal, Groups) {
	first, rest, _ := strings.Cut(string(g), "\x00")
	return Principal(first), Groups(rest)
}
