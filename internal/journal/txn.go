package journal

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Txn is what happened to a transactional id, or to a transaction that no one knows
// the id of, and who did it: an entry of __transaction_journal. What producers do by
// themselves, commit and abort, is not told.
type Txn struct {
	// Key is what the record is keyed by: the transactional id, or the producer id if
	// no one knows one. In the JSON an id may be cut short.
	Key  string    `json:"-"`
	Time time.Time `json:"time"`
	ID   string    `json:"transactionalId,omitempty"`
	Kind TxnKind   `json:"kind"`
	// Was is the producer that it happened to, Now the one that there is since.
	Was Producer  `json:"was"`
	Now *Producer `json:"now,omitempty"`
	// Holder is who had the id, or has it if someone else was refused; By who did it,
	// or was refused. Both are left out if no one knows.
	Holder  *Holder `json:"holder,omitempty"`
	By      *Holder `json:"by,omitempty"`
	Request string  `json:"request,omitempty"` // that was refused
	Broker  *int32  `json:"broker,omitempty"`  // that resolved it
	// Open is for how long the transaction was open, if one was.
	Open time.Duration `json:"openNs,omitempty"`
	Idle time.Duration `json:"idleNs,omitempty"` // for how long nobody used the id
	// Partitions are the first of those that the transaction held.
	Partitions []string `json:"partitions,omitempty"`
	PartitionN int      `json:"partitionCount,omitempty"`
	Committed  bool     `json:"committed,omitempty"` // by the operator who wrote its end
	// LeftOut is how many entries before this one were left out, lest someone who tries
	// again and again fill the journal.
	LeftOut int `json:"leftOut,omitempty"`
}

// Producer is a producer id with its epoch.
type Producer struct {
	ID    int64 `json:"id"`
	Epoch int16 `json:"epoch"`
}

// TxnKind says what an entry tells.
type TxnKind string

// The kinds of entries.
const (
	TxnFenced   TxnKind = "fenced"             // another instance took the id
	TxnRefused  TxnKind = "refused"            // an instance came whose place another has, or whose time was up
	TxnTimedOut TxnKind = "timed-out"          // it took longer than its client allowed
	TxnOperator TxnKind = "fenced-by-operator" // somebody wanted it ended
	TxnResolved TxnKind = "orphan-resolved"    // no coordinator knew it, so its partition's leader aborted it
	TxnMarked   TxnKind = "marked-by-operator" // somebody wrote the end to a partition, past the coordinator
	TxnLost     TxnKind = "store-restarted"    // Redis restarted or failed over while it was open, and may have lost a part of it
	TxnExpired  TxnKind = "id-expired"         // no one used the id for transactional.id.expiration.ms
)

// operatorTag is a tagged field without content in InitProducerId, by which muster's own
// command says that it means to end what another has. For Kafka the request of an
// operator looks like that of a producer which starts.
const operatorTag = 10_003

// MarkOperator says in the tagged fields of a request that it is an operator's.
func MarkOperator(tags *kmsg.Tags) { tags.Set(operatorTag, nil) }

// IsOperator says whether a request is marked. It looks at no more than that the field
// is there: what lies in the frame may be gone when a request has waited.
func IsOperator(tags *kmsg.Tags) bool {
	found := false
	tags.Each(func(tag uint32, _ []byte) { found = found || tag == operatorTag })
	return found
}
