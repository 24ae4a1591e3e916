//go:build !linux

package vfs

import "os"

// datasync uses Sync because that is F_FULLFSYNC on darwin, where a plain fsync
// leaves the data in the cache of the drive.
func datasync(f *os.File) error { return f.Sync() }
