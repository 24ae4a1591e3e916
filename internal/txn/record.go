package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// Record is a record of __transaction_state, in Kafka's schema. A nil value is a
// tombstone.
type Record struct {
	TransactionalID string
	Value           *Value
}

const (
	keyVersion   = 0
	valueVersion = 1 // The first with tagged fields. Version 0 is read.

	// lastTag is the number of the tagged field for Value.Last, which Kafka's
	// schema of that version does not have. Kafka's own count up from zero.
	lastTag = 10_000

	// maxID is the longest transactional id that a key has room for.
	maxID = 1<<15 - 1
)

// Encode implements machine.Record.
func (r *Record) Encode() (key, value []byte) {
	k := kmsg.TxnMetadataKey{Version: keyVersion, TransactionalID: r.TransactionalID}
	key = k.AppendTo(make([]byte, 0, 4+len(r.TransactionalID)))
	if r.Value == nil {
		return key, nil
	}
	v := kmsg.NewTxnMetadataValue()
	v.Version = valueVersion
	v.ProducerID, v.ProducerEpoch, v.TimeoutMillis = r.Value.Producer.id, r.Value.Producer.epoch, r.Value.Timeout
	v.State = kmsg.TransactionState(r.Value.State)
	if r.Value.State != Empty {
		v.Topics = make([]kmsg.TxnMetadataValueTopic, len(r.Value.Topics))
	}
	for i, t := range r.Value.Topics {
		v.Topics[i].Topic, v.Topics[i].Partitions = t.name, t.partitions
	}
	v.LastUpdateTimestamp, v.StartTimestamp = r.Value.Updated, r.Value.Start
	v.PreviousProducerID, v.ClientTransactionVersion = r.Value.Previous, r.Value.Version
	v.NextProducerID, v.NextProducerEpoch = r.Value.Next.id, r.Value.Next.epoch
	if r.Value.Last != none {
		v.UnknownTags.Set(lastTag, binary.BigEndian.AppendUint16(nil, uint16(r.Value.Last)))
	}
	return key, v.AppendTo(make([]byte, 0, r.Size()))
}

// Size implements machine.Record. It counts all tagged fields, so that a
// transaction that was begun can also be ended.
func (r *Record) Size() int {
	n := 4 + len(r.TransactionalID)
	if r.Value != nil {
		n += 96
		for _, t := range r.Value.Topics {
			n += 11 + len(t.name) + 4*len(t.partitions)
		}
	}
	return n
}

// DecodeRecord reads what Encode wrote, also by Kafka.
func DecodeRecord(key, value []byte) (machine.Record, error) {
	if len(key) < 2 {
		return nil, fmt.Errorf("key of %d bytes", len(key))
	}
	if version := binary.BigEndian.Uint16(key); version != keyVersion {
		return nil, fmt.Errorf("%w: key version %d", machine.ErrUnknownRecord, version)
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return nil, fmt.Errorf("transaction key: %w", err)
	}
	r := &Record{TransactionalID: k.TransactionalID}
	if value == nil {
		return r, nil
	}
	if len(value) < 2 {
		return nil, fmt.Errorf("transaction value of %d bytes", len(value))
	}
	if version := binary.BigEndian.Uint16(value); version > valueVersion {
		return nil, fmt.Errorf("%w: value version %d", machine.ErrUnknownRecord, version)
	}
	if !isWellFormed(value) {
		return nil, errors.New("transaction value claims more fields than it has bytes for")
	}
	v := kmsg.NewTxnMetadataValue()
	if err := v.ReadFrom(value); err != nil {
		return nil, fmt.Errorf("transaction value: %w", err)
	}
	var err error
	r.Value, err = valueOf(&v)
	return r, err
}

// valueOf takes over what a record says, as far as it makes sense.
func valueOf(v *kmsg.TxnMetadataValue) (*Value, error) {
	out := &Value{
		Producer: pair{v.ProducerID, v.ProducerEpoch}, Timeout: v.TimeoutMillis, State: State(v.State),
		Updated: v.LastUpdateTimestamp, Start: v.StartTimestamp,
		Previous: max(v.PreviousProducerID, none), Next: noPair, Last: none, Version: v.ClientTransactionVersion,
	}
	if out.State < Empty || out.State >= endOfStates {
		return nil, fmt.Errorf("transaction value with state %d", v.State)
	}
	if out.Producer.id < 0 || out.Producer.epoch < 0 {
		return nil, fmt.Errorf("transaction value of producer %d, epoch %d", v.ProducerID, v.ProducerEpoch)
	}
	if out.State.isPrepare() && v.NextProducerID >= 0 {
		out.Next = pair{v.NextProducerID, max(v.NextProducerEpoch, 0)} // Older records have no next epoch.
	}
	if out.State == Ongoing || out.State.isPrepare() {
		asked := make([]topic, len(v.Topics))
		for i, t := range v.Topics {
			asked[i] = topic{t.Topic, t.Partitions}
		}
		out.Topics = union(nil, asked)
	}
	v.UnknownTags.Each(func(tag uint32, b []byte) {
		if tag == lastTag && len(b) == 2 {
			out.Last = max(int16(binary.BigEndian.Uint16(b)), none)
		}
	})
	return out, nil
}
