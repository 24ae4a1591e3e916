// Package fair divides what is bounded between those who use it: connections, bytes of
// bodies, streams, logins. No one gets more than a share, so that the others find some left.
// It knows nothing of what is divided, and waits for nothing.
package fair

import (
	"net"
	"net/netip"
	"sync"
)

// Shares counts what is in use of something that is bounded, in all and for each of those
// who use it.
type Shares[K comparable] struct {
	Most, Own int64

	mu  sync.Mutex
	all int64
	of  map[K]int64
}

// Take counts n for who, unless that is too much; Give ends it.
func (s *Shares[K]) Take(who K, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all+n > s.Most || s.of[who]+n > s.Own {
		return false
	}
	if s.of == nil {
		s.of = map[K]int64{}
	}
	s.all += n
	s.of[who] += n
	return true
}

// Give counts n less.
func (s *Shares[K]) Give(who K, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	if s.of[who] -= n; s.of[who] == 0 {
		delete(s.of, who)
	}
}

// Used is how much is in use.
func (s *Shares[K]) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Neighbourhood is what an address has its share as: itself, and for IPv6 its /64, of which
// one machine usually has all.
func Neighbourhood(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		host = addr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	prefix, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return host
	}
	return prefix.String()
}
