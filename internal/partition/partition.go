// Package partition is a topic partition as its leader serves it.
//
// It puts on top of a store.Log what engines leave open: which records readers
// may see (high watermark, last stable offset), whether a batch may be appended
// (sizes, timestamps, idempotent producers, transactions), leader epochs, and the
// readers that wait for new records. Manager holds the partitions of this broker and runs retention
// and compaction over them.
//
// Appends are put in order under the partition's lock, which is never held while
// someone waits for the disk. Reads take no lock of the partition.
package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
)

// Partition is one partition that this broker leads.
type Partition struct {
	topic   string
	topicID metadata.TopicID
	index   int32
	epoch   int32 // leader epoch
	deps    *deps

	cfg atomic.Pointer[config.Topic]
	log atomic.Pointer[openLog]
	// highWatermark is the end of what readers may see. It moves together with
	// log, under showing: appends of a handle that was replaced no longer move it.
	highWatermark atomic.Int64
	showing       sync.Mutex
	stable        stable

	mu         sync.Mutex // orders appends
	producers  store.ProducerMap
	savedAt    int64               // where the snapshot of them was made that the log was opened with
	lastBegins map[int64]lastBegin // likewise, of a pipelined log
	lastEnds   map[int64]lastEnd   // by producer, where it is known
	questions  questions
	closed     bool
	used       bool // something was appended since the log was opened, or tried to be

	failed atomic.Bool // the log must be opened again before it can append
	// cut says that the log lost records that readers were shown. Nothing is
	// served until this broker leads under a higher epoch.
	cut         atomic.Bool
	run         store.Run // in which the log was opened
	noted       int64     // where the log ends as far as the state of producers goes
	openedAt    int64     // where the log ended when it was opened
	openedTime  time.Time // when that was
	openedAgain bool      // there was one before

	// Of a pipelined log.
	pipelined bool
	slots     chan struct{}    // taken by appends under way
	underWay  []*pendingAppend // those, oldest first
	notBefore time.Time        // when a failed log may be opened again
	resting   error            // why not before

	dirty    atomic.Bool // on the manager's list for the background flush
	waiters  waiters
	failures failures
	// watchedUntil is how long, in Unix nanoseconds, readers need not look for
	// what others appended.
	watchedUntil atomic.Int64
}

// openLog boxes the log, since it is replaced when it must be opened again.
type openLog struct {
	store.Log
	aborts atomic.Int32 // whether it has aborted transactions
	// lastStable is the last stable offset, but for what was deleted. It is the log's, since
	// one that was opened again may know of aborted transactions that this one does not.
	lastStable atomic.Int64
}

// deps is what all partitions of a manager share.
type deps struct {
	store    store.Store
	now      func() time.Time
	logger   *slog.Logger
	flushAll func() bool          // acks=all waits for the disk
	dirtied  func(*Partition)     // a partition wants a background flush
	expiry   func() time.Duration // of idle producers
	// raise asks for a leader epoch above the one that a partition has, and
	// above another one.
	raise func(tp store.TopicPartition, from, above int32)
	// coordinator is asked about transactions. It is nil where there are none.
	coordinator TxnCoordinator
	parked      atomic.Int64                         // bytes of batches that wait for its answers
	later       func(after time.Duration, do func()) // on a goroutine of its own
}

// open opens a partition's log and loads its producer state.
func open(ctx context.Context, d *deps, t *metadata.Topic, index int32) (*Partition, error) {
	p := &Partition{topic: t.Name, topicID: t.ID, index: index, epoch: t.Partitions[index].LeaderEpoch, deps: d}
	p.cfg.Store(&t.Config)
	end, err := p.openLog(ctx)
	if err != nil {
		return nil, err
	}
	p.show(p.log.Load(), end, true)
	return p, nil
}

