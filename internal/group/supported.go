package group

import (
	"maps"
	"slices"
)

// smallTally is up to how many names a tally is a list.
const smallTally = 8

// tally counts members by the protocols that they support. Clients support one
// or two, for which a map would be large; but what a client sends must not make
// us slow, so many names are in a map.
type tally struct {
	few  []counted
	many map[string]int // nil if there are few
}

type counted struct {
	name string
	n    int
}

func (t *tally) of(name string) int {
	if t.many != nil {
		return t.many[name]
	}
	for i := range t.few {
		if t.few[i].name == name {
			return t.few[i].n
		}
	}
	return 0
}

// add counts n more members; a name that nobody is left of is forgotten.
func (t *tally) add(name string, n int) {
	if t.many != nil {
		if t.many[name] += n; t.many[name] == 0 {
			delete(t.many, name)
		}
		if len(t.many) == 0 {
			t.many = nil
		}
		return
	}
	i := slices.IndexFunc(t.few, func(c counted) bool { return c.name == name })
	switch {
	case i < 0 && len(t.few) < smallTally:
		t.few = append(t.few, counted{name, n})
	case i < 0:
		t.many = make(map[string]int, 2*smallTally)
		for _, c := range t.few {
			t.many[c.name] = c.n
		}
		t.few = nil
		t.many[name] = n
	default:
		if t.few[i].n += n; t.few[i].n == 0 {
			t.few = slices.Delete(t.few, i, i+1)
		}
	}
}

// len is how many names are counted.
func (t *tally) len() int { return len(t.few) + len(t.many) }

// are says whether these are the names, so often each.
func (t *tally) are(counts map[string]int) bool {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if t.of(name) != counts[name] {
			return false
		}
	}
	return t.len() == len(counts)
}
