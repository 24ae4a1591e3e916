package web

import (
	"muster/internal/auth"
	"muster/internal/share"
)

// streams counts those who are told of changes, or follow records. No one has more than a
// share of the places, so that one with many tabs, or a script, does not take the live pages
// of all others. Behind a proxy all have one address, and are told apart by their logins.
type streams struct{ share.Shares[place] }

// place is someone at an address.
type place struct {
	who  auth.Principal
	host string
}

func newStreams() streams {
	return streams{share.Shares[place]{Most: maxStreams, Own: maxOwnStreams}}
}

// enter counts a stream, unless there are too many; leave ends it.
func (s *streams) enter(c *call) bool { return s.Take(place{c.who, c.host}, 1) }

func (s *streams) leave(c *call) { s.Give(place{c.who, c.host}, 1) }
