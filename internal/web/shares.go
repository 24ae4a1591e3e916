package web

import (
	"net"
	"net/netip"
	"sync"
)

// shares counts what is in use of something that is bounded, in all and for each of those
// who use it: no one gets more than a share, so that the others find some left.
type shares[K comparable] struct {
	most, own int64

	mu  sync.Mutex
	all int64
	of  map[K]int64
}

// take counts n for who, unless that is too much; give ends it.
func (s *shares[K]) take(who K, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all+n > s.most || s.of[who]+n > s.own {
		return false
	}
	if s.of == nil {
		s.of = map[K]int64{}
	}
	s.all += n
	s.of[who] += n
	return true
}

func (s *shares[K]) give(who K, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	if s.of[who] -= n; s.of[who] == 0 {
		delete(s.of, who)
	}
}

// used is how much is in use.
func (s *shares[K]) used() int64 {
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
