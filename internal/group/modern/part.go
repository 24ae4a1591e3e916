package modern

import "slices"

// Part is what members are given: a partition, or in a streams group a task in a role. Lists
// of them are sorted, so that two are compared in one walk.
type Part[P any] interface {
	comparable
	Compare(other P) int
}

// Held is a part that a member holds, with the epoch in which it was given to it (KIP-1251).
type Held[P Part[P]] struct {
	Part  P
	Since int32
}

func compareHeld[P Part[P]](a Held[P], b P) int { return a.Part.Compare(b) }

// Compare is the order of parts in a list.
func Compare[P Part[P]](a, b P) int { return a.Compare(b) }

// Sorted sorts a list of parts, each of which is in it once then.
func Sorted[P Part[P]](list []P) []P {
	slices.SortFunc(list, Compare[P])
	return slices.Compact(list)
}

// Holds says whether a list has a part.
func Holds[P Part[P]](list []Held[P], p P) bool {
	_, ok := slices.BinarySearchFunc(list, p, compareHeld[P])
	return ok
}

// SinceOf returns in which epoch a part was given, and whether it was.
func SinceOf[P Part[P]](list []Held[P], p P) (int32, bool) {
	i, ok := slices.BinarySearchFunc(list, p, compareHeld[P])
	if !ok {
		return 0, false
	}
	return list[i].Since, true
}

// SameParts says whether two lists have the same parts.
func SameParts[P Part[P]](a, b []Held[P]) bool {
	return slices.EqualFunc(a, b, func(x, y Held[P]) bool { return x.Part == y.Part })
}

// Merged returns what is in either of two lists that have nothing in common.
func Merged[P Part[P]](a, b []Held[P]) []Held[P] {
	if len(b) == 0 {
		return a
	}
	out := make([]Held[P], 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Part.Compare(b[0].Part) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// Split divides what is held by whether it is in the target, and returns what of
// the target is not held.
func Split[P Part[P]](held []Held[P], target []P) (kept, surplus []Held[P], missing []P) {
	for len(held) > 0 || len(target) > 0 {
		c := -1
		switch {
		case len(held) == 0:
			c = 1
		case len(target) > 0:
			c = held[0].Part.Compare(target[0])
		}
		switch {
		case c < 0:
			surplus, held = append(surplus, held[0]), held[1:]
		case c > 0:
			missing, target = append(missing, target[0]), target[1:]
		default:
			kept, held, target = append(kept, held[0]), held[1:], target[1:]
		}
	}
	return kept, surplus, missing
}

// AtEpochZero is parts whose member is at the beginning: none was given to it later.
func AtEpochZero[P Part[P]](list []Held[P]) []Held[P] {
	var out []Held[P]
	for _, p := range list {
		out = append(out, Held[P]{Part: p.Part})
	}
	return out
}

// PartsHeld is the parts of a list.
func PartsHeld[P Part[P]](list []Held[P]) []P {
	out := make([]P, len(list))
	for i := range list {
		out[i] = list[i].Part
	}
	return out
}
