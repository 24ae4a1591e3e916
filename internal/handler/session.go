package handler

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/auth"
)

// Session is the login of a connection. Requests about it come one at a time.
type Session interface {
	// Handshake takes the mechanism that a client asks for, and returns those that are
	// enabled. After an error the connection ends.
	Handshake(version int16, mechanism string) (err *kerr.Error, enabled []string)
	// Authenticate takes what the mechanism has to say. It may wait, if only because a
	// login failed.
	Authenticate(ctx context.Context, token []byte) Login
	// Software takes the name and version of the client's library, if it says them.
	Software(name, version string)
}

// Login is the answer to a step of a login. After an error the connection ends.
type Login struct {
	Error    *kerr.Error
	Message  string // with an error
	Answer   []byte
	Lifetime time.Duration // of the session; 0 for ever
}

// principal returns who sent the request.
func (c *call) principal() auth.Principal {
	if c.origin.Principal == "" {
		return auth.Anonymous
	}
	return c.origin.Principal
}

// host returns where the request comes from, as rules have it.
func (c *call) host() string {
	if !strings.Contains(c.origin.Host, ":") {
		return c.origin.Host // An address of IPv4 has one form.
	}
	addr, err := netip.ParseAddr(c.origin.Host)
	if err != nil {
		return c.origin.Host
	}
	return auth.Host(addr)
}
