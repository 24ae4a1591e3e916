//go:build streams

package handler

import (
	"cmp"
	"slices"
)

// Streams groups (KIP-1071) are served by a broker that is built with -tags streams, and by no
// other before Kafka Streams has been tried with them.
func init() {
	table = append(table,
		Entry{Key: 88, Min: 0, Max: 0, serve: (*Handler).streamsGroupHeartbeat, Note: "no warm-ups, no descriptions of topologies"},
		Entry{Key: 89, Min: 0, Max: 0, serve: (*Handler).streamsGroupDescribe},
	)
	slices.SortFunc(table, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	features = append(features, feature{"streams.version", 1})
	slices.SortFunc(features, func(a, b feature) int { return cmp.Compare(a.name, b.name) })
}
