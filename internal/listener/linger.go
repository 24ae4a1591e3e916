package listener

import (
	"crypto/tls"
	"io"
	"time"
)

const (
	// lingerTime is how long a connection that has had its last answer stays, for its
	// client to close it.
	lingerTime = time.Second
	// maxLinger is how many bytes of what the client sent meanwhile are thrown away.
	maxLinger = 1 << 20
)

// linger ends a connection after its last answer in a way that the answer arrives. If it
// were closed while bytes lie there that the client sent without waiting, the client would
// be told of a reset, which may overtake the answer, and would never know why. So we say
// that we send no more, and throw away what comes, until the client has closed its side.
func (c *conn) linger() {
	if over, ok := c.net.(*tls.Conn); ok {
		_ = over.CloseWrite()
	}
	if c.tcp.CloseWrite() != nil {
		return // It is closed.
	}
	c.idle.Store(true) // A server that shuts down does not wait for it.
	_ = c.tcp.SetReadDeadline(time.Now().Add(c.server.patience))
	if !c.server.draining.Load() {
		_, _ = io.CopyN(io.Discard, c.tcp, maxLinger)
	}
}
