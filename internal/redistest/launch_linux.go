package redistest

import "syscall"

// endWithParent has the kernel end a child when this process ends, whatever
// ends it: a test's timeout runs no cleanup.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
