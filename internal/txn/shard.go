// Package txn is the transaction coordinator as a pure state machine.
//
// A Shard holds the transactional ids of one partition of __transaction_state. It
// is told everything: Step takes an input and returns effects, which the runtime
// in package coordinator carries out. There is no clock, goroutine, channel, lock
// or source of randomness here.
//
//	Empty ─ add → Ongoing ─ EndTxn, timeout, fence → Prepare* ─ all markers → Complete*
//	  ↑                                                                           │
//	  └───────────────────────────── InitProducerId ──────────────────────────────┘
//
// Hard state is what the records say, and changes only in apply, which Step and
// Replay share. Soft state (markers under way, requests that wait, producer ids
// in stock) dies with the process: a load sends all markers of a transaction that
// is in Prepare* again, under the coordinator epoch of the load.
//
// Kafka calls a transition whose record is not durable yet pending, and answers
// CONCURRENT_TRANSACTIONS meanwhile. Here the runtime holds back what a step lets
// out until its records are durable, so a step may build upon those before it; if
// an append fails the shard is loaded again, and no one has seen what was lost.
// What is left of pending is Prepare*: requests wait there for a short while.
//
// The rules are Kafka's with KIP-360, KIP-447, KIP-664 and KIP-890; each file names
// them where they are odd. A request is of version 2 of transactions (KIP-890 part
// 2, "TV2") by its own version, and of version 0 or 1 beside it for ever.
package txn

import (
	"math"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/metadata"
)

// Definition describes the core to the runtime. config returns the current settings.
func Definition(config func() Config) machine.Definition {
	return machine.Definition{
		Name: "transactions", New: func() machine.Core { return NewShard(config()) }, Decode: DecodeRecord,
		Fail: failed, NeedsRandom: func(kmsg.Request) bool { return false },
	}
}

// Configured changes the settings.
type Configured struct{ Config Config }

// IsEvent implements machine.Event.
func (Configured) IsEvent() {}

// The timers. Those of markers and of requests that wait belong to a
// transactional id.
const (
	TimerSweep   = "sweep"   // transactions that take too long are aborted
	TimerExpire  = "expire"  // transactional ids that no one uses go
	TimerMarkers = "markers" // markers are sent again
	TimerWait    = "wait"    // requests have waited for the end of a transaction for too long
	TimerIDs     = "ids"     // producer ids are asked for again, or have been waited for for too long
)

// Config is the settings of the coordinator.
type Config struct {
	MaxTimeout     time.Duration // transaction.max.timeout.ms
	SweepInterval  time.Duration // transaction.abort.timed.out.transaction.cleanup.interval.ms
	IDExpiration   time.Duration // transactional.id.expiration.ms
	ExpireInterval time.Duration // transaction.remove.expired.transaction.cleanup.interval.ms
}

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{MaxTimeout: 15 * time.Minute, SweepInterval: 10 * time.Second, IDExpiration: 7 * 24 * time.Hour, ExpireInterval: time.Hour}
}

// Shard is the state of one partition of __transaction_state.
type Shard struct {
	cfg     Config
	epoch   int32       // coordinator epoch: the leader epoch that it was loaded under
	run     machine.Run // of the store's server, that it was loaded in
	txns    map[string]*txn
	ongoing map[string]struct{} // those that may time out

	seq       uint64 // of the last timer armed
	sweepSeq  uint64
	expireSeq uint64
	lastSend  uint64
	sends     map[uint64]*markerSend // under way
	ids       producerIDs
	step      step // the one under way, here to be used again
}

// NewShard returns a shard without transactions.
func NewShard(cfg Config) *Shard {
	return &Shard{cfg: cfg, txns: map[string]*txn{}, ongoing: map[string]struct{}{}, sends: map[uint64]*markerSend{}}
}

// step is one call of Step.
type step struct {
	*Shard
	now      time.Time
	image    *metadata.Image
	maxBatch int
	out      machine.Effects
	records  []machine.Record // what is to be appended
}

// Step handles one input.
func (s *Shard) Step(in machine.Input) machine.Effects {
	x := &s.step
	old := x.out
	*x = step{
		Shard: s, now: in.Now, image: in.Image, maxBatch: in.MaxBatch, records: again(x.records),
		out: machine.Effects{Batches: again(old.Batches), Sends: again(old.Sends), Replies: again(old.Replies), Timers: again(old.Timers), Notes: again(old.Notes)},
	}
	switch e := in.Event.(type) {
	case machine.Request:
		x.request(&e)
	case machine.TimerFired:
		x.timerFired(e)
	case machine.Sent:
		x.sent(e)
	case Configured:
		x.cfg = e.Config
	case machine.Loaded:
		x.loaded(e)
	}
	if len(x.records) > 0 {
		x.out.Batches = append(x.out.Batches, machine.Batch{Records: x.records})
	}
	return x.out
}

