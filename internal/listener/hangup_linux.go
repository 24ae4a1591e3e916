package listener

import "golang.org/x/sys/unix"

// hungUp says whether the client has closed the connection, or it broke. That is
// seen also behind bytes that no one has read yet.
func (c *conn) hungUp() bool {
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}, 0)
		gone = err == nil && n > 0
	})
	return gone || err != nil
}
