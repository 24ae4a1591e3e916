package listener

import (
	"encoding/binary"
	"maps"
	"time"
)

// Meter hears of requests.
type Meter interface {
	// Answered hears that a request of a connection was answered, and how long that
	// took from when it was read until the answer was written. Many connections
	// call it at once.
	Answered(conn uint32, key, version int16, took time.Duration)
}

// asked is a request that is yet to be answered, as far as the meter wants to know.
type asked struct {
	at           time.Time // zero if it does not
	key, version int16
}

// begin notes that a request was read.
func (c *conn) begin(request []byte) (a asked) {
	if c.server.opts.Meter == nil || len(request) < 4 {
		return a
	}
	return asked{time.Now(), int16(binary.BigEndian.Uint16(request)), int16(binary.BigEndian.Uint16(request[2:]))}
}

// answered tells the meter that a request was, and returns when that is; zero without
// a meter.
func (c *conn) answered(a asked) (now time.Time) {
	if !a.at.IsZero() {
		now = time.Now()
		c.server.opts.Meter.Answered(c.client.Number, a.key, a.version, now.Sub(a.at))
	}
	return now
}

// ConnectionsByListener returns how many connections each listener has.
func (s *Server) ConnectionsByListener() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.perName)
}
