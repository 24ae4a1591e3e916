package group

import "unicode/utf16"

// PartitionFor returns the partition of __consumer_offsets that a group belongs
// to: Java's hash of the id, which goes over UTF-16 code units, without its sign.
func PartitionFor(groupID string, partitions int32) int32 {
	var h int32
	for _, u := range utf16.Encode([]rune(groupID)) {
		h = 31*h + int32(u)
	}
	if h == -1<<31 {
		return 0
	}
	return max(h, -h) % partitions
}
