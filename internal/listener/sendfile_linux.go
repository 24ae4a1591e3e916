package listener

import (
	"io"
	"net"

	"golang.org/x/sys/unix"
)

const canSendfile = true

// sendfileChunk bounds one call, so that the deadline is about progress.
const sendfileChunk = 4 << 20

// sendfile sends part of a file. Positions are given explicitly, since several
// connections may send from the same open file.
func (c *conn) sendfile(src uintptr, pos int64, length int) error {
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return err
	}
	for length > 0 {
		c.setWriteDeadline()
		var n int
		var sendErr error
		err := raw.Write(func(dst uintptr) bool {
			n, sendErr = unix.Sendfile(int(dst), int(src), &pos, min(length, sendfileChunk))
			return sendErr != unix.EAGAIN && sendErr != unix.EINTR
		})
		switch {
		case err != nil:
			return err
		case sendErr != nil:
			return sendErr
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		length -= n
	}
	return nil
}

// unsent is how much of what was written may wait in the kernel to be sent. More
// helps no one, it only is out of the processor's cache when its turn comes; what
// the network has under way is not limited.
const unsent = 128 << 10

// tune sets up a connection that was accepted.
func tune(tcp *net.TCPConn) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return // The connection is gone, as the next read from it finds out.
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent) // It works without, too.
	})
}
