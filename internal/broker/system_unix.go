//go:build unix

package broker

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// maxOpenFiles leaves half of the descriptors that the process may have to
// connections.
func maxOpenFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 256
	}
	return int(min(max(limit.Cur/2, 64), 8192))
}

// space tells the size of the data volume and what is free on it.
func (b *Broker) space() (total, usable int64) {
	var st unix.Statfs_t
	if b.dataFolder() == "" || unix.Statfs(b.dataFolder(), &st) != nil {
		return -1, -1
	}
	block := int64(st.Bsize) //nolint:unconvert // Its type is not the same on all systems.
	return int64(st.Blocks) * block, int64(st.Bavail) * block
}

// isWorldReadable says whether everybody on the machine can read a file.
func isWorldReadable(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o004 != 0 }
