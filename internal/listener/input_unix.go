//go:build unix

package listener

import (
	"errors"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

const canTry = true

// tryRead reads what is there; false says that there is nothing yet.
func (in *input) tryRead(fd uintptr) bool {
	b, buffer := buffers.get(inputSize)
	n, err := unix.Read(int(fd), b)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(int(fd), b)
	}
	if n > 0 {
		in.buffer, in.bytes, in.err = buffer, b[:n], nil
		return true
	}
	buffers.put(buffer)
	switch {
	case errors.Is(err, unix.EAGAIN):
		return false
	case err != nil:
		in.err = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
	default:
		in.err = io.EOF
	}
	return true
}
