package group

import "strings"

// Kafka writes a client's host as Java prints an address, with a slash before it:
// in its records, and in DescribeGroups. Members have it so; for people it has
// none.

func kafkaHost(host string) string { return "/" + host }

// plainHost takes the slash away. Records of an older muster have none.
func plainHost(host string) string { return strings.TrimPrefix(host, "/") }

// isHost says whether that is how Kafka writes a host.
func isHost(written, plain string) bool {
	rest, ok := strings.CutPrefix(written, "/")
	return ok && rest == plain
}

// maxHosts bounds how many hosts are shared. Where there are more, some members
// have a copy of their own.
const maxHosts = 1000

// hosts lets members from the same host share its name: there are many members, and
// few hosts.
type hosts map[string]string // as Kafka writes it, by the plain name

// of returns a host as Kafka writes it.
func (h hosts) of(plain string) string {
	if shared, ok := h[plain]; ok {
		return shared
	}
	if len(h) >= maxHosts {
		clear(h)
	}
	shared := kafkaHost(plain)
	h[plainHost(shared)] = shared
	return shared
}
