// Package store defines what a storage engine is: a set of partition logs.
//
// Everything durable in muster is a partition log (append a record batch, read
// from an offset, trim). This package owns the contract and its errors;
// storetest is the suite that every engine passes; mem, disk and redis are the
// engines. An engine never decides about high watermarks, idempotence or
// visibility: that is the partition's business.
//
// What the contract leaves to the engine:
//
//   - Offsets. Append returns the offsets the engine gave to a batch. They grow
//     from batch to batch, but there may be gaps between two batches, so no one
//     may compute an offset by counting records over several batches.
//   - The form of the bytes. Read returns whole record batches (format v2) that
//     hold the records which were appended. An engine may return the very bytes
//     it was given (disk does) or build batches anew.
//   - Producer state. An engine that keeps it atomically with each append
//     returns all of it from Producers; any other returns its last snapshot and
//     the offset from which batches must be read to complete it.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors that every engine returns, possibly wrapped with what was attempted.
var (
	// ErrOffsetOutOfRange says that an offset is below the log start offset or
	// above the log end offset.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrFenced says that a newer leader epoch has opened the log.
	ErrFenced = errors.New("log is owned by a newer leader epoch")
	// ErrStorage says that the medium failed: an I/O error, no room left. What
	// was stored before remains readable.
	ErrStorage = errors.New("storage failed")
	// ErrFailed says that an earlier storage error left the end of the log in
	// doubt. The log still reads; it must be opened again before it can append.
	ErrFailed = errors.New("log failed and must be opened again")
	// ErrClosed says that the log or its store is closed, or the log deleted.
	ErrClosed = errors.New("log is closed")
	// ErrCorrupt says that stored bytes are not what was written.
	ErrCorrupt = errors.New("stored data is corrupt")
	// ErrMoved says that someone else appended to a shared log first.
	ErrMoved = errors.New("log has moved on")
	// ErrLost says that a shared log does not hold what was read from it.
	ErrLost = errors.New("the store has lost the end of the log")
	// ErrCompacted says that compaction has gone beyond what was read.
	ErrCompacted = errors.New("log was compacted since it was read")
	// ErrUnavailable says that the store cannot be reached for now. It is an
	// ErrStorage too.
	ErrUnavailable = fmt.Errorf("%w: the store cannot be reached", ErrStorage)
	// ErrNotReplicated says that what was appended is stored, but has fewer
	// copies than LogConfig.Replicas asks for.
	ErrNotReplicated = errors.New("not enough replicas have the records")
	// ErrInvalidBatch says that the bytes given to Append are not exactly one
	// record batch of format v2, or are one that the engine has no place for.
	ErrInvalidBatch = errors.New("not a record batch that can be stored")
	// ErrTooLarge is ErrInvalidBatch of a batch that would be taken in smaller ones.
	ErrTooLarge = fmt.Errorf("%w: it is too large", ErrInvalidBatch)
)

// FencedError is an ErrFenced that says by which leader epoch.
type FencedError struct{ Epoch int32 }

func (e *FencedError) Error() string { return fmt.Sprintf("%v: epoch %d", ErrFenced, e.Epoch) }

func (*FencedError) Unwrap() error { return ErrFenced }

// TopicPartition names a log.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// Store is a set of logs.
type Store interface {
	// Open opens the log, creating it if it does not exist, under a leader
	// epoch. From then on every handle of a lower epoch is fenced. Opening a
	// lower epoch than the log has seen is refused with a *FencedError. Opening the
	// epoch of a live handle again ends that handle with ErrClosed.
	Open(ctx context.Context, tp TopicPartition, leaderEpoch int32, cfg LogConfig) (Log, error)
	// Delete removes a log with all it holds. The log may be open; its handles
	// answer ErrClosed from then on. Deleting a log that does not exist is not
	// an error.
	Delete(ctx context.Context, tp TopicPartition) error
	// List returns the logs that exist, in no particular order.
	List(ctx context.Context) ([]TopicPartition, error)
	// Close ends all logs cleanly.
	Close() error
}

