package vfs

import (
	"path"
	"slices"
	"strings"
	"syscall"
)

// ref is what a name stands for: a folder or a file. The zero ref is nothing.
type ref struct {
	dir  *memDir
	file *inode
}

// memDir is a folder as programs see it, as it is on disk, and what lies
// between the two: its disk state after any prefix of pending is possible.
type memDir struct {
	entries map[string]ref
	durable map[string]ref
	pending []*change
}

// change creates, removes or renames a name. A rename between two folders is
// pending in both, and takes effect in both or in neither, since file systems
// with a journal put it in one transaction.
type change struct {
	seq     uint64
	from    *memDir // nil if the name is new
	oldName string
	to      *memDir // nil if the name is removed
	newName string
	what    ref
}

func (m *Mem) newDir() *memDir {
	d := &memDir{entries: map[string]ref{}, durable: map[string]ref{}}
	m.dirs = append(m.dirs, d)
	return d
}

// record makes a change visible, but not durable.
func (m *Mem) record(c *change) {
	m.changes++
	c.seq = m.changes
	switch {
	case c.to == nil:
		m.unlink(c.what)
	case c.to.entries[c.newName] != ref{}:
		m.unlink(c.to.entries[c.newName])
	}
	if c.from != nil {
		c.apply(c.from, c.from.entries)
		c.from.pending = append(c.from.pending, c)
	}
	if c.to != nil && c.to != c.from {
		c.apply(c.to, c.to.entries)
		c.to.pending = append(c.to.pending, c)
	}
}

// apply does to entries what the change does to folder d.
func (c *change) apply(d *memDir, entries map[string]ref) {
	if c.from == d {
		delete(entries, c.oldName)
	}
	if c.to == d {
		entries[c.newName] = c.what
	}
}

// other is the second folder of a rename between folders, or nil.
func (c *change) other(d *memDir) *memDir {
	if c.from == d && c.to != d {
		return c.to
	}
	if c.to == d && c.from != d {
		return c.from
	}
	return nil
}

// flush makes changes durable up to and including through. With a rename
// between folders go the earlier changes of the other folder, which a journal
// cannot have written later.
func (d *memDir) flush(through uint64) {
	for len(d.pending) > 0 && d.pending[0].seq <= through {
		c := d.pending[0]
		d.pending = d.pending[1:]
		c.apply(d, d.durable)
		if other := c.other(d); other != nil {
			other.flush(c.seq)
		}
	}
}

func sortedNames(entries map[string]ref) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// rooted gives every spelling of a name the same form.
func rooted(name string) string { return path.Clean("/" + name) }

func (m *Mem) walk(name string) (ref, error) {
	at := ref{dir: m.root}
	rest := strings.TrimPrefix(rooted(name), "/")
	for rest != "" {
		var base string
		base, rest, _ = strings.Cut(rest, "/")
		if at.dir == nil {
			return ref{}, syscall.ENOTDIR
		}
		at = at.dir.entries[base]
		if at == (ref{}) {
			return ref{}, syscall.ENOENT
		}
	}
	return at, nil
}

func (m *Mem) walkDir(name string) (*memDir, error) {
	found, err := m.walk(name)
	if err == nil && found.dir == nil {
		err = syscall.ENOTDIR
	}
	return found.dir, err
}

// parent finds the folder that holds a name, whether or not the name exists.
func (m *Mem) parent(name string) (*memDir, string, error) {
	dir, base := path.Split(rooted(name))
	if base == "" {
		return nil, "", syscall.EBUSY // The root has no name to change.
	}
	d, err := m.walkDir(dir)
	return d, base, err
}
