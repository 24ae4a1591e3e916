//go:build unix

package listener

import (
	"math"

	"golang.org/x/sys/unix"
)

// maxDescriptors is how many files and sockets the process may have open.
func maxDescriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	return int(min(uint64(limit.Cur), math.MaxInt)) //nolint:unconvert // Its type is not the same on all systems.
}
