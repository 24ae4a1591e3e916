package listener

import (
	"net"
	"time"
)

// Arrivals decides how often connections may begin.
type Arrivals interface {
	// From counts a connection from an address. If that makes too many the
	// connection is not served, and closed after the time that it returns: a
	// client that is closed at once would come back at once.
	From(host string) (hold time.Duration)
	// On counts a connection that is to be served on a listener, and returns for
	// how long it has to wait, and with it all that come after it there.
	On(listener string) (wait time.Duration)
}

const (
	// heldAtOnce is how many connections are held before they are closed; those
	// beyond are closed at once. It is also bounded by a part of the
	// descriptors that there are.
	heldAtOnce = 256
	heldShare  = 16
	// longestHold is how long one is held at most.
	longestHold = 10 * time.Second
)

// arrived counts a connection that was accepted; false says that it is not to be
// served. Without limits of rates it costs nothing.
func (s *Server) arrived(name, host string, nc *net.TCPConn) bool {
	a := s.opts.Arrivals
	if a == nil {
		return true
	}
	if hold := a.From(host); hold > 0 {
		s.refused.warn("connection refused: connection_creation_rate of its address reached", "host", host)
		s.hold(nc, min(hold, longestHold))
		return false
	}
	if wait := a.On(name); wait > 0 {
		select {
		case <-s.ctx.Done():
		case <-s.after(wait):
		}
	}
	return true
}

// hold closes a connection after a while. It ends with a reset, after which clients
// try again.
func (s *Server) hold(nc *net.TCPConn, d time.Duration) {
	resetOnClose(nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() || s.held >= min(heldAtOnce, s.sockets/heldShare) {
		nc.Close()
		return
	}
	s.held++
	s.running.Go(func() {
		select {
		case <-s.ctx.Done():
		case <-s.after(d):
		}
		nc.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held--
	})
}

// perHostLimit returns how many connections an address may have.
func (s *Server) perHostLimit(host string) int {
	if limit, ok := s.overrides[host]; ok {
		return limit
	}
	return s.opts.MaxPerHost
}

// SetOverrides sets how many connections certain addresses may have, whatever the
// others may. Connections above the new limits stay.
func (s *Server) SetOverrides(perHost map[string]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overrides = perHost
}
