package group

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// The records of __consumer_offsets, a type for each key. A nil value is a
// tombstone. The first two are Kafka's; the others are ours, with keys that
// Kafka's own tools skip. Those of the consumer protocol are in consumer_record.go.
type (
	// OffsetRecord is an offset that a group committed.
	OffsetRecord struct {
		Group     string
		Topic     string
		Partition int32
		Value     *offset
		// Start is when the transaction began that the record is part of, zero if
		// there is none or it is not known. Only the record of an offset that is
		// not committed yet needs it.
		Start machine.TxnStart
	}
	// GroupRecord is a generation of a classic group.
	GroupRecord struct {
		Group string
		Value *kmsg.GroupMetadataValue
	}
	// RebalanceRecord says that a group has begun to form the generation after
	// the one that its GroupRecord has.
	RebalanceRecord struct {
		Group string
		Value *Rebalance
	}
	// DepartureRecord says that a member of the generation that the GroupRecord
	// has is no longer a member. A record of its own is small; the whole group's,
	// written again for each of a thousand members that leave, is not.
	DepartureRecord struct {
		Group  string
		Member string
		Value  *Departure
	}
	// SilenceRecord says how long a member was silent that was loaded and not heard
	// of since.
	SilenceRecord struct {
		Group  string
		Member string
		Value  *Silence
	}
)

// offset is a committed offset.
type offset struct {
	at       int64
	epoch    int32
	metadata string
	commit   int64 // when, in milliseconds
	expire   int64 // when it may go, in milliseconds; -1 by the broker's retention
	topic    metadata.TopicID
}

// Rebalance is a rebalance that is not over.
type Rebalance struct {
	Generation int32 // of the GroupRecord that it belongs to
	Loads      int16 // how often the group was loaded since it began
	Lives      int16 // how many lives of the shard have given out numbers after a leap, see leap
}

// Departure is a member that is gone.
type Departure struct {
	Generation int32 // of the GroupRecord that it belongs to
}

// Silence is how long a member was silent, over all loads.
type Silence struct {
	Lasted time.Duration // in milliseconds
}

// Versions of keys and values that we write.
const (
	offsetKeyVersion    = 1
	groupKeyVersion     = 2
	rebalanceKeyVersion = 1000
	departureKeyVersion = 1001
	silenceKeyVersion   = 1002

	groupValueVersion = 3
	// offsetValueExpire is the only version with an expiry of its own.
	offsetValueExpire  = 1
	offsetValuePlain   = 3
	offsetValueTopicID = 4
	ourValueVersion    = 0
)

// Encode implements machine.Record.
func (r *OffsetRecord) Encode() (key, value []byte) {
	k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: r.Group, Topic: r.Topic, Partition: r.Partition}
	key = k.AppendTo(make([]byte, 0, 10+len(r.Group)+len(r.Topic)))
	if r.Value == nil {
		return key, nil
	}
	v := kmsg.NewOffsetCommitValue()
	switch {
	case r.Value.expire != -1:
		v.Version = offsetValueExpire
	case r.Value.topic != (metadata.TopicID{}) || r.Start > 0:
		v.Version = offsetValueTopicID
	default:
		v.Version = offsetValuePlain
	}
	v.Offset, v.LeaderEpoch, v.Metadata = r.Value.at, r.Value.epoch, r.Value.metadata
	v.CommitTimestamp, v.ExpireTimestamp, v.TopicID = r.Value.commit, r.Value.expire, r.Value.topic
	if r.Start > 0 {
		r.Start.Set(&v.UnknownTags)
	}
	return key, v.AppendTo(make([]byte, 0, offsetValueSize+len(v.Metadata)))
}

// offsetValueSize is what an offset's value takes beside its metadata.
const offsetValueSize = 56 + 16

// Size implements machine.Record.
func (r *OffsetRecord) Size() int {
	n := 10 + len(r.Group) + len(r.Topic)
	if r.Value != nil {
		n += offsetValueSize + len(r.Value.metadata)
	}
	return n
}

// Encode implements machine.Record.
func (r *GroupRecord) Encode() (key, value []byte) {
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: r.Group}
	if r.Value == nil {
		return k.AppendTo(nil), nil
	}
	return k.AppendTo(nil), r.Value.AppendTo(make([]byte, 0, r.Size()))
}

// Size implements machine.Record.
func (r *GroupRecord) Size() int {
	n := 4 + len(r.Group)
	if v := r.Value; v != nil {
		n += 24 + len(v.ProtocolType) + length(v.Protocol) + length(v.Leader)
		for i := range v.Members {
			m := &v.Members[i]
			n += 24 + len(m.MemberID) + length(m.InstanceID) + len(m.ClientID) + len(m.ClientHost) + len(m.Subscription) + len(m.Assignment)
		}
	}
	return n
}

func length(s *string) int {
	if s == nil {
		return 0
	}
	return len(*s)
}

