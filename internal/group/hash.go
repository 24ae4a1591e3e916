package group

import "muster/internal/journal"

// PartitionFor returns the partition of __consumer_offsets that a group belongs
// to.
func PartitionFor(groupID string, partitions int32) int32 {
	return journal.PartitionFor(groupID, partitions)
}
