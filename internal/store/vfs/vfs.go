// Package vfs is the part of a file system that the disk engine uses, so that
// its tests can run on one that crashes and fails.
//
// OS is the real thing. Mem keeps everything in memory, can lose what was not
// synced (as a power cut does) and can fail any operation. Assumptions about
// the real file system that Mem models are in docs/internals/storage.md.
package vfs

import (
	"io"
	"io/fs"
)

// FS is a file system. Names are slash-separated paths. Errors wrap the fs.Err
// values and the errno of the operating system (ENOSPC, EIO).
type FS interface {
	// Create opens a new file for reading and writing; it must not exist.
	Create(name string) (File, error)
	// Open opens an existing file for reading and writing.
	Open(name string) (File, error)
	// MkdirAll creates a folder and its parents.
	MkdirAll(name string) error
	// Rename replaces newName atomically. Durable after SyncDir of the parents.
	Rename(oldName, newName string) error
	// Remove removes a file or an empty folder. Removing what does not exist
	// gives fs.ErrNotExist.
	Remove(name string) error
	// RemoveAll removes a folder with all in it; none is no error.
	RemoveAll(name string) error
	// ReadDir lists a folder, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes a file or folder.
	Stat(name string) (fs.FileInfo, error)
	// SyncDir makes the entries of a folder durable: files created in it,
	// renamed into or out of it, removed from it.
	SyncDir(name string) error
	// Private takes a file or folder away from all but its owner, and says whether
	// others could use it. What Create, MkdirAll and Lock make is private already.
	Private(name string) (changed bool, err error)
	// Lock takes the exclusive lock that the named file stands for, creating
	// the file, and fails at once if another process holds it.
	Lock(name string) (io.Closer, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate changes the size.
	Truncate(size int64) error
	// Datasync makes the file's content and size durable, not its name.
	Datasync() error
	// Size returns the current size.
	Size() (int64, error)
	// Fd returns the descriptor, or false if there is none.
	Fd() (uintptr, bool)
}
