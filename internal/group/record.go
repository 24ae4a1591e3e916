package group

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Record is a record of __consumer_offsets: of a group, or of an offset that it
// committed. A nil value is a tombstone.
type Record struct {
	Group string
	// Topic is empty in a group's record.
	Topic     string
	Partition int32
	Meta      *kmsg.GroupMetadataValue
	Offset    *offset
}

// offset is a committed offset.
type offset struct {
	at       int64
	epoch    int32
	metadata string
	commit   int64 // when, in milliseconds
	expire   int64 // when it may go, in milliseconds; -1 by the broker's retention
}

// Versions of keys and values that we write.
const (
	offsetKeyVersion   = 1
	groupKeyVersion    = 2
	groupValueVersion  = 3
	offsetValueVersion = 3
	// offsetValueExpire is the only version with an expiry of its own.
	offsetValueExpire = 1
)

// ErrUnknownRecord says that a record is of a kind that we do not know, and may
// be skipped.
var ErrUnknownRecord = errors.New("unknown kind of record")

// Encode returns the record's key and value; the value of a tombstone is nil.
func (r Record) Encode() (key, value []byte) {
	if r.Topic != "" {
		k := kmsg.OffsetCommitKey{Version: offsetKeyVersion, Group: r.Group, Topic: r.Topic, Partition: r.Partition}
		key = k.AppendTo(make([]byte, 0, 10+len(r.Group)+len(r.Topic)))
		if r.Offset == nil {
			return key, nil
		}
		v := kmsg.NewOffsetCommitValue()
		v.Version = offsetValueVersion
		if r.Offset.expire != -1 {
			v.Version = offsetValueExpire
		}
		v.Offset, v.LeaderEpoch, v.Metadata = r.Offset.at, r.Offset.epoch, r.Offset.metadata
		v.CommitTimestamp, v.ExpireTimestamp = r.Offset.commit, r.Offset.expire
		return key, v.AppendTo(make([]byte, 0, 32+len(v.Metadata)))
	}
	k := kmsg.GroupMetadataKey{Version: groupKeyVersion, Group: r.Group}
	if r.Meta == nil {
		return k.AppendTo(nil), nil
	}
	return k.AppendTo(nil), r.Meta.AppendTo(nil)
}

// DecodeRecord reads what Encode wrote, also by Kafka.
func DecodeRecord(key, value []byte) (Record, error) {
	if len(key) < 2 {
		return Record{}, fmt.Errorf("key of %d bytes", len(key))
	}
	switch version := int16(key[0])<<8 | int16(key[1]); version {
	case 0, offsetKeyVersion:
		return decodeOffset(key, value)
	case groupKeyVersion:
		return decodeGroup(key, value)
	default:
		return Record{}, fmt.Errorf("%w: key version %d", ErrUnknownRecord, version)
	}
}

func decodeOffset(key, value []byte) (Record, error) {
	var k kmsg.OffsetCommitKey
	if err := k.ReadFrom(key); err != nil {
		return Record{}, fmt.Errorf("offset key: %w", err)
	}
	if k.Topic == "" {
		return Record{}, errors.New("offset key without topic")
	}
	r := Record{Group: k.Group, Topic: k.Topic, Partition: k.Partition}
	if value == nil {
		return r, nil
	}
	if len(value) < 2 || value[0] != 0 || value[1] > offsetValueVersion {
		return Record{}, fmt.Errorf("offset value of another version: %.2x", value)
	}
	v := kmsg.NewOffsetCommitValue()
	if err := v.ReadFrom(value); err != nil {
		return Record{}, fmt.Errorf("offset value: %w", err)
	}
	r.Offset = &offset{at: v.Offset, epoch: -1, metadata: v.Metadata, commit: v.CommitTimestamp, expire: -1}
	if v.Version >= 3 {
		r.Offset.epoch = v.LeaderEpoch
	}
	if v.Version == offsetValueExpire {
		r.Offset.expire = v.ExpireTimestamp
	}
	return r, nil
}

func decodeGroup(key, value []byte) (Record, error) {
	var k kmsg.GroupMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return Record{}, fmt.Errorf("group key: %w", err)
	}
	r := Record{Group: k.Group}
	if value == nil {
		return r, nil
	}
	if !plausibleGroup(value) {
		return Record{}, errors.New("group value claims more members than it has bytes for")
	}
	v := kmsg.NewGroupMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return Record{}, fmt.Errorf("group value: %w", err)
	}
	if err := checkMembers(v.Members); err != nil {
		return Record{}, err
	}
	for i := range v.Members {
		// They point into what was read of the log, all of which they would keep.
		m := &v.Members[i]
		m.Subscription, m.Assignment = bytes.Clone(m.Subscription), bytes.Clone(m.Assignment)
	}
	r.Meta = &v
	return r, nil
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

// emptyGroup is the record of a group that nobody has joined yet.
func emptyGroup(id string) Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version, v.CurrentStateTimestamp = groupValueVersion, -1
	return Record{Group: id, Meta: &v}
}

// record returns the record of the group as it is now.
func (g *group) record() Record {
	v := kmsg.NewGroupMetadataValue()
	v.Version = groupValueVersion
	v.ProtocolType, v.Generation = g.protocolType, g.generation
	v.CurrentStateTimestamp = g.since.UnixMilli()
	if g.members.len() > 0 {
		protocol, leader := g.protocol, g.leader
		v.Protocol, v.Leader = &protocol, &leader
		v.Members = make([]kmsg.GroupMetadataValueMember, 0, g.members.len())
	}
	for m := g.members.first; m != nil; m = m.next {
		e := kmsg.NewGroupMetadataValueMember()
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = m.id, m.instance, m.clientID, kafkaHost(m.host)
		e.RebalanceTimeoutMillis = int32(m.rebalance / time.Millisecond)
		e.SessionTimeoutMillis = int32(m.session / time.Millisecond)
		e.Subscription, e.Assignment = m.metadata(g.protocol), m.assigned
		v.Members = append(v.Members, e)
	}
	return Record{Group: g.id, Meta: &v}
}
