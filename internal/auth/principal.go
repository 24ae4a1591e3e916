package auth

import (
	"net/netip"
	"strings"
)

// Principal is who someone is, in the form "User:alice". Everyone who logs in
// to muster is a user, and may be in groups besides (Groups); rules may name other
// types, which then match no one.
type Principal string

const (
	userPrefix = "User:"

	// Anonymous is who did not have to log in.
	Anonymous Principal = "User:ANONYMOUS"
	// Everyone stands in a rule for all principals.
	Everyone Principal = "User:*"
)

// User returns the principal of a user.
func User(name string) Principal { return Principal(userPrefix + name) }

// ParsePrincipal reads what a person wrote: a principal, or only the name of a user.
func ParsePrincipal(s string) Principal {
	if strings.Contains(s, ":") {
		return Principal(s)
	}
	return User(s)
}

// Name returns the principal without its type.
func (p Principal) Name() string {
	_, name, _ := strings.Cut(string(p), ":")
	return name
}

// short is the form that ParsePrincipal reads back with the least to write.
func (p Principal) short() string {
	name, user := strings.CutPrefix(string(p), userPrefix)
	if !user || name == "" || strings.Contains(name, ":") || strings.HasPrefix(name, "-") {
		return string(p)
	}
	return name
}

// ParseSuperUsers reads super.users: principals between semicolons, since
// commas stand in the names of certificates.
func ParseSuperUsers(s string) ([]Principal, error) {
	var out []Principal
	for part := range strings.SplitSeq(s, ";") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if !strings.Contains(part, ":") {
			return nil, invalid("super.users names %q, which is no principal: write User:%s", part, part)
		}
		out = append(out, Principal(part))
	}
	return out, nil
}

// AnyHost stands in a rule for all hosts.
const AnyHost = "*"

// Host returns the host of a connection as rules have it.
func Host(addr netip.Addr) string { return addr.Unmap().WithZone("").String() }

// canonicalHost returns an address in its one form. Java writes all eight groups
// of an IPv6 address and its zone, people write what they like, and a DENY that
// misses for the sake of a spelling would be a hole.
func canonicalHost(host string) string {
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	return Host(addr)
}
