package list

import (
	"cmp"
	"iter"
	"slices"
	"strings"
)

// Index is the groups of one moment. What it says never changes.
type Index struct {
	groups []*GroupRow // In order of name.

	// An index is made every ten seconds, and mostly no one looks: what only some
	// questions need is made by the first of them.
	need   [sorts]func() // Sees to it that there is an order.
	orders [sorts][]int32
	index  func()             // Sees to it that there is topics.
	topics map[string][]int32 // Which groups read a topic.
	fold   func()             // Sees to it that there is folded.
	folded []string           // The names in lower case.
}

// Once returns a function that calls f when it is first called, and which many may call at
// once, as sync.OnceFunc does. This package has no locks.
type Once func(f func()) func()

// atOnce is the Once of an index that one goroutine at a time reads.
func atOnce(f func()) func() {
	done := false
	return func() {
		if !done {
			f()
			done = true
		}
	}
}

// Build makes an index of summaries, which become its own, with all that it needs, so that
// many may read it. Of two with one name the first counts.
func Build(groups []GroupRow) *Index {
	all := make([]*GroupRow, len(groups))
	for i := range groups {
		all[i] = &groups[i]
	}
	byName := func(a, b *GroupRow) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(all, byName) {
		slices.SortStableFunc(all, byName)
	}
	x := Of(slices.CompactFunc(all, func(a, b *GroupRow) bool { return a.Name == b.Name }), atOnce)
	for _, need := range x.need {
		need()
	}
	x.index()
	x.fold()
	for i := range x.need { // From now on no one writes.
		x.need[i] = func() {}
	}
	x.index, x.fold = x.need[0], x.need[0]
	return x
}

// Of makes an index of summaries in order of name, each name once, which no one changes
// from then on. Indexes may share them.
func Of(groups []*GroupRow, once Once) *Index {
	x := &Index{groups: groups}
	x.index, x.fold = once(x.findTopics), once(x.foldNames)
	for by := range sorts {
		x.need[by] = once(func() { x.sort(by) })
	}
	return x
}

// findTopics finds out which groups read a topic.
func (x *Index) findTopics() {
	x.topics = map[string][]int32{}
	for i, g := range x.groups {
		for j, topic := range g.Topics {
			if !slices.Contains(g.Topics[:j], topic) {
				x.topics[topic] = append(x.topics[topic], int32(i))
			}
		}
	}
}

func (x *Index) foldNames() {
	x.folded = make([]string, len(x.groups))
	for i, g := range x.groups {
		x.folded[i] = strings.ToLower(g.Name)
	}
}

func (x *Index) sort(by Sort) {
	values := make([]uint64, len(x.groups))
	for i, g := range x.groups {
		values[i] = g.value(by)
	}
	x.orders[by] = radixSort(values, make([]int32, len(x.groups)))
}

// order returns the places of the groups in an order.
func (x *Index) order(by Sort) []int32 {
	x.need[by]()
	return x.orders[by]
}

// reading returns the places of the groups that read a topic.
func (x *Index) reading(topic string) []int32 {
	x.index()
	return x.topics[topic]
}

// Len is how many groups there are.
func (x *Index) Len() int { return len(x.groups) }

// Get returns a group.
func (x *Index) Get(name string) (*GroupRow, bool) {
	i, found := slices.BinarySearchFunc(x.groups, name, func(s *GroupRow, name string) int { return cmp.Compare(s.Name, name) })
	if !found {
		return nil, false
	}
	return x.groups[i], true
}

// Reading returns the groups that read a topic, or have committed offsets of it, in
// order of name.
func (x *Index) Reading(topic string) []*GroupRow {
	places := x.reading(topic)
	out := make([]*GroupRow, len(places))
	for i, at := range places {
		out[i] = x.groups[at]
	}
	return out
}

// CountReading is how many groups Reading returns.
func (x *Index) CountReading(topic string) int { return len(x.reading(topic)) }

// radixSort returns the places of values in their order, and leaves equal ones in the
// order in which they were, so that names need not be compared. It is several times
// faster than to compare a hundred thousand groups, and someone waits for it. It goes
// byte by byte from the last; bytes that are the same in all are skipped, which most are.
func radixSort(values []uint64, aux []int32) []int32 {
	order := make([]int32, len(values))
	sorted := order
	differ := uint64(0)
	for i, v := range values {
		order[i] = int32(i)
		differ |= v ^ values[0]
	}
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var starts [257]int32
		for _, v := range values {
			starts[v>>shift&0xff+1]++
		}
		for i := range 256 {
			starts[i+1] += starts[i]
		}
		for _, at := range order {
			digit := values[at] >> shift & 0xff
			aux[starts[digit]] = at
			starts[digit]++
		}
		order, aux = aux, order
	}
	copy(sorted, order) // It may be in aux, which others use.
	return sorted
}

// All returns all groups in order of name. No one may change them.
func (x *Index) All() iter.Seq[*GroupRow] {
	return func(yield func(*GroupRow) bool) {
		for _, s := range x.groups {
			if !yield(s) {
				return
			}
		}
	}
}
