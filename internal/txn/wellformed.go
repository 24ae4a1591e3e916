package txn

import "encoding/binary"

// isWellFormed says whether the counts in a value can be right. Whoever reads it
// makes room for as many things as a count claims, so that a few wrong bytes could
// use up all memory or time.
func isWellFormed(value []byte) bool {
	w := walker{b: value}
	flexible := len(value) >= 2 && value[1] >= 1
	w.skip(2 + 8 + 2 + 4 + 1) // Version, producer id, epoch, timeout, state.
	for range w.count(flexible) {
		w.skip(w.text(flexible))
		w.skip(4 * w.count(flexible))
		if flexible {
			w.tags()
		}
		if w.bad {
			return false
		}
	}
	w.skip(8 + 8) // When it was updated, and when it began.
	if flexible {
		w.tags()
	}
	return !w.bad
}

// walker goes over bytes without making anything of them.
type walker struct {
	b   []byte
	bad bool
}

func (w *walker) skip(n int) {
	if n < 0 || n > len(w.b) {
		w.bad, w.b = true, nil
		return
	}
	w.b = w.b[n:]
}

// count reads how many things follow, each of which has a byte at least.
func (w *walker) count(flexible bool) int {
	n := 0
	if flexible {
		n = max(w.uvarint()-1, 0)
	} else if b := w.b; len(b) >= 4 {
		n = max(int(int32(binary.BigEndian.Uint32(b))), 0)
		w.skip(4)
	} else {
		w.bad = true
	}
	if n > len(w.b) {
		w.bad = true
	}
	if w.bad {
		return 0
	}
	return n
}

// text reads the length of a string.
func (w *walker) text(flexible bool) int {
	if flexible {
		return w.uvarint() - 1
	}
	if len(w.b) < 2 {
		return -1
	}
	n := int(int16(binary.BigEndian.Uint16(w.b)))
	w.skip(2)
	return n
}

func (w *walker) tags() {
	n := w.uvarint()
	if n > len(w.b) {
		w.bad = true
	}
	for ; n > 0 && !w.bad; n-- {
		w.uvarint()
		w.skip(w.uvarint())
	}
}

func (w *walker) uvarint() int {
	n, used := binary.Uvarint(w.b)
	if used <= 0 || n >= 1<<31 {
		w.bad, w.b = true, nil
		return 0
	}
	w.skip(used)
	return int(n)
}
