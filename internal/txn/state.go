package txn

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// State is the state of a transaction, with the number that records have.
type State int8

// The states.
const (
	Empty State = iota
	Ongoing
	PrepareCommit
	PrepareAbort
	CompleteCommit
	CompleteAbort
	endOfStates
)

// String returns Kafka's name of the state.
func (s State) String() string { return kmsg.TransactionState(s).String() }

func (s State) isPrepare() bool  { return s == PrepareCommit || s == PrepareAbort }
func (s State) isComplete() bool { return s == CompleteCommit || s == CompleteAbort }

// prepare and complete are the states in which a transaction ends.
func prepare(commit bool) State {
	if commit {
		return PrepareCommit
	}
	return PrepareAbort
}

func complete(commit bool) State {
	if commit {
		return CompleteCommit
	}
	return CompleteAbort
}

// lastEpoch is the highest epoch that a client is ever given. The one above it is
// kept for fencing; after it the producer gets another id.
const lastEpoch = 1<<15 - 2

// none stands for a producer id, an epoch or a start that there is not.
const none = -1

// tv2 is the version of transactions in which every end raises the epoch.
const tv2 = 2

// pair is a producer: what a client is known by.
type pair struct {
	id    int64
	epoch int16
}

var noPair = pair{none, none}

// Value is what a record says of a transactional id. It never changes once it has
// been written.
type Value struct {
	Producer pair
	Timeout  int32 // milliseconds
	State    State
	Topics   []topic // in order; of a transaction that is not over
	Updated  int64   // milliseconds
	Start    int64   // milliseconds, none if there was no transaction since InitProducerId
	// Previous is the producer id before this one, if nothing has raised the epoch
	// since it was replaced.
	Previous int64
	// Next is the producer that replaces this one at the end of the transaction,
	// noPair for none.
	Next pair
	// Last is the epoch before this one if a client that still has it may ask for
	// this one again (KIP-360), none otherwise. It is Previous's if there is one.
	Last int16
	// Version is the version of transactions of the client: 2, or 0 for older ones.
	Version int16
}

// txn is a transactional id.
type txn struct {
	id   string
	hard *Value

	at int64 // where the record is that says so

	// Soft state.
	ending         *ending // nil unless the state is Prepare*
	clientID, host string  // of the last InitProducerId; empty after a load
	operators      bool    // those are an operator's, who does nothing with it
	taker          *taker  // who has fenced the holder and will be given the id
	notes          *notes  // of the journal; nil if it tells of nothing
}

// Holder returns who asked for the producer of a transactional id last, as far as
// is known since the load.
func (s *Shard) Holder(id string) (clientID, host string) {
	if t := s.txns[id]; t != nil {
		return t.clientID, t.host
	}
	return "", ""
}

// told is the producer that a client is told of: the next one, if one is about to
// replace this.
func (v *Value) told() pair {
	if v.Next != noPair {
		return v.Next
	}
	return v.Producer
}

// bumped returns the value with an epoch that fences the producer. Next must be
// given if the epoch is used up.
func (v *Value) bumped(next pair) *Value {
	n := *v
	n.Previous, n.Next = none, next
	if n.Producer.epoch <= lastEpoch {
		n.Producer.epoch++
	}
	return &n
}

// isUsedUp says that the next producer needs another id.
func (v *Value) isUsedUp() bool { return v.Producer.epoch >= lastEpoch }

// completed returns the value once all markers are written.
func (v *Value) completed(now time.Time) *Value {
	n := *v
	n.State, n.Topics, n.Updated = complete(v.State == PrepareCommit), nil, now.UnixMilli()
	if n.Next != noPair {
		n.Previous, n.Producer, n.Next = n.Producer.id, n.Next, noPair
	}
	return &n
}

// question is a request about one transactional id, or the part of a request that
// is about one. It may wait, as data.
type question struct {
	request        machine.RequestID
	clientID, host string
	msg            kmsg.Request
	batch          *batch    // of AddPartitionsToTxn from version 4 on
	index          int       // of the transaction in it
	endBy          time.Time // when it has waited for ends for too long; zero if it never did
	idBy           time.Time // and for producer ids
}

func (s *Shard) sortedIDs() []string { return slices.Sorted(maps.Keys(s.txns)) }
