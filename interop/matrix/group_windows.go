package main

import (
	"os/exec"
	"syscall"
)

func setGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// killGroup ends the command alone: there is no call that ends a group.
func killGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }
