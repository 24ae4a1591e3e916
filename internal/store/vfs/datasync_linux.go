package vfs

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// datasync skips the timestamps that fsync would also write; the size is data
// that is needed to read the file back, so fdatasync does write it.
func datasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	// Control keeps the descriptor from being closed, and given to another
	// file, while the call runs. It fails only if the file is closed already.
	var syncErr error
	if conn.Control(func(fd uintptr) {
		syncErr = retryInterrupted(func() error { return unix.Fdatasync(int(fd)) })
	}) != nil {
		syncErr = fs.ErrClosed
	}
	if syncErr != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: syncErr}
	}
	return nil
}
