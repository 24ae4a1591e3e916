// Package schema is the records of __consumer_offsets: a type for each key, with its
// bytes, which are Kafka's own (for keys up to 999) or ours, with keys that Kafka's tools
// skip. The types and their encodings are generated from a table of fields (table_test.go).
// Beside them are those of __share_group_state, which has keys of its own.
//
// It knows nothing of what records mean: two records of one key, or a partition that is
// named twice, are for whoever replays them.
package schema

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"muster/internal/machine"
	"muster/internal/metadata"
)

//go:generate go test -run TestGeneratedRecordsAreCurrent -rewrite .

// Kind is the kind of group that a record is of, by Kafka's name.
type Kind string

// The kinds.
const (
	Any      Kind = "" // of records that any group may have
	Classic  Kind = "classic"
	Consumer Kind = "consumer"
	Share    Kind = "share"
	Streams  Kind = "streams"
)

// Record is a record of a group.
type Record interface {
	machine.Record
	GroupID() string
	Kind() Kind
	// IsTombstone says that it removes what another of its key has said.
	IsTombstone() bool
}

// The versions of an offset's value.
const (
	offsetExpire  = 1 // the only one with an expiry of its own
	offsetPlain   = 3
	offsetTopicID = 4
)

// groupVersion is the version of a group's value that is written.
const groupVersion = 3

// version is the oldest version that has all that is known of an offset.
func (v *Offset) version() int16 {
	switch {
	case v.ExpireTimestamp != -1:
		return offsetExpire
	case v.TopicID != (metadata.TopicID{}) || v.Start > 0 || len(v.Metadata) > maxString:
		return offsetTopicID
	}
	return offsetPlain
}

// tagOverhead is what a tagged field takes besides itself, at most.
const tagOverhead = 3 + 5

func appendStart(b []byte, s machine.TxnStart) []byte { return appendInt64(b, int64(s)) }

func (d *decoder) start() machine.TxnStart { return machine.TxnStart(max(d.int64(), 0)) }

// appendTagged appends the tagged fields of a structure that has this one, which may be
// null. That a field is left out means, by the rules of Kafka's encoding, that it has its
// default, and that is not null here, though the schema tries to say so: it is a classic
// member without protocols. So null is written, as a structure's first byte.
func (v *ClassicMember) appendTagged(b []byte, tag int) []byte {
	const present = 1
	switch {
	case v == nil:
		return append(appendUvarint(append(b, 1), tag), 1, 0)
	case v.SessionTimeoutMillis == 0 && len(v.Protocols) == 0:
		return append(b, 0)
	}
	field := v.append(append(buffer(1+v.size()), present))
	return append(appendUvarint(appendUvarint(append(b, 1), tag), len(field)), field...)
}

func (v *ClassicMember) taggedSize() int {
	if v == nil {
		return tagOverhead + 1
	}
	return tagOverhead + 1 + v.size()
}

// AppendTo appends a group's value as it is written.
func (v *Group) AppendTo(b []byte) []byte { return v.append(b, groupVersion) }

// check forgets epochs that cannot be told which partitions they are of.
func (v *OwnedPartitions) check() {
	if len(v.Epochs) != len(v.Partitions) {
		v.Epochs = nil
	}
}

// check refuses members that could not be told apart.
func (v *Group) check() error {
	ids, instances := map[string]bool{"": true}, map[string]bool{}
	for i := range v.Members {
		id, instance := v.Members[i].MemberID, v.Members[i].InstanceID
		if ids[id] || instance != nil && instances[*instance] {
			return fmt.Errorf("two members %q, or of the same instance", id)
		}
		ids[id] = true
		if instance != nil {
			instances[*instance] = true
		}
	}
	return nil
}

func length(s *string) int {
	if s == nil {
		return 0
	}
	return len(*s)
}

// Decode reads what Encode wrote, also by Kafka.
func Decode(key, value []byte) (machine.Record, error) {
	var r Reader
	return r.Decode(key, value)
}

