package sasl

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// A Server is what all connections of a listener share.
type Server struct {
	// Mechanisms are those enabled, in the order in which clients see them.
	Mechanisms []Mechanism
	// Unlisted mechanisms are enabled too, for those who know of them: clients that pick one
	// of a list must not pick these.
	Unlisted []Mechanism
	// MaxReauth is connections.max.reauth.ms by mechanism; 0 or none: for ever.
	MaxReauth map[string]time.Duration
	Now       func() time.Time
}

// Names lists the enabled mechanisms, as clients see them.
func (s *Server) Names() []string { return namesOf(s.Mechanisms) }

func namesOf(mechanisms []Mechanism) []string {
	names := make([]string, len(mechanisms))
	for i, m := range mechanisms {
		names[i] = m.Name()
	}
	return names
}

// named returns an enabled mechanism.
func (s *Server) named(name string) Mechanism {
	for _, list := range [][]Mechanism{s.Mechanisms, s.Unlisted} {
		for _, m := range list {
			if m.Name() == name {
				return m
			}
		}
	}
	return nil
}

// Connect begins the state of a connection.
func (s *Server) Connect() *Connection {
	return &Connection{server: s, order: NewOrder(append(s.Names(), namesOf(s.Unlisted)...), s.MaxReauth)}
}

// A Connection is the SASL side of one connection. Only the goroutine that
// reads the connection uses it, and reads no further request while one of its
// methods runs. A request that is handled elsewhere takes the principal along
// that it came with.
type Connection struct {
	server   *Server
	order    *Order
	exchange Exchange
}

// Arrives rules on a request by its key, before its body is parsed.
func (c *Connection) Arrives(key int16) Ruling { return c.order.Arrives(c.server.Now(), key) }

// Raw says that the next frame is a bare token for Authenticate, and that its
// answer goes out as bare.
func (c *Connection) Raw() bool { return c.order.Raw() }

// Principal returns who the connection is, empty before the first login.
func (c *Connection) Principal() string { return c.order.Principal() }

// Expired says whether the session has ended, for whoever wants to close idle
// connections before they speak.
func (c *Connection) Expired() bool { return c.order.Expired(c.server.Now()) }

// Handshake answers a SaslHandshake: the error, if any, and the mechanisms that
// the answer lists. After an error the connection closes.
func (c *Connection) Handshake(version int16, mechanism string) (*kerr.Error, []string) {
	names := c.server.Names()
	if err := c.order.Handshake(c.server.Now(), version, mechanism); err != nil {
		return err, names
	}
	c.exchange = c.server.named(mechanism).Start()
	return nil, names
}

// Authenticate answers a SaslAuthenticate, or a bare token.
func (c *Connection) Authenticate(ctx context.Context, token []byte) Outcome {
	if outcome, ready := c.order.Ready(); !ready {
		c.exchange = nil
		return outcome
	}
	step, err := c.exchange.Next(ctx, token)
	outcome := c.order.Stepped(c.server.Now(), step, err)
	if outcome.Done || outcome.Error != nil {
		c.exchange = nil // It holds secrets, and the connection may live for days.
	}
	return outcome
}
