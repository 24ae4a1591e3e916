package web

import (
	"sync"

	"muster/internal/auth"
)

// streams counts those who are told of changes, or follow records. Nobody has more than a
// share of the places, so that one with many tabs, or a script, does not take the live pages
// of all others. Behind a proxy all have one address, and are told apart by their logins.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[place]int
}

// place is somebody at an address.
type place struct {
	who  auth.Principal
	host string
}

// enter counts a stream, unless there are too many; leave ends it.
func (s *streams) enter(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{c.who, c.host}
	if s.all >= maxStreams || s.of[at] >= maxOwnStreams {
		return false
	}
	if s.of == nil {
		s.of = map[place]int{}
	}
	s.all++
	s.of[at]++
	return true
}

func (s *streams) leave(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := place{c.who, c.host}
	s.all--
	if s.of[at]--; s.of[at] == 0 {
		delete(s.of, at)
	}
}
