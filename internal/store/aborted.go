package store

import "sort"

// abortedRun is how many entries of an AbortedList are passed over at once.
const abortedRun = 64

// AbortedList is the aborted transactions of a log, in the order of their
// markers. It takes 24 bytes for each, and a search looks at few of them: it
// begins at a marker, and passes over runs that begin too late. The zero value is
// an empty list. Whoever keeps it guards it.
type AbortedList struct {
	entries []Aborted
	lowest  []int64 // the lowest first offset of each run
	last    int64   // the last marker that was ever in the list, plus one
}

// Add takes in transactions in the order of their markers, but for those that it
// has been told of before.
func (l *AbortedList) Add(list ...Aborted) {
	for _, a := range list {
		if a.LastOffset < l.last {
			continue
		}
		l.last = a.LastOffset + 1
		if len(l.entries)%abortedRun == 0 {
			l.lowest = append(l.lowest, a.FirstOffset)
		}
		run := len(l.entries) / abortedRun
		l.lowest[run] = min(l.lowest[run], a.FirstOffset)
		l.entries = append(l.entries, a)
	}
}

// Find returns the transactions whose first offset is below next and whose
// marker is at or above from, in the order of their first offsets: clients take
// them in that order.
func (l *AbortedList) Find(from, next int64) []Aborted {
	var out []Aborted
	for i := l.at(from); i < len(l.entries); {
		if run := i / abortedRun; i%abortedRun == 0 && l.lowest[run] >= next {
			i += abortedRun
			continue
		}
		if l.entries[i].FirstOffset < next {
			out = append(out, l.entries[i])
		}
		i++
	}
	sortAborted(out)
	return out
}

// sortAborted is called for each fetch of committed records, which mostly meets none.
func sortAborted(list []Aborted) {
	if len(list) < 2 {
		return // sort.Slice allocates.
	}
	sort.Slice(list, func(i, j int) bool { return list[i].FirstOffset < list[j].FirstOffset })
}

// at returns the index of the first entry whose marker is at or above an offset.
func (l *AbortedList) at(offset int64) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].LastOffset >= offset })
}

// Below returns the transactions whose markers are below an offset. The list
// may change meanwhile; what is returned does not.
func (l *AbortedList) Below(next int64) []Aborted {
	n := l.at(next)
	return l.entries[:n:n]
}

// Trim forgets the transactions whose markers are below the log start offset.
func (l *AbortedList) Trim(logStart int64) {
	if n := l.at(logStart); n > 0 {
		l.set(l.entries[n:])
	}
}

// Remove forgets those that someone points out, and returns them.
func (l *AbortedList) Remove(gone func(Aborted) bool) (removed []Aborted) {
	var kept []Aborted
	for _, a := range l.entries {
		if gone(a) {
			removed = append(removed, a)
		} else {
			kept = append(kept, a)
		}
	}
	if len(removed) > 0 {
		l.set(kept)
	}
	return removed
}

func (l *AbortedList) set(entries []Aborted) {
	last := l.last
	*l = AbortedList{entries: make([]Aborted, 0, len(entries))}
	l.Add(entries...)
	l.last = last
}