// openLog opens the log, also in the place of one that is open, and returns
// where it ends. Whatever the handle before still has under way is stored by
// now, and thus before that end, or refused by the store.
func (p *Partition) openLog(ctx context.Context) (end int64, err error) {
	cfg := p.logConfig(p.cfg.Load())
	cfg.Shown, cfg.Lost = p.highWatermark.Load(), p.run.Lost
	l, err := p.deps.store.Open(ctx, p.id(), p.epoch, cfg)
	var fenced *store.FencedError
	if errors.As(err, &fenced) {
		// Another broker leads, as the metadata will tell, or the metadata has
		// forgotten epochs that the log knows.
		p.deps.raise(p.id(), p.epoch, fenced.Epoch)
	}
	if err != nil {
		return 0, err
	}
	producers, saved, err := loadProducers(ctx, l)
	if err != nil {
		return 0, fmt.Errorf("load producers of %s-%d: %w", p.topic, p.index, err)
	}
	_, end = l.Bounds()
	if p.log.Load() == nil { // It is the same for all handles, and appends read it without the lock.
		if _, p.pipelined = l.(store.Pipelined); p.pipelined {
			p.slots = make(chan struct{}, maxUnderWay)
		}
	}
	p.savedAt, p.run = saved, store.Run{}
	if r, ok := l.(store.Restarting); ok {
		p.run = r.Run()
	}
	p.producers, p.used, p.noted, p.openedAt, p.openedTime = producers, false, end, end, p.deps.now()
	maps.DeleteFunc(p.lastEnds, func(_ int64, e lastEnd) bool { return e.marker >= end })
	for _, f := range p.underWay {
		f.opens = false // Whatever becomes of it, it opens nothing in this log.
	}
	p.questions.lose()
	p.showing.Lock()
	opened, old := &openLog{Log: l}, p.log.Load()
	if p.openedAgain = old != nil; p.openedAgain {
		opened.lastStable.Store(old.lastStable.Load())
	}
	p.log.Store(opened)
	p.stable.load(producers, p.lastBegins, end, p.openedTime)
	shown := p.highWatermark.Load()
	p.showing.Unlock()
	if old != nil && p.pipelined {
		// Its appends under way need this partition's lock to end.
		go func() { _ = old.Close() }()
	}
	if end < shown {
		return 0, p.cutBack(shown, end)
	}
	return end, nil
}

// logConfig says how the log is to be kept. Internal topics need dense offsets
// and batches that are appended as one, as the engine keeps them of itself.
func (p *Partition) logConfig(c *config.Topic) store.LogConfig {
	layout := store.Layout(c.RedisLayout)
	if metadata.IsInternal(p.topic) {
		layout = ""
	}
	return store.LogConfig{
		SegmentBytes: c.SegmentBytes, SegmentAge: c.SegmentAge, IndexInterval: c.IndexInterval,
		Layout: layout, SequenceBits: c.SequenceBits, Replicas: c.MinInSync,
	}
}

// name is what people call the partition.
func (p *Partition) name() string { return fmt.Sprintf("%s-%d", p.topic, p.index) }

func (p *Partition) id() store.TopicPartition {
	return store.TopicPartition{Topic: p.topic, Partition: p.index}
}

// Run returns the run of the store's server in which the log was opened.
func (p *Partition) Run() store.Run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// LeaderEpoch returns the epoch under which this broker leads the partition.
func (p *Partition) LeaderEpoch() int32 { return p.epoch }

// HighWatermark returns the end of what readers may see.
func (p *Partition) HighWatermark() int64 { return p.highWatermark.Load() }

// LogStartOffset returns the first offset that can be read.
func (p *Partition) LogStartOffset() int64 {
	start, _ := p.log.Load().Bounds()
	return start
}

// LogEndOffset returns the offset after the last record, visible or not.
func (p *Partition) LogEndOffset() int64 {
	_, end := p.log.Load().Bounds()
	return end
}

// Refresh finds out where a log ends that others append to as well.
func (p *Partition) Refresh(ctx context.Context) *kerr.Error {
	l := p.log.Load()
	r, ok := l.Log.(store.Refresher)
	if !ok {
		return nil
	}
	end, err := r.Refresh(ctx)
	if err != nil {
		return p.wireError("refresh", err)
	}
	p.show(l, end, false)
	return nil
}

// Freshen is Refresh, unless the log is watched: then what others have added is known, or about to be.
func (p *Partition) Freshen(ctx context.Context) *kerr.Error {
	if p.watched() {
		return nil
	}
	return p.Refresh(ctx)
}

// Size returns how many bytes the partition holds.
func (p *Partition) Size() int64 { return p.log.Load().Size() }

