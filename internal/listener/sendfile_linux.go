package listener

import (
	"io"

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
