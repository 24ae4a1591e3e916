package redistest

import (
	"errors"
	"syscall"
	"time"
)

// endWithParent has the kernel end a child when this process ends, whatever
// ends it: a test's timeout runs no cleanup. It leads a process group, so that its own
// children can be ended with it.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// endChildren ends what a server has left that is gone: who writes a snapshot or a new
// append-only file would go on and write to a folder that is being removed.
func endChildren(pid int) {
	_ = Poll(2*time.Second, func() error { // What is not gone by then waits for whoever inherits it to notice.
		if err := syscall.Kill(-pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		return errors.New("a child is left")
	})
}
