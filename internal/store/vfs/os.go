package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// ErrLocked says that the lock is held, by another process or by this one.
var ErrLocked = errors.New("locked by another process")

// Files hold records, keys of users and the secret of the cluster: they are their
// owner's alone.
const (
	filePerm = 0o600
	dirPerm  = 0o700
)

// OS returns the file system of the operating system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) Create(name string) (File, error) {
	return openOS(name, os.O_CREATE|os.O_EXCL|os.O_RDWR)
}

func (osFS) Open(name string) (File, error) { return openOS(name, os.O_RDWR) }

func (osFS) MkdirAll(name string) error                 { return os.MkdirAll(name, dirPerm) }
func (osFS) Rename(oldName, newName string) error       { return os.Rename(oldName, newName) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) RemoveAll(name string) error                { return os.RemoveAll(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }

func (osFS) SyncDir(name string) error { return syncDir(name) }

func (osFS) Private(name string) (bool, error) {
	info, err := os.Lstat(name)
	if err != nil || !hasModes || info.Mode().Perm()&^dirPerm == 0 || !info.IsDir() && !info.Mode().IsRegular() {
		return false, err
	}
	return true, os.Chmod(name, info.Mode().Perm()&dirPerm)
}

// Lock uses a lock that the kernel drops when the process ends in whatever way,
// so that a stale lock file never keeps a broker from starting.
func (osFS) Lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, filePerm)
	if err != nil {
		return nil, err
	}
	if err := lock(f); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return f, nil
}

type osFile struct{ *os.File }

func openOS(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, filePerm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Datasync() error { return datasync(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Fd leaves the file's mode alone: only descriptors that can be polled are put
// in non-blocking mode by package os, and regular files cannot.
func (f osFile) Fd() (uintptr, bool) { return f.File.Fd(), true }
