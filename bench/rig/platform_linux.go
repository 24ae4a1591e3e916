package rig

import (
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns what a process has used so far, to the nanosecond.
func ProcessorTime(pid int) (time.Duration, error) {
	const all = 2 // of its threads, running or ended
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid<<3|all), &t)
	return time.Duration(t.Nano()), err
}

// FreeSpace is how many bytes can be written to the disk of a folder.
func FreeSpace(folder string) (int64, error) {
	var st unix.Statfs_t
	err := unix.Statfs(folder, &st)
	return int64(st.Bavail) * st.Bsize, err
}

// Forget has the system drop what it holds of a file in memory, as far as that is on
// disk.
func Forget(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }

// Tie has a process end when this one does, however that ends.
func Tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// Pause sleeps to within a tenth of a millisecond, where Go's timers may take
// one more.
func Pause(d time.Duration) {
	if d > 0 {
		left := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&left, nil) // An interrupted one is short, and the caller looks at the clock.
	}
}
