package journal

import "unicode/utf16"

// PartitionFor returns which of so many partitions of __group_journal has the
// entries of a group: Java's hash of the id, which goes over UTF-16 code units,
// without its sign. It is Kafka's rule for __consumer_offsets, and muster's for
// both topics: with as many partitions they lie side by side, and one broker
// leads a group and its journal.
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
