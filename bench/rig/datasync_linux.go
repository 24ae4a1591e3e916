package rig

import (
	"os"

	"golang.org/x/sys/unix"
)

func Datasync(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }
