package vfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// hasModes says that the mode of a file does not tell who may use it.
const hasModes = false

// syncDir only looks whether the folder is there. Windows has no call that makes
// a folder's entries durable; NTFS writes them to its journal in order.
func syncDir(name string) error {
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "sync", Path: name, Err: syscall.ENOTDIR}
	}
	return err
}

// lock locks the first byte of the file, which no one reads or writes.
func lock(f *os.File) error {
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}
