package vfs

import (
	"os"
	"strings"
)

// Boot names the life of the kernel: while it is the same, what a process wrote to files of
// OS is there for the next, synced or not. It is empty where there is no such name.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
