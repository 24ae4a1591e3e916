package protocol

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TagBounds is the number of a tagged field of muster's own in ListOffsets, between
// brokers. In a partition of the request it asks for more than one offset, and names
// clients; in a partition of the response it has the log start offset, the last stable
// offset, the bytes, how many offsets at the end are of nothing to read, and how long ago each of the clients last fetched the partition: the
// clocks of brokers differ. So a coordinator knows with one request how far groups are
// that read what others lead.
const TagBounds = 28023

// MaxBoundsReaders is how many clients may be named for a partition.
const MaxBoundsReaders = 32

// Reader is a client that fetches.
type Reader struct{ ClientID, Host string }

// Bounds is the answer.
type Bounds struct {
	Start, LastStable, Bytes int64
	Tail                     int64   // How many offsets at the end are of nothing to read.
	Fetched                  []int64 // How many milliseconds ago each client did, or one of these.
}

// What a leader says of clients of which there is no time.
const (
	NeverFetched  = -1
	FetchNotKnown = -2
)

// AskBounds asks for bounds in a partition of a ListOffsets request.
func AskBounds(partition *kmsg.Tags, readers []Reader) {
	value := []byte{}
	for _, r := range readers[:min(len(readers), MaxBoundsReaders)] {
		for _, text := range [...]string{r.ClientID, r.Host} {
			value = binary.AppendUvarint(value, uint64(len(text)))
			value = append(value, text...)
		}
	}
	partition.Set(TagBounds, value)
}

// AsksBounds says whether a partition of a ListOffsets request asks for bounds, and names
// the clients. What cannot be read names no one.
func AsksBounds(partition *kmsg.Tags) (readers []Reader, asks bool) {
	partition.Each(func(tag uint32, value []byte) {
		if tag != TagBounds {
			return
		}
		asks = true
		for len(value) > 0 && len(readers) < MaxBoundsReaders {
			var text [2]string
			for i := range text {
				n, used := binary.Uvarint(value)
				if used <= 0 || n > uint64(len(value)-used) {
					return
				}
				text[i], value = string(value[used:used+int(n)]), value[used+int(n):]
			}
			readers = append(readers, Reader{text[0], text[1]})
		}
	})
	return readers, asks
}

// SetBounds puts bounds into a partition of a ListOffsets response.
func SetBounds(partition *kmsg.Tags, b Bounds) {
	var value []byte
	for _, n := range append([]int64{b.Start, b.LastStable, b.Bytes, b.Tail}, b.Fetched...) {
		value = binary.AppendVarint(value, n)
	}
	partition.Set(TagBounds, value)
}

// GetBounds returns the bounds of a partition of a ListOffsets response; false if there
// are none.
func GetBounds(partition *kmsg.Tags) (b Bounds, ok bool) {
	partition.Each(func(tag uint32, value []byte) {
		if tag != TagBounds {
			return
		}
		var numbers []int64
		for len(value) > 0 {
			n, used := binary.Varint(value)
			if used <= 0 {
				return
			}
			numbers, value = append(numbers, n), value[used:]
		}
		if len(numbers) >= 4 {
			b, ok = Bounds{numbers[0], numbers[1], numbers[2], numbers[3], numbers[4:]}, true
		}
	})
	return b, ok
}
