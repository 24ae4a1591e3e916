package group

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// decodeConsumer reads a record of the consumer protocol. What two records of one
// key could mean, or a partition that is named twice, is for the replay to say.
func decodeConsumer(version uint16, key, value []byte) (machine.Record, error) {
	group, second, err := cutConsumerKey(version, key)
	if err != nil {
		return nil, err
	}
	if version == consumerTopicsKeyVersion {
		return &ConsumerTopicsRecord{group, value != nil}, nil
	}
	if len(value) >= 2 && binary.BigEndian.Uint16(value) != consumerValueVersion {
		return nil, fmt.Errorf("%w: value of another version: %.2x", machine.ErrUnknownRecord, value)
	}
	var r machine.Record
	f := &flexible{b: value}
	f.take(2)
	switch version {
	case consumerEpochKeyVersion:
		r = &ConsumerEpochRecord{group, decodeValue(value, f, decodeConsumerEpoch)}
	case consumerMemberKeyVersion:
		r = &ConsumerMemberRecord{group, second, decodeValue(value, f, decodeConsumerMember)}
	case consumerTargetEpochKeyVersion:
		r = &ConsumerTargetEpochRecord{group, decodeValue(value, f, decodeConsumerTargetEpoch)}
	case consumerTargetKeyVersion:
		r = &ConsumerTargetRecord{group, second, decodeValue(value, f, decodeConsumerTarget)}
	case consumerCurrentKeyVersion:
		r = &ConsumerCurrentRecord{group, second, decodeValue(value, f, decodeConsumerCurrent)}
	case consumerRegexKeyVersion:
		r = &ConsumerRegexRecord{group, second, decodeValue(value, f, decodeConsumerRegex)}
	}
	if value == nil {
		return r, nil
	}
	if err := f.end(); err != nil {
		return nil, fmt.Errorf("value of a key of version %d: %w", version, err)
	}
	return r, nil
}

// cutConsumerKey reads a key: the group, and a second name if this kind has one.
func cutConsumerKey(version uint16, key []byte) (group, second string, err error) {
	group, rest, ok := cutString(key)
	switch version {
	case consumerMemberKeyVersion, consumerTargetKeyVersion, consumerCurrentKeyVersion, consumerRegexKeyVersion:
		if ok {
			second, rest, ok = cutString(rest)
		}
	}
	if !ok || len(rest) > 0 || len(group) > maxText || len(second) > maxText {
		return "", "", fmt.Errorf("key of version %d that ends too early or too late", version)
	}
	return group, second, nil
}

// decodeValue reads a value, unless it is a tombstone.
func decodeValue[T any](value []byte, f *flexible, read func(*flexible) T) *T {
	if value == nil {
		return nil
	}
	v := read(f)
	return &v
}

func decodeConsumerEpoch(f *flexible) (v ConsumerEpoch) {
	v.Epoch = f.int32()
	f.tagged(func(f *flexible) { v.Hash = f.int64() })
	return v
}

func decodeConsumerMember(f *flexible) (v ConsumerMember) {
	v.Instance, v.Rack = f.nullable(), f.nullable()
	v.ClientID, v.Host = f.text(), f.text()
	v.Topics, v.Regex = f.texts(), f.nullable()
	v.RebalanceTimeoutMillis, v.Assignor = f.int32(), f.nullable()
	v.Classic = &ClassicMember{} // See appendTagged.
	f.tagged(func(f *flexible) { v.Classic = decodeClassicMember(f) })
	return v
}

func decodeClassicMember(f *flexible) *ClassicMember {
	if f.uvarint() == 0 {
		return nil
	}
	c := &ClassicMember{SessionTimeoutMillis: f.int32()}
	if n := f.elements(3); n > 0 {
		c.Protocols = make([]ClassicProtocol, n)
	}
	for i := range c.Protocols {
		// A copy, or else all that was read of the log would be kept.
		c.Protocols[i] = ClassicProtocol{Name: f.text(), Metadata: bytes.Clone(f.bytes())}
		f.tagged(nil)
	}
	f.tagged(nil)
	return c
}

func decodeConsumerTargetEpoch(f *flexible) (v ConsumerTargetEpoch) {
	v.Epoch = f.int32()
	f.tagged(func(f *flexible) { v.Timestamp = f.int64() })
	return v
}

// minTopic is how many bytes a topic's id, a list of partitions and the tagged
// fields take at least.
const minTopic = len(metadata.TopicID{}) + 2

func decodeConsumerTarget(f *flexible) (v ConsumerTarget) {
	if n := f.elements(minTopic); n > 0 {
		v.Assigned = make([]TopicPartitions, n)
	}
	for i := range v.Assigned {
		t := &v.Assigned[i]
		copy(t.Topic[:], f.take(len(t.Topic)))
		t.Partitions = f.int32s(f.elements(4))
		f.tagged(nil)
	}
	f.tagged(nil)
	return v
}

func decodeConsumerCurrent(f *flexible) (v ConsumerCurrent) {
	v.Epoch, v.Previous, v.State = f.int32(), f.int32(), f.int8()
	v.Assigned, v.Pending = decodeOwned(f), decodeOwned(f)
	f.tagged(nil)
	return v
}

func decodeOwned(f *flexible) (list []OwnedPartitions) {
	if n := f.elements(minTopic); n > 0 {
		list = make([]OwnedPartitions, n)
	}
	for i := range list {
		t := &list[i]
		copy(t.Topic[:], f.take(len(t.Topic)))
		t.Partitions = f.int32s(f.elements(4))
		f.tagged(func(f *flexible) { t.Epochs = f.int32s(f.count(4)) })
		if len(t.Epochs) != len(t.Partitions) {
			t.Epochs = nil
		}
	}
	return list
}

func decodeConsumerRegex(f *flexible) (v ConsumerRegex) {
	v.Topics, v.Version, v.Timestamp = f.texts(), f.int64(), f.int64()
	f.tagged(nil)
	return v
}
