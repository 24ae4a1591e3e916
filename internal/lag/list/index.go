package list

import (
	"cmp"
	"slices"
	"strings"
)

// Index is the groups of one moment. It never changes.
type Index struct {
	groups []Summary // In order of name.
	folded []string  // Their names in lower case.
	orders [sorts][]int32
	topics map[string][]int32
}

// Build makes an index of summaries, which become its own. It is fastest if they are in
// order of name. Of two with one name the first counts.
func Build(groups []Summary) *Index {
	byName := func(a, b Summary) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(groups, byName) {
		slices.SortStableFunc(groups, byName)
	}
	groups = slices.CompactFunc(groups, func(a, b Summary) bool { return a.Name == b.Name })
	x := &Index{groups: groups, folded: make([]string, len(groups)), topics: map[string][]int32{}}
	names := make([]int32, len(groups))
	for i := range groups {
		names[i] = int32(i)
		x.folded[i] = strings.ToLower(groups[i].Name)
		for j, topic := range groups[i].Topics {
			if !slices.Contains(groups[i].Topics[:j], topic) {
				x.topics[topic] = append(x.topics[topic], int32(i))
			}
		}
	}
	x.orders[ByName] = names
	x.sort()
	return x
}

// sort makes all orders but that of names. Summaries are large, so they are visited
// once for all orders.
func (x *Index) sort() {
	var values [sorts][]uint64
	for by := range values {
		values[by] = make([]uint64, len(x.groups))
	}
	for i := range x.groups {
		for by := ByName + 1; by < sorts; by++ {
			values[by][i] = x.groups[i].value(by)
		}
	}
	aux := make([]int32, len(x.groups))
	for by := ByName + 1; by < sorts; by++ {
		x.orders[by] = radixSort(values[by], aux)
	}
}

// Len is how many groups there are.
func (x *Index) Len() int { return len(x.groups) }

// Get returns a group.
func (x *Index) Get(name string) (*Summary, bool) {
	i, found := slices.BinarySearchFunc(x.groups, name, func(s Summary, name string) int { return cmp.Compare(s.Name, name) })
	if !found {
		return nil, false
	}
	return &x.groups[i], true
}

// Reading returns the groups that read a topic, or have committed offsets of it, in
// order of name.
func (x *Index) Reading(topic string) []*Summary {
	out := make([]*Summary, len(x.topics[topic]))
	for i, at := range x.topics[topic] {
		out[i] = &x.groups[at]
	}
	return out
}

// radixSort returns the places of values in their order, and leaves equal ones in the
// order in which they were, so that names need not be compared. It is several times
// faster than to compare a hundred thousand groups, and the orders are made anew every
// ten seconds. It goes byte by byte from the last; bytes that are the same in all are
// skipped, which most are.
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
