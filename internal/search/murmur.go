package search

import "encoding/binary"

// PartitionOf returns the partition that producers give to a key that hash as Kafka's
// own do by default: murmur2.
func PartitionOf(key []byte, partitions int32) int32 {
	return int32(murmur2(key)&0x7fffffff) % partitions
}

// murmur2 is Austin Appleby's hash with Kafka's seed.
func murmur2(b []byte) uint32 {
	const m, r, seed = 0x5bd1e995, 24, 0x9747b28c
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := binary.LittleEndian.Uint32(b) * m
		h = h*m ^ (k^k>>r)*m
	}
	for i := len(b) - 1; i >= 0; i-- {
		h ^= uint32(b[i]) << (8 * i)
	}
	if len(b) > 0 {
		h *= m
	}
	h = (h ^ h>>13) * m
	return h ^ h>>15
}