// DecodeShare reads what Encode wrote of the records of __share_group_state, also by Kafka;
// machine.ErrUnknownRecord says that one may be skipped.
func DecodeShare(key, value []byte) (machine.Record, error) {
	if len(key) < 2 {
		return nil, fmt.Errorf("key of %d bytes", len(key))
	}
	return decodeShare(binary.BigEndian.Uint16(key), &decoder{b: key[2:]}, value)
}

// Reader decodes the records of a log, one batch after the other. A shard may have
// millions of offsets to load: mostly they are of the group and the topic of the record
// before, whose names are shared, and what a batch was decoded into is used again for the
// next.
type Reader struct {
	group, topic string
	room         []offsetRoom
	used         int
}

// offsetRoom is room for the record of an offset.
type offsetRoom struct {
	record OffsetRecord
	value  Offset
}

// roomFor is how many offsets of a batch room is kept for.
const roomFor = 256

// NewReader returns a reader for a load.
func NewReader() *Reader { return &Reader{room: make([]offsetRoom, roomFor)} }

// Done says that the records are not used any more that were decoded so far.
func (r *Reader) Done() { r.used = 0 }

func (r *Reader) next() *offsetRoom {
	if r.used == len(r.room) {
		return new(offsetRoom)
	}
	r.used++
	return &r.room[r.used-1]
}

// Decode reads a record; machine.ErrUnknownRecord says that it may be skipped.
func (r *Reader) Decode(key, value []byte) (machine.Record, error) {
	if len(key) < 2 {
		return nil, fmt.Errorf("key of %d bytes", len(key))
	}
	version, rest := binary.BigEndian.Uint16(key), decoder{b: key[2:]}
	if version <= 1 { // Both are the key of an offset.
		return r.offset(&rest, value)
	}
	return decode(version, &rest, value)
}

func (r *Reader) offset(key *decoder, value []byte) (machine.Record, error) {
	group, topic := key.take(int(key.int16())), key.take(int(key.int16()))
	partition := key.int32()
	switch {
	case key.err != nil:
		return badKey(1, key.err)
	case len(topic) == 0:
		return badKey(1, errors.New("it names no topic"))
	}
	at := r.next()
	rec := &at.record
	*rec = OffsetRecord{Group: same(&r.group, group), Topic: same(&r.topic, topic), Partition: partition}
	if value == nil {
		return rec, nil
	}
	d := decoder{b: value}
	v := d.int16()
	if d.err == nil && (v < 0 || v > offsetTopicID) {
		return otherVersion(1, v, false)
	}
	at.value = Offset{}
	at.value.read(&d, v)
	if d.err != nil {
		return badValue(1, d.err)
	}
	rec.Value = &at.value
	return rec, nil
}

// same returns b as a string: the last one if it is the same.
func same(last *string, b []byte) string {
	if string(b) != *last { // Without a copy, as the compiler knows.
		*last = string(b)
	}
	return *last
}

// name reads a string of a key.
func (d *decoder) name() string {
	n := int(uint16(d.int16()))
	if n > math.MaxInt16 {
		d.fail(errTruncated)
		return ""
	}
	return string(d.take(n))
}

func unknownKey(version uint16) (machine.Record, error) {
	return nil, fmt.Errorf("%w: key version %d", machine.ErrUnknownRecord, version)
}

func badKey(version int, err error) (machine.Record, error) {
	return nil, fmt.Errorf("key of version %d: %w", version, err)
}

func badValue(key int, err error) (machine.Record, error) {
	return nil, fmt.Errorf("value of a key of version %d: %w", key, err)
}

// otherVersion says that a value is of a version that is not known.
func otherVersion(key int, version int16, skip bool) (machine.Record, error) {
	if skip {
		return nil, fmt.Errorf("%w: value of version %d of a key of version %d", machine.ErrUnknownRecord, version, key)
	}
	return nil, fmt.Errorf("value of version %d of a key of version %d", version, key)
}
