package handler

import (
	"cmp"
	"slices"
)

// servesShareGroups is whether clients are told of share groups (KIP-932). They are not before
// records can be fetched from them.
const servesShareGroups = true

// addShareGroups adds the keys of share groups to the table, and their feature.
func addShareGroups() {
	if !servesShareGroups {
		return
	}
	table = append(table,
		Entry{Key: 76, Min: 1, Max: 1, serve: (*Handler).shareGroupHeartbeat},
		Entry{Key: 77, Min: 1, Max: 1, serve: (*Handler).shareGroupDescribe},
		Entry{Key: 90, Min: 0, Max: 1, serve: (*Handler).describeShareGroupOffsets},
		Entry{Key: 91, Min: 0, Max: 0, serve: (*Handler).alterShareGroupOffsets},
		Entry{Key: 92, Min: 0, Max: 0, serve: (*Handler).deleteShareGroupOffsets},
	)
	slices.SortFunc(table, func(a, b Entry) int { return cmp.Compare(a.Key, b.Key) })
	features = append(features, feature{"share.version", 1})
	slices.SortFunc(features, func(a, b feature) int { return cmp.Compare(a.name, b.name) })
}
