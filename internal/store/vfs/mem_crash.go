package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// sector is the unit in which a disk writes.
const sector = 512

// Crash returns what a power cut now could leave, one of many possibilities
// that rng chooses among. The same operations and the same rng give the same.
//
// Of a folder, the durable entries remain, with a prefix of the later changes.
// Of a file, the durable content remains, and each later write remains wholly,
// as a prefix, in some of its sectors, or not at all, regardless of order; the
// size can be extended without the data, which then reads as zeros; each later
// truncate has happened or not.
//
// The result is durable as it stands, without hook, stop or locks, and has the
// same capacity. The receiver stays as it was.
func (m *Mem) Crash(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	limits := m.chooseLimits(rng)
	return m.survivor(
		func(d *memDir) uint64 { return limits[d] },
		func(n *inode) []byte { return survivingContent(n, rng) },
	)
}

// CrashStrict returns what every power cut leaves: what is durable.
func (m *Mem) CrashStrict() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.survivor(
		func(*memDir) uint64 { return 0 },
		func(n *inode) []byte { return slices.Clone(n.durable) },
	)
}

// survivor builds the file system that holds the changes of each folder up to
// its limit, and the content given for each file.
func (m *Mem) survivor(limit func(*memDir) uint64, content func(*inode) []byte) *Mem {
	out := NewMem()
	out.capacity = m.capacity
	var fill func(to, from *memDir)
	fill = func(to, from *memDir) {
		entries := maps.Clone(from.durable)
		for _, c := range from.pending {
			if c.seq <= limit(from) {
				c.apply(from, entries)
			}
		}
		for _, name := range sortedNames(entries) {
			kept := ref{}
			if old := entries[name]; old.dir != nil {
				kept.dir = out.newDir()
				fill(kept.dir, old.dir)
			} else {
				data := content(old.file)
				kept.file = &inode{data: data, durable: slices.Clone(data)}
				out.used += int64(len(data))
			}
			to.entries[name], to.durable[name] = kept, kept
		}
	}
	fill(out.root, m.root)
	return out
}

// chooseLimits chooses for each folder the last change that survives, such
// that a rename between two folders survives in both or in neither.
func (m *Mem) chooseLimits(rng *rand.Rand) map[*memDir]uint64 {
	limits := map[*memDir]uint64{}
	for _, d := range m.dirs {
		if len(d.pending) == 0 {
			continue
		}
		// All and nothing are likelier than chance would have them in a long
		// list, because most mistakes show at the ends.
		switch rng.IntN(4) {
		case 0:
		case 1:
			limits[d] = m.changes
		default:
			if n := rng.IntN(len(d.pending) + 1); n > 0 {
				limits[d] = d.pending[n-1].seq
			}
		}
	}
	for again := true; again; {
		again = false
		for _, d := range m.dirs {
			for _, c := range d.pending {
				other := c.other(d)
				if other != nil && c.seq <= limits[d] && c.seq > limits[other] {
					limits[d] = c.seq - 1
					again = true
				}
			}
		}
	}
	return limits
}

func survivingContent(n *inode, rng *rand.Rand) []byte {
	content := slices.Clone(n.durable)
	if len(n.edits) == 0 {
		return content
	}
	// The plain outcomes get a share of their own, since among many edits
	// independent choices would hardly ever produce them.
	switch rng.IntN(8) {
	case 0:
		return content
	case 1:
		return applyAll(content, n.edits)
	case 2, 3:
		return tornTail(content, n.edits, rng)
	}
	for _, e := range n.edits {
		content = tear(content, e, rng)
	}
	if len(content) > len(n.durable) && rng.IntN(4) == 0 {
		// The data was written, the size was not.
		content = content[:len(n.durable)]
	}
	return content
}

func applyAll(content []byte, edits []edit) []byte {
	for _, e := range edits {
		content = e.apply(content)
	}
	return content
}

// tornTail keeps the order: some edits happened, then part of one more.
func tornTail(content []byte, edits []edit, rng *rand.Rand) []byte {
	whole := rng.IntN(len(edits) + 1)
	content = applyAll(content, edits[:whole])
	if whole < len(edits) && !edits[whole].truncate {
		e := edits[whole]
		content = overwrite(content, e.off, e.data[:rng.IntN(len(e.data)+1)])
	}
	return content
}

// tear lets an edit survive in one of the ways that Crash describes.
func tear(content []byte, e edit, rng *rand.Rand) []byte {
	if e.truncate {
		if rng.IntN(2) == 0 {
			return content
		}
		return e.apply(content)
	}
	switch rng.IntN(4) {
	case 0:
		return e.apply(content)
	case 1:
		// Nothing of the data survives.
	case 2:
		content = overwrite(content, e.off, e.data[:rng.IntN(len(e.data)+1)])
	case 3:
		content = tearSectors(content, e, rng)
	}
	if rng.IntN(2) == 0 {
		content = extend(content, e.end())
	}
	return content
}

func tearSectors(content []byte, e edit, rng *rand.Rand) []byte {
	for off := e.off; off < e.end(); {
		next := min((off/sector+1)*sector, e.end())
		if rng.IntN(2) == 0 {
			content = overwrite(content, off, e.data[off-e.off:next-e.off])
		}
		off = next
	}
	return content
}