func (p *Partition) setConfig(c *config.Topic) {
	p.cfg.Store(c)
	p.log.Load().SetConfig(p.logConfig(c))
}

// close ends the partition, saving its producer state so that whoever opens the log next
// need not read it for that.
func (p *Partition) close(ctx context.Context) error {
	return p.closeWith(func(l *openLog, end int64) error {
		if len(p.producers) == 0 && !p.worthSaving(l, end) {
			return nil
		}
		return l.SaveProducers(ctx, p.producers.List(), end)
	})
}

// leave ends the partition because the broker does.
func (p *Partition) leave(ctx context.Context) error {
	return p.closeWith(func(l *openLog, end int64) error {
		if !p.worthSaving(l, end) {
			return nil
		}
		if l, ok := l.Log.(store.Leaver); ok {
			return l.LeaveProducers(ctx, p.producers.List(), end)
		}
		return l.SaveProducers(ctx, p.producers.List(), end)
	})
}

// closeWith ends the partition after its producer state was saved.
func (p *Partition) closeWith(save func(l *openLog, end int64) error) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	l := p.log.Load()
	_, end := l.Bounds()
	err := save(l, end)
	if errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrClosed) {
		err = nil // The new owner of the log takes the producers' state from it.
	}
	// Appends under way need the lock to end, and Close waits for them.
	p.mu.Unlock()
	p.waiters.wake(true, true)
	return errors.Join(err, l.Close())
}

// worthRead is how much of a log may be read at each start to find out which producers it
// has. To save that takes a file for each partition, and time at the end.
const worthRead = 1 << 20

// worthSaving says whether the next start is quicker if the producers are saved now. A
// store that brokers share has them without that.
func (p *Partition) worthSaving(l *openLog, end int64) bool {
	_, shared := p.deps.store.(store.Shared)
	return !shared && p.savedAt < end && l.Size() > worthRead
}

// abandon ends the partition whose log is being deleted.
func (p *Partition) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.waiters.wake(true, true)
}

// wireError translates an engine's error for clients.
func (p *Partition) wireError(what string, err error) *kerr.Error {
	switch {
	case errors.Is(err, store.ErrOffsetOutOfRange):
		return kerr.OffsetOutOfRange
	case errors.Is(err, store.ErrTooLarge):
		return kerr.MessageTooLarge // The Java client sends it again in smaller ones.
	case errors.Is(err, store.ErrInvalidBatch):
		return kerr.InvalidRecord
	case errors.Is(err, store.ErrFenced), errors.Is(err, store.ErrClosed):
		return kerr.NotLeaderForPartition
	case errors.Is(err, store.ErrNotReplicated):
		return kerr.NotEnoughReplicasAfterAppend
	case errors.Is(err, store.ErrUnavailable):
		// Clients try again, after a look whether someone else leads. That the
		// store is away is logged once, where it is watched.
		return kerr.NotLeaderForPartition
	case errors.Is(err, errFull):
		return kerr.KafkaStorageError // It is logged when it is tried.
	}
	if again, ok := p.failures.say(what, err.Error(), p.deps.now()); ok {
		args := []any{"topic", p.topic, "partition", p.index, "doing", what, "error", err}
		if again > 0 {
			args = append(args, "repeated", again)
		}
		p.deps.logger.Error("storage failed", args...)
	}
	return kerr.KafkaStorageError
}

// sayAgain is after how long a failure that stays the same is logged again: clients try again ten
// times a second.
const sayAgain = 30 * time.Second

// failures is what was logged last of a partition's failures, by what was attempted.
type failures struct {
	mu   sync.Mutex
	last map[string]failure
}

type failure struct {
	text  string
	at    time.Time
	again int // how often it came since
}

// say tells whether a failure is to be logged, and how often it came since it was logged last.
func (f *failures) say(what, text string, now time.Time) (again int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := f.last[what]; last.text == text {
		if now.Sub(last.at) < sayAgain {
			last.again++
			f.last[what] = last
			return 0, false
		}
		again = last.again
	}
	if f.last == nil {
		f.last = map[string]failure{}
	}
	f.last[what] = failure{text: text, at: now}
	return again, true
}
