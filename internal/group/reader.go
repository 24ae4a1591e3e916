package group

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// reader decodes the records of a log, one batch after the other. A shard may have
// millions of offsets to load: mostly they are of the group and the topic of the
// record before, whose names are shared, and what a batch was decoded into is used
// again for the next.
type reader struct {
	group, topic string
	room         []offsetRoom
	used         int
}

// offsetRoom is room for the record of an offset.
type offsetRoom struct {
	record OffsetRecord
	value  offset
}

// roomFor is how many offsets of a batch room is kept for.
const roomFor = 256

func newReader() *reader { return &reader{room: make([]offsetRoom, roomFor)} }

// done says that nobody uses the records any more that were decoded so far.
func (r *reader) done() { r.used = 0 }

func (r *reader) next() *offsetRoom {
	if r.used == len(r.room) {
		return new(offsetRoom)
	}
	r.used++
	return &r.room[r.used-1]
}

func (r *reader) decode(key, value []byte) (machine.Record, error) {
	if len(key) < 2 {
		return nil, fmt.Errorf("key of %d bytes", len(key))
	}
	switch version := binary.BigEndian.Uint16(key); version {
	case 0, offsetKeyVersion:
		return r.offset(key[2:], value)
	case groupKeyVersion:
		return decodeGroup(key, value)
	case consumerEpochKeyVersion, consumerTopicsKeyVersion, consumerMemberKeyVersion, consumerTargetEpochKeyVersion,
		consumerTargetKeyVersion, consumerCurrentKeyVersion, consumerRegexKeyVersion:
		return decodeConsumer(version, key[2:], value)
	case rebalanceKeyVersion, departureKeyVersion, silenceKeyVersion:
		return decodeOurs(version, key[2:], value)
	default:
		return nil, fmt.Errorf("%w: key version %d", machine.ErrUnknownRecord, version)
	}
}

func (r *reader) offset(key, value []byte) (machine.Record, error) {
	group, rest, ok := cutText(key)
	topic, rest, ok2 := cutText(rest)
	if !ok || !ok2 || len(rest) < 4 || max(len(group), len(topic)) > math.MaxInt16 {
		return nil, errors.New("offset key is cut short")
	}
	if len(topic) == 0 {
		return nil, errors.New("offset key without topic")
	}
	at := r.next()
	rec := &at.record
	*rec = OffsetRecord{Group: same(&r.group, group), Topic: same(&r.topic, topic), Partition: int32(binary.BigEndian.Uint32(rest))}
	if value == nil {
		return rec, nil
	}
	if len(value) < 2 || value[0] != 0 || value[1] > offsetValueTopicID {
		return nil, fmt.Errorf("offset value of another version: %.2x", value)
	}
	if value[1] == offsetValueTopicID && !plausibleOffset(value) {
		return nil, errors.New("offset value claims more fields than it has bytes for")
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, fmt.Errorf("offset value: %w", err)
	}
	at.value = offset{at: v.Offset, epoch: -1, metadata: v.Metadata, commit: v.CommitTimestamp, expire: -1, topic: v.TopicID}
	rec.Value = &at.value
	if v.Version >= 3 {
		rec.Value.epoch = v.LeaderEpoch
	}
	if v.Version == offsetValueExpire {
		rec.Value.expire = v.ExpireTimestamp
	}
	rec.Start = max(machine.TxnStartOf(&v.UnknownTags), 0)
	return rec, nil
}

// same returns b as a text: the last one if it is the same.
func same(last *string, b []byte) string {
	if string(b) != *last { // Without a copy, as the compiler knows.
		*last = string(b)
	}
	return *last
}

// cutText takes a text with its length before it off b.
func cutText(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return nil, nil, false
	}
	return b[2 : 2+n], b[2+n:], true
}
