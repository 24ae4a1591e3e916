package redis

import (
	"strconv"

	"muster/internal/store"
)

// Stream names a partition's stream and how offsets stand for its ids, as the
// topic's settings say. A stream that was made under other settings keeps its
// own. It is what other packages need to know of a log to look at its
// stream.
type Stream struct {
	store.TopicPartition
	Layout       store.Layout
	SequenceBits int
}

// StreamKeys are the keys of a partition that concern its stream.
type StreamKeys struct {
	Stream    string
	Meta      string // a hash: what is known about the log
	Groups    string // a set: the consumer groups of the stream that muster made
	Consumers string // a hash: the consumer that muster made of each group
}

// KeysOf names the keys of a partition.
func KeysOf(prefix string, tp store.TopicPartition) StreamKeys {
	k := logKeys(prefix, tp)
	return StreamKeys{Stream: k.stream, Meta: k.meta, Groups: k.groups, Consumers: k.consumers}
}

// Kept returns the layout, as the meta hash names it, and how many bits of an
// offset are the sequence of its id, which is none in layouts log and indexed.
func (s Stream) Kept() (layout store.Layout, bits int) {
	switch {
	case s.Layout == store.LayoutLog, s.Layout == store.LayoutIndexed:
		return s.Layout, 0
	case s.SequenceBits == 0:
		return store.LayoutStream, defaultBits
	}
	return store.LayoutStream, s.SequenceBits
}

// IDBefore returns the id that a group is at when it has committed an offset:
// that of the last record before the offset, whether that exists or not. In layout
// indexed it has to be looked up: StandingsBefore.
func (s Stream) IDBefore(offset int64) string {
	layout, bits := s.Kept()
	if layout == store.LayoutLog {
		return entryID{ms: uint64(max(offset, 0))}.String() // That of a batch which ends there.
	}
	return numbering{bits: uint(bits)}.id(offset - 1).String()
}

// OffsetAfter returns the offset that follows what a group at an id has read. In layout
// indexed it has to be looked up too.
func (s Stream) OffsetAfter(text string) (int64, error) {
	id, err := parseID(text)
	if err != nil {
		return 0, err
	}
	layout, bits := s.Kept()
	switch {
	case layout == store.LayoutLog:
		return numbering{}.atOrAfter(id), nil
	case id != (entryID{}):
		id = id.after()
	}
	return numbering{bits: uint(bits)}.atOrAfter(id), nil
}

// As returns the stream as its meta hash says it is.
func (s Stream) As(layout, bits string) Stream {
	switch n, err := strconv.Atoi(bits); store.Layout(layout) {
	case store.LayoutLog, store.LayoutIndexed:
		s.Layout = store.Layout(layout)
	case store.LayoutStream:
		s.Layout = store.LayoutStream
		if err == nil && n > 0 && n <= maxBits {
			s.SequenceBits = n
		}
	}
	return s
}