// LogConfig is what an engine needs to know of a topic's configuration.
// Engines without segments ignore the segment fields, engines with one layout
// the others.
type LogConfig struct {
	SegmentBytes  int64         // segment.bytes
	SegmentAge    time.Duration // segment.ms
	IndexInterval int64         // index.interval.bytes

	Layout       Layout // muster.redis.layout
	SequenceBits int    // muster.redis.sequence.bits
	// Replicas is how many copies, the first one included, Flush waits for.
	Replicas int // min.insync.replicas

	// Shown is for Open alone: where the log ended at least, as far as the caller has
	// seen since it came to lead it; 0 if it has not had the log open.
	Shown int64
	// Lost is likewise what the caller knows of Run.Lost: a server that loses its tail twice
	// may have forgotten that it lost it once.
	Lost int64
}

// Layout is how an engine lays out a log, where it has a choice.
type Layout string

// The layouts.
const (
	LayoutLog    Layout = "log"    // batches as they came, dense offsets
	LayoutStream Layout = "stream" // one stream entry per record, readable by others
	// LayoutIndexed has one stream entry per record, and beside them an index with dense offsets.
	LayoutIndexed Layout = "indexed"
)

// Appended says where a batch went.
type Appended struct {
	BaseOffset int64 // of the first record
	LastOffset int64 // of the last record
	// Rolled says that the engine closed a segment before this batch: a good
	// moment for SaveProducers.
	Rolled bool
	// Bytes is what is stored of it, where that is not the batch as it came; 0 otherwise.
	Bytes int64
}

// ReadRequest asks for record batches.
type ReadRequest struct {
	Offset     int64 // the first batch returned holds this offset or the next one after it
	NextOffset int64 // exclusive upper bound: no batch with a record at or above it is returned
	MaxBytes   int   // return no more than this …
	MinOne     bool  // … except that the first batch is returned whatever its size
}

// EpochStart says at which offset a leader epoch began to append.
type EpochStart struct {
	Epoch int32
	Start int64
}

// Log is one partition's log, opened under one leader epoch. All methods may
// be called concurrently; Append calls are ordered by the caller.
type Log interface {
	// Append stores exactly one record batch, already validated, and returns
	// when it would survive the death of this process. The engine writes the
	// base offset and the leader epoch into batch. On error nothing is stored.
	Append(ctx context.Context, batch []byte) (Appended, error)
	// Flush calls done, possibly before it returns, once everything appended
	// before this call would survive a loss of power. done must not block.
	Flush(done func(error))
	// Read returns record batches. Reading at the end of the log returns none;
	// outside of the log, ErrOffsetOutOfRange. The caller releases the result.
	Read(ctx context.Context, req ReadRequest) (Records, error)

	// Bounds returns the log start offset and the log end offset (the offset
	// after the last record).
	Bounds() (logStart, logEnd int64)
	// Size returns how many bytes the log holds.
	Size() int64
	// Epochs returns the leader epochs that appended, oldest first.
	Epochs() []EpochStart
	// OffsetForTimestamp finds the first record, in offset order, whose
	// timestamp is at least ts.
	OffsetForTimestamp(ctx context.Context, ts int64) (TimestampOffset, bool, error)
	// MaxTimestamp finds the record with the largest timestamp, the first of
	// them if several share it.
	MaxTimestamp(ctx context.Context) (TimestampOffset, bool, error)

	// Trim moves the log start offset up to newStart, durably. Moving it down
	// is a no-op; beyond the end is ErrOffsetOutOfRange.
	Trim(ctx context.Context, newStart int64) error
	// Retain applies retention by time and size. It may keep more than asked,
	// since engines drop in units of their own. The log then starts right after
	// the last record that went.
	Retain(ctx context.Context, r Retention) error
	// Compact keeps, of the records with the same key, only the newest. It may
	// leave recent records alone.
	Compact(ctx context.Context, c Compaction) error

	// Producers returns the producer state that the engine keeps, and the
	// offset from which batches must be read to complete it. The producers
	// of what Trim, Retain or Compact took away stay known.
	Producers(ctx context.Context) ([]Producer, int64, error)
	// SaveProducers offers the engine a snapshot of the producer state as of
	// nextOffset. It is a hint: engines that know better ignore it.
	SaveProducers(ctx context.Context, producers []Producer, nextOffset int64) error

	// Aborted returns the aborted transactions that may have records from an
	// offset on and below another: those whose first offset is below next and
	// whose marker is at or above from, in the order of their first offsets.
	Aborted(ctx context.Context, from, next int64) ([]Aborted, error)
	// NoteAborted tells of transactions whose abort markers were just appended, or
	// were found while the producer state was being completed, in the order of
	// their markers. Engines that keep them atomically with the append ignore it;
	// any other keeps them at the latest with the next snapshot of the producers,
	// and forgets at Open what the snapshot does not cover, since it is told again.
	NoteAborted(ctx context.Context, aborted []Aborted) error

	// SetConfig changes the log's configuration.
	SetConfig(cfg LogConfig)
	// Close ends this handle cleanly.
	Close() error
}

