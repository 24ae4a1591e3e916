package listener

import (
	"crypto/tls"
	"time"

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

// beforeLoginBudget bounds the memory of large requests from clients that have yet to log in.
// They have one of their own, so that they cannot keep those waiting who have.
const beforeLoginBudget = 32 << 20

// memory returns the budget that the next frame counts against.
func (c *conn) memory() *budget {
	if c.client.Session != nil && c.client.Session.Limit() > 0 {
		return c.server.beforeLogin
	}
	return c.server.budget
}

// loginTimeout bounds the handshake of TLS, and how long a client that has yet to log in may
// take for each request of its login.
const loginTimeout = 10 * time.Second

// enter has the handshake of TLS done, if there is one, and passes the gate, if there is one.
func (c *conn) enter() error {
	var state *tls.ConnectionState
	if over, ok := c.net.(*tls.Conn); ok {
		_ = c.tcp.SetDeadline(time.Now().Add(c.server.login)) // A client may read nothing, too.
		if err := over.HandshakeContext(c.server.ctx); err != nil {
			if c.gate != nil {
				c.gate.Failed(&c.client, err)
			}
			return err
		}
		_ = c.tcp.SetDeadline(time.Time{})
		now := over.ConnectionState()
		state = &now
	}
	if c.gate == nil {
		return nil
	}
	var err error
	c.client.Session, err = c.gate.Enter(&c.client, state)
	return err
}

// mayRest returns how long the connection may be silent before its next request.
func (c *conn) mayRest() time.Duration {
	idle := c.server.opts.IdleTimeout
	if c.client.Session != nil && c.client.Session.Limit() > 0 && (idle <= 0 || idle > c.server.login) {
		return c.server.login
	}
	return idle
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

// Place is where the handler keeps what it likes from one request of the connection to
// the next. It is for the goroutine that handles the request, so it needs no lock, and
// what is kept there goes with the connection.
func (c *Client) Place() *any { return &c.place }

// Ender is what may be kept in a Place that is to hear of the end of the connection. It comes
// once, when no request of the connection is being handled any more.
type Ender interface{ Ended() }

// tellEnd tells what is kept of the connection that it has ended.
func (c *conn) tellEnd() {
	if e, ok := c.client.place.(Ender); ok {
		e.Ended()
	}
}
