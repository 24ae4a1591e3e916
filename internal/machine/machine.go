// Package machine is the contract between a pure core and the runtime that
// carries it: what goes into a step, what comes out, and what a log gives back.
//
// A core (package group is one) is a deterministic state machine over one
// partition of an internal topic, its shard. It is told everything: the time,
// sixteen random bytes, the metadata as of one moment, and one event. It
// returns data:
//
//	Input{Now, Random, Image, MaxBatch, Event} → Step → Effects{Batches, Sends, Tasks, Replies, Timers, Notes}
//
// The rules that every core may rely on, and that package pump keeps:
//
//   - Batches are appended in the order in which they were asked for, one at a
//     time. A batch marked Whole is one record batch; the others may be merged
//     with their neighbours, or split between records.
//   - Replies, sends and notes go out once the batches of their own step and of all
//     steps before it are durable. Timers and tasks begin at once: they are not seen
//     from outside.
//   - There is no rollback. If an append fails, the core is dropped with all that
//     waits, and a new one replays the log. Answers to sends, results of tasks
//     and timers of the old one never reach the new one.
//   - Replay is total: compaction may have removed any record that has a newer
//     one of the same key, so records come in any order and of unknown things.
//   - After the last Replay comes a Loaded event, before any other.
//
// This package has types only. It knows no core and no runtime.
package machine

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
)

// Core is a shard's state machine. A step's effects may be used until the next
// step, or ReleaseEffects; what they point to is never changed again.
type Core interface {
	Step(Input) Effects
	// Replay applies a batch that was read from the log. Its list of records, and
	// records that a Reader made, are used again when Replay returns.
	Replay(Stored)
}

// EffectsReleaser is a core that reuses the slices of its effects. ReleaseEffects is called
// when the effects of a step have been taken over, and clears them: a shard may be idle
// for hours after a request for everything.
type EffectsReleaser interface{ ReleaseEffects() }

// Weighed is a core that counts the bytes that it holds of what clients say of themselves.
type Weighed interface{ Weight() int64 }

// Definition is what a runtime knows of a core beyond its steps.
type Definition struct {
	// Name is what the core coordinates, for people: "groups".
	Name string
	// New returns a core that knows nothing yet.
	New func() Core
	// Decode reads a record; ErrUnknownRecord says that it may be skipped.
	Decode func(key, value []byte) (Record, error)
	// Reader, if there is one, makes a Decode for one load, which costs less: it may
	// use a record again once done was called, when Replay has returned.
	Reader func() (decode func(key, value []byte) (Record, error), done func())
	// Fail is the answer that tells a client of an error that is not about its
	// request but about the coordinator.
	Fail func(kmsg.Request, *kerr.Error) kmsg.Response
	// NeedsRandom says whether a request may need random bytes. Other events have
	// none.
	NeedsRandom func(kmsg.Request) bool
	// WhileLoading is the answer to a request that is not made to wait for a
	// load; nil for most, which are told that one is in progress.
	WhileLoading func(kmsg.Request) kmsg.Response
}

// ErrUnknownRecord says that a record is of a kind that the core does not know,
// and may be skipped: it is of a newer version, or of another program.
var ErrUnknownRecord = errors.New("unknown kind of record")

// Input is one event with what is needed to handle it.
type Input struct {
	Now    time.Time
	Random [16]byte // zero unless NeedsRandom
	// Image is the metadata as of this moment.
	Image *metadata.Image
	// MaxBatch is how many bytes of records fit into one record batch. What does
	// not fit a core refuses, for the request that asks for it alone, before it
	// changes anything.
	MaxBatch int
	// Others is how many bytes the cores of other shards hold of what clients say of
	// themselves, as far as they are Weighed.
	Others int64
	Event  Event
}

// Event is one of those below, or one that a core defines for itself, such as a
// change of its settings.
type Event interface{ IsEvent() }

// RequestID names a request until it is answered. It is never zero.
type RequestID uint64

