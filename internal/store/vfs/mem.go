package vfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
)

// Mem is a file system in memory that can crash, fail, stop and fill up. It is
// safe for concurrent use.
//
// What it promises after a power cut is less than any real file system does:
// content is durable after Datasync of the file, a name after SyncDir of the
// folder that holds it, and nothing else is. Within one folder, changes of
// names keep their order. See Crash.
//
// Names are paths from its root, which always exists; a leading slash makes no
// difference. Modification times are always zero.
type Mem struct {
	mu      sync.Mutex
	root    *memDir
	dirs    []*memDir // every folder ever made, in order, so that Crash repeats for a seed
	changes uint64    // how many changes of names there were
	locks   map[string]bool

	used     int64 // bytes of content, including removed files that are still open
	capacity int64 // negative for no limit

	ops    int
	stopAt int // negative for never
	hook   func(Op) error
}

var _ FS = (*Mem)(nil)

// NewMem returns an empty file system without limits.
func NewMem() *Mem {
	m := &Mem{locks: map[string]bool{}, capacity: -1, stopAt: -1}
	m.root = m.newDir()
	return m
}

// Create opens a new file.
func (m *Mem) Create(name string) (File, error) {
	if err := m.begin(Op{Kind: OpCreate, Name: name}); err != nil {
		return nil, pathError(OpCreate, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent(name)
	if err == nil && parent.entries[base] != (ref{}) {
		err = syscall.EEXIST
	}
	if err != nil {
		return nil, pathError(OpCreate, name, err)
	}
	n := &inode{}
	m.record(&change{to: parent, newName: base, what: ref{file: n}})
	return m.handle(n, name), nil
}

// Open opens an existing file.
func (m *Mem) Open(name string) (File, error) {
	if err := m.begin(Op{Kind: OpOpen, Name: name}); err != nil {
		return nil, pathError(OpOpen, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := m.walk(name)
	if err == nil && found.dir != nil {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, pathError(OpOpen, name, err)
	}
	return m.handle(found.file, name), nil
}

// MkdirAll creates each missing folder as an operation of its own, so that a
// crash can come between them.
func (m *Mem) MkdirAll(name string) error {
	name = path.Clean(name)
	for end := 1; end <= len(name); end++ {
		if end < len(name) && name[end] != '/' {
			continue
		}
		if err := m.mkdir(name[:end]); err != nil {
			return pathError(OpMkdir, name[:end], err)
		}
	}
	return nil
}

func (m *Mem) mkdir(name string) error {
	if exists, err := m.isDir(name); exists || err != nil {
		return err
	}
	if err := m.begin(Op{Kind: OpMkdir, Name: name}); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent(name)
	if err != nil {
		return err
	}
	// Another caller may have been quicker while the hook ran.
	switch at := parent.entries[base]; {
	case at.dir != nil:
		return nil
	case at.file != nil:
		return syscall.ENOTDIR
	}
	m.record(&change{to: parent, newName: base, what: ref{dir: m.newDir()}})
	return nil
}

func (m *Mem) isDir(name string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped() {
		return false, ErrStopped
	}
	found, err := m.walk(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err == nil && found.file != nil:
		return false, syscall.ENOTDIR
	}
	return err == nil, err
}

// Rename moves a file or folder. Like os.Rename it does not replace a folder.
func (m *Mem) Rename(oldName, newName string) error {
	err := m.begin(Op{Kind: OpRename, Name: oldName, NewName: newName})
	if err == nil {
		err = m.rename(oldName, newName)
	}
	if err != nil {
		return &os.LinkError{Op: OpRename.String(), Old: oldName, New: newName, Err: err}
	}
	return nil
}

func (m *Mem) rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, oldBase, err := m.parent(oldName)
	if err != nil {
		return err
	}
	to, newBase, err := m.parent(newName)
	if err != nil {
		return err
	}
	moved, replaced := from.entries[oldBase], to.entries[newBase]
	switch {
	case moved == ref{}:
		return syscall.ENOENT
	case replaced.dir != nil:
		return syscall.EEXIST
	case moved == replaced:
		return nil
	case moved.dir != nil && strings.HasPrefix(rooted(newName), rooted(oldName)+"/"):
		return syscall.EINVAL
	case moved.dir != nil && replaced.file != nil:
		return syscall.ENOTDIR
	}
	m.record(&change{from: from, oldName: oldBase, to: to, newName: newBase, what: moved})
	return nil
}

// Remove removes a file or an empty folder. Open handles keep working, and the
// space of the file is free again when the last one is closed.
func (m *Mem) Remove(name string) error {
	if err := m.begin(Op{Kind: OpRemove, Name: name}); err != nil {
		return pathError(OpRemove, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	parent, base, err := m.parent(name)
	if err != nil {
		return pathError(OpRemove, name, err)
	}
	gone := parent.entries[base]
	switch {
	case gone == ref{}:
		return pathError(OpRemove, name, syscall.ENOENT)
	case gone.dir != nil && len(gone.dir.entries) > 0:
		return pathError(OpRemove, name, syscall.ENOTEMPTY)
	}
	m.record(&change{from: parent, oldName: base, what: gone})
	return nil
}

// RemoveAll removes what a folder holds, then the folder, each as an operation
// of its own, so that a crash can come between them.
func (m *Mem) RemoveAll(name string) error {
	names, err := m.subtree(name)
	if err != nil {
		return pathError(OpRemove, name, err)
	}
	for _, n := range names {
		if err := m.Remove(n); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// subtree lists a name and everything below it, children before their folder.
func (m *Mem) subtree(name string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped() {
		return nil, ErrStopped
	}
	found, err := m.walk(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	var list func(name string, at ref)
	list = func(name string, at ref) {
		if at.dir != nil {
			for _, child := range sortedNames(at.dir.entries) {
				list(path.Join(name, child), at.dir.entries[child])
			}
		}
		names = append(names, name)
	}
	list(name, found)
	return names, nil
}

// SyncDir makes the entries of a folder durable.
func (m *Mem) SyncDir(name string) error {
	if err := m.begin(Op{Kind: OpSyncDir, Name: name}); err != nil {
		return pathError(OpSyncDir, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := m.walkDir(name)
	if err != nil {
		return pathError(OpSyncDir, name, err)
	}
	found.flush(m.changes)
	return nil
}

func pathError(kind OpKind, name string, err error) error {
	return &fs.PathError{Op: kind.String(), Path: name, Err: err}
}
