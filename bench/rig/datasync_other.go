//go:build !linux

package rig

import "os"

func Datasync(f *os.File) error { return f.Sync() }