// Request is a client's request. Byte slices in it may be used again when Step
// returns.
type Request struct {
	ID       RequestID
	ClientID string
	Host     string
	Asker    metadata.Asker
	Msg      kmsg.Request
}

// TimerFired says that the time of a timer has come.
type TimerFired struct {
	Key TimerKey
	Seq uint64
}

// TopicsChanged names topics that were created, changed or deleted. The image
// says what they are now.
type TopicsChanged struct {
	Topics []string
	// Gone are those of them that were deleted, also if there is another of the
	// same name now. That seldom happens, and may concern everybody.
	Gone []string
}

// Loaded says that all records have been replayed. Topics may have gone since
// they were written: the core holds what it has against the image.
type Loaded struct {
	// Epoch is the leader epoch of the shard's partition. It grows with each
	// leader, and also when a store has lost the end of the log.
	Epoch int32
	Run   Run
}

// Run says what is known of the server that has the log, since one that stops may come
// back without the last that it acknowledged.
type Run struct {
	// ID names the run of the server; empty if brokers need not agree about it. What a core
	// decides in one run must not be carried out in another, unless it has been loaded in that.
	ID string
	// Began is where the log ended when the run began: who wrote what is below may
	// have written more, elsewhere, that was lost.
	Began int64
	// Lost is where the log ended when its own end may have been lost; 0 if it never was.
	Lost int64
}

// Appended says that a batch with a tag is durable, and where its first record
// is.
type Appended struct {
	Tag    uint64
	Offset int64
}

// Sent is the outcome of a send: an answer, or why there is none.
type Sent struct {
	ID  uint64
	Msg kmsg.Response
	Err error
}

// TaskDone is the result of a task.
type TaskDone struct {
	ID     uint64
	Result any
}

// IsEvent implements Event.
func (Request) IsEvent() {}

// IsEvent implements Event.
func (TimerFired) IsEvent() {}

// IsEvent implements Event.
func (TopicsChanged) IsEvent() {}

// IsEvent implements Event.
func (Loaded) IsEvent() {}

// IsEvent implements Event.
func (Appended) IsEvent() {}

// IsEvent implements Event.
func (Sent) IsEvent() {}

// IsEvent implements Event.
func (TaskDone) IsEvent() {}

// Effects is what a step wants done.
type Effects struct {
	Batches []Batch // append in order
	Sends   []Send  // send once all batches so far are durable
	Tasks   []Task  // begin at once
	Replies []Reply // release once all batches so far are durable
	Timers  []Timer // arm or cancel at once
	Notes   []Note  // pass on once all batches so far are durable
}

// Note is what a core tells of what it did beyond replies, such as an entry of a journal.
// The runtime passes it on unread: what kinds there are is between a core and those who
// made the runtime for it.
type Note interface{ IsNote() }

// NotesOf returns the notes of one type, in their order.
func NotesOf[T Note](notes []Note) []T {
	var out []T
	for _, n := range notes {
		if t, ok := n.(T); ok {
			out = append(out, t)
		}
	}
	return out
}

// Reply answers a request.
type Reply struct {
	ID  RequestID
	Msg kmsg.Response
}

// Send is a request to another broker, or to this one. Its outcome comes back
// as Sent with the same id, which the core chooses.
type Send struct {
	ID  uint64
	To  int32 // node id
	Msg kmsg.Request
}

// Task is work that would hold the shard's lock for too long. Run must be pure
// and touch nothing that the core changes: it runs on another goroutine. Its
// result comes back as TaskDone with the same id, which the core chooses.
type Task struct {
	ID  uint64
	Run func() any
}

// TimerKey names a timer. There is one of each key at most.
type TimerKey struct {
	Kind   string // what it is for
	ID     string // of the group, or whatever the core has many of
	Member string // of the group, if it is about one
}

// Timer arms a timer, replacing the one of the same key, or cancels it.
type Timer struct {
	Key    TimerKey
	Seq    uint64 // to be given back when it fires, so that a stale one is ignored
	At     time.Time
	Cancel bool
}
