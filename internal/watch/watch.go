package watch

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// asksPerPass is how often a pass may look for the timestamp of a record: as a rule the
// tracker knows when a record came by itself.
const asksPerPass = 512

// Options of a watch.
type Options struct {
	Node     int32
	Source   Source
	MaxBytes int64 // muster.group.history.max.bytes
	Now      func() time.Time
	Logger   *slog.Logger
	// History is where what is known is kept over restarts, and HistoryEvery how often it
	// is written; nil for nowhere.
	History      History
	HistoryEvery time.Duration
	// Suspected is told of records that may kill who reads them, after a pass; no-op if nil.
	Suspected func(journal.Entry)
}

// Watch makes passes and hands out what they found.
type Watch struct {
	opts Options
	last atomic.Pointer[Snapshot]

	passing sync.Mutex                  // One pass at a time. The rest belongs to it.
	number  uint64                      // Of the last pass, from 2 on: 0 is none.
	image   *metadata.Image             // That it saw.
	order   []*Seen                     // The groups that it saw, in order of name.
	asked   map[Part]*readers           // Partitions that others lead, of which the next pass asks.
	counts  map[PartitionOffset]counted // What was counted.
	keeper  keeper

	lastCounts map[holder]lag.Count
	countFrom  int // From which place on the next pass counts.

	mu      sync.Mutex // Of the tracker. It is held for a portion of a pass, never for all of it.
	tracker *lag.Tracker

	news news
}

// New returns a watch that has seen nothing yet.
func New(opts Options) *Watch {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	w := &Watch{opts: opts, number: 1, asked: map[Part]*readers{}, counts: map[PartitionOffset]counted{}}
	w.tracker = lag.NewTracker(lag.Limits{Bytes: opts.MaxBytes, Asks: asksPerPass}, opts.Source)
	w.last.Store(&Snapshot{Node: opts.Node, Groups: list.Build(nil)})
	return w
}

// Snapshot is what the last pass saw. It is never nil and never changes.
func (w *Watch) Snapshot() *Snapshot { return w.last.Load() }

// Read lets f ask the tracker what it keeps over time. It holds a lock that passes wait
// for, so f must be short, and must not keep t.
func (w *Watch) Read(f func(t *lag.Tracker)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w.tracker)
}

// Run makes a pass every Interval until ctx ends, the first at once. At the end it writes
// what history lacks.
func (w *Watch) Run(ctx context.Context) {
	every := time.NewTicker(Interval)
	defer every.Stop()
	for ctx.Err() == nil {
		w.Pass(ctx)
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	w.keepLast(last)
}

// lastTime is how long the end of a broker waits for what is still to be written.
const lastTime = 3 * time.Second

// Pass makes a pass now. It returns when its Snapshot is there, or ctx has ended.
func (w *Watch) Pass(ctx context.Context) {
	w.passing.Lock()
	defer w.passing.Unlock()
	// A partition that another broker leads is asked for from the pass on that has seen
	// that a group reads it. The first of them is followed by another one at once, so that
	// no one sees a lag that is not known after a start.
	if w.pass(ctx) && ctx.Err() == nil {
		w.pass(ctx)
	}
	if at := w.Snapshot().At; ctx.Err() == nil && !at.IsZero() {
		w.keep(ctx, at)
	}
}
