//go:build unix && !linux

package listener

import "golang.org/x/sys/unix"

// hungUp says whether the client has closed the connection, or it broke. Behind
// bytes that no one has read yet that cannot be seen here.
func (c *conn) hungUp() bool {
	raw, err := c.tcp.SyscallConn()
	if err != nil {
		return true
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		gone = n == 0 && err == nil || err == unix.ECONNRESET || err == unix.ETIMEDOUT
	})
	return gone || err != nil
}
