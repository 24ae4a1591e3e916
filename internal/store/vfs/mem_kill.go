package vfs

import "slices"

// CrashKeepAll returns what a killed process leaves: all that was written, in
// the cache of a kernel that lives on. What was not synced is still not synced
// in the result, and a later power cut can take it. Handles, locks, hook and
// stop are gone.
func (m *Mem) CrashKeepAll() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := copier{dirs: map[*memDir]*memDir{}, files: map[*inode]*inode{}, changes: map[*change]*change{}}
	out := &Mem{locks: map[string]bool{}, capacity: m.capacity, stopAt: -1, changes: m.changes}
	for _, d := range m.dirs {
		c.dirs[d] = out.newDir()
	}
	out.root = c.dirs[m.root]
	for _, d := range m.dirs {
		c.fill(c.dirs[d], d)
	}
	for _, n := range c.files {
		if !n.removed {
			out.used += int64(len(n.data))
		}
	}
	return out
}

// copier copies a graph of folders, files and changes, each of them once.
type copier struct {
	dirs    map[*memDir]*memDir
	files   map[*inode]*inode
	changes map[*change]*change
}

func (c copier) fill(to, from *memDir) {
	for name, at := range from.entries {
		to.entries[name] = c.ref(at)
	}
	for name, at := range from.durable {
		to.durable[name] = c.ref(at)
	}
	for _, old := range from.pending {
		kept := c.changes[old]
		if kept == nil {
			kept = &change{seq: old.seq, oldName: old.oldName, newName: old.newName,
				from: c.dirs[old.from], to: c.dirs[old.to], what: c.ref(old.what)}
			c.changes[old] = kept
		}
		to.pending = append(to.pending, kept)
	}
}

func (c copier) ref(at ref) ref {
	if at.file == nil {
		return ref{dir: c.dirs[at.dir]}
	}
	kept := c.files[at.file]
	if kept == nil {
		old := at.file
		kept = &inode{data: slices.Clone(old.data), durable: slices.Clone(old.durable),
			edits: slices.Clone(old.edits), removed: old.removed}
		c.files[old] = kept
	}
	return ref{file: kept}
}
