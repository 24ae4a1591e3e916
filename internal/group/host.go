package group

import "strings"

// Kafka writes a client's host as Java prints an address, with a slash before it:
// in its records, and in DescribeGroups. Here, and for people, it has none.

func kafkaHost(host string) string { return "/" + host }

// plainHost takes the slash away. Records of an older muster have none.
func plainHost(host string) string { return strings.TrimPrefix(host, "/") }
