package machine

import (
	"encoding/binary"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Self stands for this broker as the receiver of a send, whichever node id it has.
const Self int32 = -2

// ShareCoordinator stands for the brokers that coordinate the share partitions that a send is
// about, whichever they are.
const ShareCoordinator int32 = -3

// TxnStart is the start of a transaction, in milliseconds, as brokers tell it to
// each other in a tagged field of ours: in the coordinator's answer about a
// partition, and in markers. Below version 2 of transactions (KIP-890) two
// transactions of one producer may have the same epoch, and only their start tells
// them apart.
type TxnStart int64

// NoTxnStart is the start of a transaction that no one told.
const NoTxnStart TxnStart = -1

// startTag is the number of the tagged field. Kafka's own count up from zero.
const startTag = 10_000

// Set writes the start into the tagged fields of a message, in place of any that
// is there.
func (s TxnStart) Set(tags *kmsg.Tags) {
	if s == NoTxnStart {
		return
	}
	tags.Set(startTag, binary.BigEndian.AppendUint64(nil, uint64(s)))
}

// TxnStartOf reads what Set wrote; NoTxnStart if there is nothing.
func TxnStartOf(tags *kmsg.Tags) TxnStart {
	out := NoTxnStart
	tags.Each(func(tag uint32, b []byte) {
		if tag == startTag && len(b) == 8 {
			out = TxnStart(binary.BigEndian.Uint64(b))
		}
	})
	return out
}

// TopicID tells a topic from others of the same name, before and after. A broker that
// asks about a partition for a transaction sends it along.
type TopicID [16]byte

// topicTag is the number of the tagged field.
const topicTag = 10_005

// Set writes the id into the tagged fields of a message.
func (id TopicID) Set(tags *kmsg.Tags) { tags.Set(topicTag, id[:]) }

// TopicIDOf reads what Set wrote; zero if there is nothing.
func TopicIDOf(tags *kmsg.Tags) (id TopicID) {
	tags.Each(func(tag uint32, b []byte) {
		if tag == topicTag && len(b) == len(id) {
			copy(id[:], b)
		}
	})
	return id
}

// StoreRun is the run of the store's server in which a coordinator decided something, as
// brokers tell it to each other: in its answer about a partition, and in markers.
type StoreRun string

// runTag is the number of the tagged field.
const runTag = 10_006

// maxRun is how long the name of a run may be.
const maxRun = 64

// Set writes the run into the tagged fields of a message, if there is one.
func (r StoreRun) Set(tags *kmsg.Tags) {
	if r != "" {
		tags.Set(runTag, []byte(r))
	}
}

// StoreRunOf reads what Set wrote; empty if there is nothing.
func StoreRunOf(tags *kmsg.Tags) (r StoreRun) {
	tags.Each(func(tag uint32, b []byte) {
		if tag == runTag && len(b) <= maxRun {
			r = StoreRun(b)
		}
	})
	return r
}

// Differs says whether two runs are known, and are not the same.
func (r StoreRun) Differs(other StoreRun) bool { return r != "" && other != "" && r != other }
