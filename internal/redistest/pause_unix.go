//go:build unix

package redistest

import "syscall"

// Pause stops the process where it is, without ending its connections.
func (n *Node) Pause() { n.signal(syscall.SIGSTOP, true) }

// Resume continues a paused process.
func (n *Node) Resume() { n.signal(syscall.SIGCONT, false) }