// Pipelined is a Log far away: several appends of it may be under way at once.
type Pipelined interface {
	Log
	// Begin starts an append as Append does it, and calls done with its outcome,
	// never from within Begin. Batches are stored in the order in which they
	// were begun, and done is called in that order, holding no lock of the
	// engine; when one fails, all that were begun after it fail too, and the log
	// must be opened again. Begin does not wait for appends under way: how many
	// there are is the caller's concern. The batch belongs to the caller again
	// when Begin returns.
	Begin(ctx context.Context, batch []byte, done func(Appended, error))
}

// Leaver is a Log that a stop can leave with a snapshot that is not durable.
type Leaver interface {
	// LeaveProducers is SaveProducers for when the process ends: it waits for nothing.
	// The snapshot may be lost, and is not relied upon.
	LeaveProducers(ctx context.Context, producers []Producer, nextOffset int64) error
}

// Failer is a Log that can fail while no one waits for it.
type Failer interface {
	// Failed says whether the log must be opened again.
	Failed() bool
}

// Run is a life of the server that has a log. A server that stops may come back
// without the last that it acknowledged, and what brokers remember is ahead of it then.
type Run struct {
	// ID names the run. It is empty where the logs of a store have different servers, or
	// none: nothing can be concluded from two of them being the same then.
	ID string
	// Began is where the log ended when it was first opened in this run.
	Began int64
	// Lost is where the log ended when it was last found to be shorter than someone knew,
	// or to come from another run while no one knew how long it was; 0 if it never was.
	Lost int64
}

// Restarting is a Log whose server may stop and come back. Once it has, a handle of before
// appends nothing, and Failed says so.
type Restarting interface {
	Log
	Failer
	// Run returns the run in which the log was opened.
	Run() Run
}

// Refresher is a Log that not only its leader appends to.
type Refresher interface {
	Log
	// Refresh looks where the log ends now, and returns that. Bounds says the same from
	// then on, or more: a log that holds transactions leaves out appends under way, so
	// that whoever began them hears of them first.
	Refresh(ctx context.Context) (logEnd int64, err error)
	// Transactional says whether the log can hold transactions.
	Transactional() bool
}

// Watcher is a Store that looks at many Refreshers at once.
type Watcher interface {
	Store
	// AwaitChange waits until one of some logs has more than Bounds says, for
	// about that long, and returns which of them may have.
	AwaitChange(ctx context.Context, logs []Refresher, wait time.Duration) (changed []int, err error)
}

// Shared is a Store that several brokers use.
type Shared interface {
	Store
	// OpenShared opens a log that all brokers append to, under no epoch.
	OpenShared(ctx context.Context, tp TopicPartition) (SharedLog, error)
}

