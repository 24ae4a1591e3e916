package broker

import (
	"io/fs"

	"golang.org/x/sys/windows"
)

// maxOpenFiles is what the broker may keep open of its files. Windows sets no
// limit that could be asked for.
func maxOpenFiles() int { return 4096 }

// space tells the size of the data volume and what is free on it.
func (b *Broker) space() (total, usable int64) {
	if b.dataFolder() == "" {
		return -1, -1
	}
	name, err := windows.UTF16PtrFromString(b.dataFolder())
	if err != nil {
		return -1, -1
	}
	var free, size uint64
	if windows.GetDiskFreeSpaceEx(name, &free, &size, nil) != nil {
		return -1, -1
	}
	return int64(size), int64(free)
}

// isWorldReadable says whether everybody on the machine can read a file; that does not show
// in the mode of a file here.
func isWorldReadable(fs.FileInfo) bool { return false }