// Encode implements machine.Record.
func (r *RebalanceRecord) Encode() (key, value []byte) {
	key = appendString(binary.BigEndian.AppendUint16(nil, rebalanceKeyVersion), r.Group)
	if r.Value == nil {
		return key, nil
	}
	value = binary.BigEndian.AppendUint16(nil, ourValueVersion)
	value = binary.BigEndian.AppendUint32(value, uint32(r.Value.Generation))
	value = binary.BigEndian.AppendUint16(value, uint16(r.Value.Loads))
	return key, binary.BigEndian.AppendUint16(value, uint16(r.Value.Lives))
}

// Size implements machine.Record.
func (r *RebalanceRecord) Size() int { return 14 + len(r.Group) }

// Encode implements machine.Record.
func (r *DepartureRecord) Encode() (key, value []byte) {
	key = appendString(binary.BigEndian.AppendUint16(nil, departureKeyVersion), r.Group)
	key = appendString(key, r.Member)
	if r.Value == nil {
		return key, nil
	}
	return key, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(nil, ourValueVersion), uint32(r.Value.Generation))
}

// Size implements machine.Record.
func (r *DepartureRecord) Size() int { return 12 + len(r.Group) + len(r.Member) }

// Encode implements machine.Record.
func (r *SilenceRecord) Encode() (key, value []byte) {
	key = appendString(binary.BigEndian.AppendUint16(nil, silenceKeyVersion), r.Group)
	key = appendString(key, r.Member)
	if r.Value == nil {
		return key, nil
	}
	return key, binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint16(nil, ourValueVersion), uint64(r.Value.Lasted.Milliseconds()))
}

// Size implements machine.Record.
func (r *SilenceRecord) Size() int { return 16 + len(r.Group) + len(r.Member) }

func appendString(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
}

// DecodeRecord reads what Encode wrote, also by Kafka.
func DecodeRecord(key, value []byte) (machine.Record, error) {
	var r reader
	return r.decode(key, value)
}

func decodeGroup(key, value []byte) (machine.Record, error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return nil, fmt.Errorf("group key: %w", err)
	}
	r := &GroupRecord{Group: k.Group}
	if value == nil {
		return r, nil
	}
	if !plausibleGroup(value) {
		return nil, errors.New("group value claims more members than it has bytes for")
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, fmt.Errorf("group value: %w", err)
	}
	if err := checkMembers(v.Members); err != nil {
		return nil, err
	}
	for i := range v.Members {
		// They point into what was read of the log, all of which they would keep.
		m := &v.Members[i]
		m.Subscription, m.Assignment = bytes.Clone(m.Subscription), bytes.Clone(m.Assignment)
	}
	r.Value = &v
	return r, nil
}

// decodeOurs reads the records that Kafka does not have.
func decodeOurs(version uint16, key, value []byte) (machine.Record, error) {
	group, rest, ok := cutString(key)
	member := ""
	if ok && (version == departureKeyVersion || version == silenceKeyVersion) {
		member, rest, ok = cutString(rest)
	}
	if !ok || len(rest) > 0 {
		return nil, fmt.Errorf("key of version %d that ends too early or too late", version)
	}
	if value != nil && (len(value) < 2 || binary.BigEndian.Uint16(value) != ourValueVersion) {
		return nil, fmt.Errorf("%w: value of another version: %.2x", machine.ErrUnknownRecord, value)
	}
	switch {
	case version == departureKeyVersion && value == nil:
		return &DepartureRecord{Group: group, Member: member}, nil
	case version == departureKeyVersion && len(value) >= 6:
		return &DepartureRecord{group, member, &Departure{Generation: int32(binary.BigEndian.Uint32(value[2:]))}}, nil
	case version == silenceKeyVersion && value == nil:
		return &SilenceRecord{Group: group, Member: member}, nil
	case version == silenceKeyVersion && len(value) >= 10:
		return &SilenceRecord{group, member, &Silence{Lasted: lasted(binary.BigEndian.Uint64(value[2:]))}}, nil
	case version == rebalanceKeyVersion && value == nil:
		return &RebalanceRecord{Group: group}, nil
	case version == rebalanceKeyVersion && len(value) >= 8:
		v := &Rebalance{Generation: int32(binary.BigEndian.Uint32(value[2:])), Loads: max(int16(binary.BigEndian.Uint16(value[6:])), 0)}
		v.Lives = v.Loads // An older muster wrote no more.
		if len(value) >= 10 {
			v.Lives = max(int16(binary.BigEndian.Uint16(value[8:])), 0)
		}
		return &RebalanceRecord{group, v}, nil
	}
	return nil, fmt.Errorf("value of %d bytes for a key of version %d", len(value), version)
}

// lasted reads how long a silence has lasted: no longer than any session timeout.
func lasted(millis uint64) time.Duration {
	return time.Duration(min(millis, math.MaxInt32)) * time.Millisecond
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	text, rest, ok := cutText(b)
	return string(text), rest, ok
}

// checkMembers refuses members that could not be told apart.
func checkMembers(members []kmsg.GroupMetadataValueMember) error {
	ids, instances := map[string]bool{"": true}, map[string]bool{}
	for i := range members {
		id, instance := members[i].MemberID, members[i].InstanceID
		if ids[id] || instance != nil && instances[*instance] {
			return fmt.Errorf("group value has two members %q, or of the same instance", id)
		}
		ids[id] = true
		if instance != nil {
			instances[*instance] = true
		}
	}
	return nil
}
