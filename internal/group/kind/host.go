package kind

import "strings"

// Kafka writes a client's host as Java prints an address, with a slash before it:
// in its records, and in DescribeGroups. Members have it so; for people it has
// none.

func kafkaHost(host string) string { return "/" + host }

// PlainHost takes the slash away. Records of an older muster have none.
func PlainHost(host string) string { return strings.TrimPrefix(host, "/") }

// IsHost says whether that is how Kafka writes a host.
func IsHost(written, plain string) bool {
	rest, ok := strings.CutPrefix(written, "/")
	return ok && rest == plain
}

// MaxHosts bounds how many hosts are shared. Where there are more, some members
// have a copy of their own.
const MaxHosts = 1000

// Hosts lets members from the same host share its name: there are many members, and
// few hosts.
type Hosts map[string]string // as Kafka writes it, by the plain name

// Of returns a host as Kafka writes it.
func (h Hosts) Of(plain string) string {
	if shared, ok := h[plain]; ok {
		return shared
	}
	if len(h) >= MaxHosts {
		clear(h)
	}
	shared := kafkaHost(plain)
	h[PlainHost(shared)] = shared
	return shared
}
