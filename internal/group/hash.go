package group

import "unicode/utf16"

// PartitionFor returns the partition of __consumer_offsets that a group belongs
// to: Java's hash of the id, which goes over UTF-16 code units, without its sign.
func PartitionFor(groupID string, partitions int32) int32 {
	var h int32
	for _, r := range groupID {
		if high, low := utf16.EncodeRune(r); utf16.RuneLen(r) == 2 {
			h = 31*(31*h+high) + low
			continue
		}
		h = 31*h + r
	}
	if h == -1<<31 {
		return 0
	}
	return max(h, -h) % partitions
}
