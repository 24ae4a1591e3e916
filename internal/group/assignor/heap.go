package assignor

// heap keeps small numbers (members or classes) such that the one that comes
// before all others is at hand, and finds a number again when its place changes.
type heap struct {
	items  []int32
	at     []int32               // by number: its place in items, or absent; heaps without a number in common may share it
	before func(a, b int32) bool // whether a comes before b; no two are equal
	work   *int                  // counts comparisons
}

const absent int32 = -1

// reset puts other numbers in the heap.
func (h *heap) reset(items []int32) {
	for _, x := range h.items {
		h.at[x] = absent
	}
	h.items = append(h.items[:0], items...)
	for i, x := range h.items {
		h.at[x] = int32(i)
	}
	for i := len(h.items)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// drop takes out the number that comes before all others.
func (h *heap) drop() {
	last := len(h.items) - 1
	h.swap(0, last)
	h.at[h.items[last]] = absent
	h.items = h.items[:last]
	h.down(0)
}

// push puts another number in the heap.
func (h *heap) push(x int32) {
	h.items = append(h.items, x)
	h.at[x] = int32(len(h.items) - 1)
	h.up(len(h.items) - 1)
}

// first returns the number that comes before all others.
func (h *heap) first() int32 { return h.items[0] }

// fix finds the new place of a number. One that is not in the heap has none.
func (h *heap) fix(x int32) {
	if i := h.at[x]; i != absent && !h.down(int(i)) {
		h.up(int(i))
	}
}

// down moves the number at i away from the front as far as it must, and tells
// whether it moved.
func (h *heap) down(i int) bool {
	from := i
	for {
		child := 2*i + 1
		if child >= len(h.items) {
			break
		}
		if other := child + 1; other < len(h.items) && h.less(other, child) {
			child = other
		}
		if !h.less(child, i) {
			break
		}
		h.swap(i, child)
		i = child
	}
	return i > from
}

// up moves the number at i to the front as far as it must.
func (h *heap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *heap) less(i, j int) bool {
	*h.work++
	return h.before(h.items[i], h.items[j])
}

func (h *heap) swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.at[h.items[i]], h.at[h.items[j]] = int32(i), int32(j)
}