// ReleaseEffects implements machine.EffectsReleaser: what the last step was about is not kept until
// the next one.
func (s *Shard) ReleaseEffects() {
	x := &s.step
	x.image = nil
	clear(x.records)
	clear(x.out.Batches)
	clear(x.out.Sends)
	clear(x.out.Replies)
	clear(x.out.Timers)
	clear(x.out.Notes)
}

// keep is for how many things room is kept from step to step. What more a large
// one needs, such as a load, is given back.
const keep = 16

// again empties a list that is used again.
func again[T any](list []T) []T {
	if cap(list) > keep {
		return nil
	}
	return list[:0]
}

// request handles a request. Those that may have to wait are made questions.
func (x *step) request(r *machine.Request) {
	q := question{request: r.ID, clientID: r.ClientID, host: r.Host, msg: r.Msg}
	switch m := r.Msg.(type) {
	case *kmsg.AddPartitionsToTxnRequest:
		x.partitionsRequest(q, m)
	case *kmsg.DescribeTransactionsRequest:
		x.describe(r.ID, m)
	case *kmsg.ListTransactionsRequest:
		x.list(r.ID, m)
	default:
		x.ask(&q)
	}
}

// ask handles a question, for the first time or after it has waited.
func (x *step) ask(q *question) {
	switch m := q.msg.(type) {
	case *kmsg.InitProducerIDRequest:
		x.init(q, m)
	case *kmsg.AddPartitionsToTxnRequest:
		x.addPartitions(q, m)
	case *kmsg.AddOffsetsToTxnRequest:
		x.addOffsets(q, m)
	case *kmsg.EndTxnRequest:
		x.endTxn(q, m)
	default:
		panic("a request that no transaction handles: " + kmsg.NameForKey(q.msg.Key()))
	}
}

func (x *step) reply(id machine.RequestID, msg kmsg.Response) {
	x.out.Replies = append(x.out.Replies, machine.Reply{ID: id, Msg: msg})
}

// write makes a record part of the hard state and has it appended.
func (x *step) write(id string, v *Value) {
	r := &Record{TransactionalID: id, Value: v}
	x.records = append(x.records, r)
	x.apply(r, math.MaxInt64)
}

// fits says whether a record can be stored. What cannot is refused before
// anything is changed, for the sake of everyone else in the shard.
func (x *step) fits(id string, v *Value) bool {
	r := Record{TransactionalID: id, Value: v}
	return x.maxBatch <= 0 || machine.RecordOverhead+r.Size() <= x.maxBatch
}

// send has a request sent and returns the number of the send.
func (x *step) send(to int32, msg kmsg.Request) uint64 {
	x.lastSend++
	x.out.Sends = append(x.out.Sends, machine.Send{ID: x.lastSend, To: to, Msg: msg})
	return x.lastSend
}

// arm arms a timer and returns its sequence.
func (x *step) arm(key machine.TimerKey, at time.Time) uint64 {
	x.seq++
	x.out.Timers = append(x.out.Timers, machine.Timer{Key: key, Seq: x.seq, At: at})
	return x.seq
}

func (x *step) cancel(key machine.TimerKey) {
	x.out.Timers = append(x.out.Timers, machine.Timer{Key: key, Cancel: true})
}

// timerFired handles a timer, unless it has been replaced or cancelled since.
func (x *step) timerFired(e machine.TimerFired) {
	switch t := x.txns[e.Key.ID]; {
	case e.Key.Kind == TimerSweep && e.Seq == x.sweepSeq:
		x.sweep()
	case e.Key.Kind == TimerExpire && e.Seq == x.expireSeq:
		x.expire()
	case e.Key.Kind == TimerIDs && e.Seq == x.ids.timer:
		x.idsFired()
	case t == nil || t.ending == nil:
	case e.Key.Kind == TimerMarkers && e.Seq == t.ending.timer:
		x.dispatch(t)
	case e.Key.Kind == TimerWait && e.Seq == t.ending.waitTimer:
		x.waitFired(t)
	}
}

// sent handles the outcome of a send. One that is not known is a repeat, or has
// been given up.
func (x *step) sent(e machine.Sent) {
	if e.ID != 0 && e.ID == x.ids.asked {
		x.allocated(e)
		return
	}
	if s := x.sends[e.ID]; s != nil {
		delete(x.sends, e.ID)
		x.marked(s, e)
	}
}
