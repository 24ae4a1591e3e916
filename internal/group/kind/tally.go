package kind

import (
	"maps"
	"slices"
)

// SmallTally is up to how many names a tally is a list.
const SmallTally = 8

// Tally counts members by the protocols that they support. Clients support one
// or two, for which a map would be large; but what a client sends must not make
// us slow, so many names are in a map.
type Tally struct {
	few  []counted
	many map[string]int // nil if there are few
}

type counted struct {
	name string
	n    int
}

func (t *Tally) Of(name string) int {
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

// Add counts n more members; a name that no one is left of is forgotten.
func (t *Tally) Add(name string, n int) {
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
	case i < 0 && len(t.few) < SmallTally:
		t.few = append(t.few, counted{name, n})
	case i < 0:
		t.many = make(map[string]int, 2*SmallTally)
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

// Len is how many names are counted.
func (t *Tally) Len() int { return len(t.few) + len(t.many) }

// Are says whether these are the names, so often each.
func (t *Tally) Are(counts map[string]int) bool {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if t.Of(name) != counts[name] {
			return false
		}
	}
	return t.Len() == len(counts)
}
