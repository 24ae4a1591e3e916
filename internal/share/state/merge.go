package state

import (
	"cmp"

	"muster/internal/group/schema"
)

// Run is offsets with the state and the delivery count that is stored of them.
type Run = schema.ShareRun

// wins says that a run is newer than another that has some of its offsets: counts only rise,
// and with the same count available is before acknowledged and archived.
func wins(r, other Run) bool {
	return cmp.Or(cmp.Compare(r.Count, other.Count), cmp.Compare(r.State, other.State)) > 0
}

// push adds a run after others, or to the last of them if it goes on with it.
func push(list []Run, r Run) []Run {
	if r.First > r.Last {
		return list
	}
	if n := len(list) - 1; n >= 0 && list[n].Last+1 == r.First && list[n].State == r.State && list[n].Count == r.Count {
		list[n].Last = r.Last
		return list
	}
	return append(list, r)
}

// ordered returns runs in order, and each offset once, whatever they were.
func ordered(list []Run) []Run {
	for i := 1; i < len(list); i++ {
		if list[i].First <= list[i-1].Last {
			half := len(list) / 2
			return merge(ordered(list[:half]), ordered(list[half:]), 0)
		}
	}
	return list
}

// merge puts together two lists of runs, each in order. Of each offset from start on, the
// run that wins is left.
func merge(a, b []Run, start int64) []Run {
	out := make([]Run, 0, len(a)+len(b))
	at := start
	for {
		for len(a) > 0 && a[0].Last < at {
			a = a[1:]
		}
		for len(b) > 0 && b[0].Last < at {
			b = b[1:]
		}
		if len(a) == 0 && len(b) == 0 {
			return out
		}
		r := next(a, b, at)
		out = push(out, r)
		at = r.Last + 1
	}
}

// next is what two lists say of the first offset from at on that they say anything of, and of
// those after it up to where either changes. None of their runs ends before at.
func next(a, b []Run, at int64) Run {
	if len(a) == 0 || len(b) > 0 && b[0].First < a[0].First {
		a, b = b, a
	}
	r := a[0]
	r.First = max(r.First, at)
	if len(b) == 0 {
		return r
	}
	other := b[0]
	if other.First = max(other.First, at); other.First > r.First {
		r.Last = min(r.Last, other.First-1)
		return r
	}
	if wins(other, r) {
		r, other = other, r
	}
	r.Last = min(r.Last, other.Last)
	return r
}