// Seen is how far someone has read a shared log, and what proves it. The zero
// value is the start.
type Seen struct {
	Next int64  // the offset after the last batch
	CRC  uint32 // of that batch
}

// SharedLog is a log that all brokers append to. A broker that reads or appends
// proves the last batch it has seen: a store that came back with an older state may
// have lost it, and may hold another in its place by now.
//
// Where it does not hold that batch, AppendAt, Read and Replicate fail with
// ErrLost, or with ErrCompacted if compaction may have taken it. Either way the
// log is to be read again from its start.
type SharedLog interface {
	// AppendAt appends a batch if the log ends there, and fails with ErrMoved if
	// it goes on. After an error other than these three the batch may be there
	// or not.
	AppendAt(ctx context.Context, at Seen, batch []byte) error
	// Read returns the whole batches that follow, none at the end. With wait it
	// waits for some, for about that long.
	Read(ctx context.Context, after Seen, wait time.Duration) (batches []byte, err error)
	// Replicate returns when the log has so many copies up to there, the first
	// one included, and fails with ErrNotReplicated if it does not in time.
	Replicate(ctx context.Context, upTo Seen, replicas int) error
	// Time is the time of the server that has the log.
	Time(ctx context.Context) (time.Time, error)
	// Compact keeps only the newest record of each key, below nextOffset.
	Compact(ctx context.Context, nextOffset int64) error
	Close() error
}

// TimestampOffset is the answer to a search by timestamp.
type TimestampOffset struct {
	Offset      int64
	Timestamp   int64
	LeaderEpoch int32
}

// Retention says what may be dropped from the start of a log.
type Retention struct {
	Now        time.Time
	MaxAge     time.Duration // negative: no limit
	MaxBytes   int64         // negative: no limit
	NextOffset int64         // nothing at or above it is dropped
}

// FileSource is an open file that records can be sent from without copying
// them through this process.
type FileSource interface {
	io.ReaderAt
	// Fd returns the descriptor, or false if there is none (a file system in
	// memory).
	Fd() (uintptr, bool)
}

// Records is a run of whole record batches, in memory or in a file. The zero
// value is an empty run.
type Records struct {
	Bytes []byte // in memory; or, if nil:
	File  FileSource
	Pos   int64
	Len   int
	// Next is an offset that all records of the run are below, and all after it are
	// not, if the engine came across it; 0 if it did not.
	Next int64

	release func()
}

// FileRecords makes a run that lies in a file; release is called once, when
// the reader is done with it.
func FileRecords(f FileSource, pos int64, length int, release func()) Records {
	return Records{File: f, Pos: pos, Len: length, release: release}
}

// BytesRecords makes a run that lies in memory.
func BytesRecords(b []byte) Records { return Records{Bytes: b, Len: len(b)} }

// HeldRecords makes a run that lies in memory which is used again after
// release.
func HeldRecords(b []byte, release func()) Records {
	return Records{Bytes: b, Len: len(b), release: release}
}

// Release gives up the run. It must be called once, and Load not after it.
func (r *Records) Release() {
	if r.release != nil {
		r.release()
		r.release = nil
	}
}

// Load returns the run's bytes, which stay after Release, reading them from the
// file if need be.
func (r *Records) Load() ([]byte, error) {
	var buf []byte
	return r.LoadInto(&buf)
}

// LoadInto is Load for someone who reads one run after the other, and is done with
// each before the next: what is read from a file, or from memory that is used again,
// goes into buf, which grows if it must.
func (r *Records) LoadInto(buf *[]byte) ([]byte, error) {
	switch {
	case r.Len == 0 || r.Bytes != nil && r.release == nil:
		return r.Bytes, nil
	case cap(*buf) < r.Len:
		*buf = make([]byte, r.Len)
	}
	b := (*buf)[:r.Len]
	if r.Bytes != nil {
		copy(b, r.Bytes)
		return b, nil
	}
	if _, err := r.File.ReadAt(b, r.Pos); err != nil {
		return nil, err
	}
	return b, nil
}
