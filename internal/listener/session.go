package listener

import (
	"crypto/tls"

	"muster/internal/protocol"
)

// Gate makes sessions of connections, on listeners where clients say who they are.
type Gate interface {
	// Enter begins a session, after the handshake of TLS if there is one. An error ends
	// the connection.
	Enter(client *Client, state *tls.ConnectionState) (Session, error)
	// Failed hears of a handshake of TLS that failed, which ends the connection.
	Failed(client *Client, err error)
}

// Session is who a connection is, as far as is known. Only the goroutine that serves the
// connection uses it.
type Session interface {
	// Limit returns how large the next frame may be; 0 or less for as large as any.
	Limit() int
	// User returns who it is, in any form that no address has; "" before a login.
	User() string
}

// strangerBudget bounds the memory of large requests from clients that have yet to log in.
// They have one of their own, so that they cannot keep those waiting who have.
const strangerBudget = 32 << 20

// memory returns the budget that the next frame counts against.
func (c *conn) memory() *budget {
	if c.client.Session != nil && c.client.Session.Limit() > 0 {
		return c.server.strangers
	}
	return c.server.budget
}

// enter passes the gate. The handshake must be as prompt as the rest of a frame.
func (c *conn) enter() error {
	var state *tls.ConnectionState
	if over, ok := c.net.(*tls.Conn); ok {
		c.setReadDeadline(c.server.rest, c.clock())
		if err := over.HandshakeContext(c.server.ctx); err != nil {
			c.gate.Failed(&c.client, err)
			return err
		}
		now := over.ConnectionState()
		state = &now
	}
	var err error
	c.client.Session, err = c.gate.Enter(&c.client, state)
	return err
}

// limit returns how large the next frame may be.
func (c *conn) limit() int {
	most := c.server.opts.MaxRequest
	if c.client.Session == nil {
		return most
	}
	if least := c.client.Session.Limit(); least > 0 {
		return min(least, most)
	}
	return most
}

// ends says whether the connection ends after an answer, and logs why.
func (c *conn) ends(resp *protocol.Response) bool {
	reason := resp.Ends()
	if reason == nil {
		return false
	}
	c.server.refused.warn("connection closed", "host", c.client.Host, "listener", c.client.Listener, "reason", reason)
	return true
}
