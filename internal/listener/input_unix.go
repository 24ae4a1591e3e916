//go:build unix

package listener

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"muster/internal/buffer"
)

const canTry = true

// tryRead reads what is there; false says that there is nothing yet. It reads as package net
// does, so that what was done before something was sent is known to have been done before
// it is read.
func (in *input) tryRead(fd uintptr) bool {
	b, kept := buffer.Get(inputSize)
	n, err := syscall.Read(int(fd), b)
	for errors.Is(err, syscall.EINTR) {
		n, err = syscall.Read(int(fd), b)
	}
	if n > 0 {
		in.buffer, in.bytes, in.err = kept, b[:n], nil
		return true
	}
	buffer.Put(kept)
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return false
	case err != nil:
		in.err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
	default:
		in.err = io.EOF
	}
	return true
}
