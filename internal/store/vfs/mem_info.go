package vfs

import (
	"io/fs"
	"path"
	"time"
)

// ReadDir lists a folder.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := m.begin(Op{Kind: OpRead, Name: name}); err != nil {
		return nil, pathError(OpRead, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := m.walkDir(name)
	if err != nil {
		return nil, pathError(OpRead, name, err)
	}
	list := make([]fs.DirEntry, 0, len(found.entries))
	for _, child := range sortedNames(found.entries) {
		list = append(list, fs.FileInfoToDirEntry(infoOf(child, found.entries[child])))
	}
	return list, nil
}

// Private changes nothing: everything is its owner's.
func (m *Mem) Private(string) (bool, error) { return false, nil }

// Stat describes a file or folder.
func (m *Mem) Stat(name string) (fs.FileInfo, error) {
	if err := m.begin(Op{Kind: OpRead, Name: name}); err != nil {
		return nil, pathError(OpRead, name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found, err := m.walk(name)
	if err != nil {
		return nil, pathError(OpRead, name, err)
	}
	return infoOf(path.Base(rooted(name)), found), nil
}

// memInfo is a fs.FileInfo as of the moment it was asked for.
type memInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func infoOf(name string, at ref) memInfo {
	if at.dir != nil {
		return memInfo{name: name, mode: fs.ModeDir | dirPerm}
	}
	return memInfo{name: name, size: int64(len(at.file.data)), mode: filePerm}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return nil }
