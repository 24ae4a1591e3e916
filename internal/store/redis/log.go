package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// log is a handle of one log, opened under one leader epoch.
type log struct {
	store  *Store
	tp     store.TopicPartition
	keys   keys
	layout layout
	// numbered is the same, nil if it is none.
	numbered numbered
	epoch    int32
	owner    string // the token without the counter
	run      store.Run
	// generation is that of the connections when it was opened.
	generation uint64

	maintain sync.Mutex // one trim, retention or compaction at a time
	cleaned  cleaned    // guarded by maintain
	copying  time.Time  // when it was last copied from, to convert it; guarded by maintain

	// sending is held by the one that writes to the end of the log: the sender, while it
	// has transactions under way, and those who claim it. It guards what
	// follows.
	sending  sync.Mutex
	claimed  atomic.Int32 // how many wait for it
	clock    clock
	taught   bool // the server has been sent the script of appends
	pace     pace
	attempts int64 // transactions so far
	forgot   int64 // when idle producers were forgotten, in ms of the server's time

	mu       sync.Mutex
	start    int64
	tail     tail // as far as acknowledged
	replicas int
	// producers is what Redis knows of idempotent producers.
	producers map[int64]producer
	aborted   store.AbortedList
	ended     bool  // deleted, or its store closed: nothing works
	closed    bool  // nothing may be changed
	failed    error // why nothing can be appended

	queue         []*pending
	queuedBytes   int64
	queuedEntries int
	promised      int64         // the log end offset after all that is in the queue
	draining      bool          // someone empties it
	idle          *sync.Cond    // no one does
	kick          chan struct{} // wakes the sender

	warned  sync.Once // about entries that cannot be shown
	flusher flusher
	sizes   readSizes
}

var (
	_ store.Pipelined   = (*log)(nil)
	_ store.Restarting  = (*log)(nil)
	_ store.Refresher   = recordLog{}
	_ store.Refresher   = indexLog{}
	_ store.Convertible = recordLog{}
	_ store.Convertible = batchLog{}
	_ numbered          = batchLog{}
	_ numbered          = recordLog{}
)

// end ends the handle: the log is deleted, or its store closed. What was begun
// is waited for.
func (l *log) end() {
	_ = l.layout.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
}

// Close implements store.Log.
func (l *log) Close() error {
	l.mu.Lock()
	l.closed = true
	for l.draining {
		l.idle.Wait()
	}
	l.mu.Unlock()
	l.flusher.wait()
	l.store.forget(l)
	return nil
}

// Run implements store.Restarting.
func (l *log) Run() store.Run { return l.run }

// Failed implements store.Restarting: the server has been started again since the log was
// opened, or another one has taken its place. What this handle knows of the log may not be
// true any more, nor what anybody has concluded from it.
func (l *log) Failed() bool { return l.generation != l.store.runs.Generation() }

// errRestarted is what appends are told then.
var errRestarted = fmt.Errorf("%w: redis was started again, or another one has taken its place", store.ErrFailed)

// mayRead says whether the log can be read.
func (l *log) mayRead() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return store.ErrClosed
	}
	return nil
}

// mayChange says whether this handle may try to change the log. Whether it
// owns it still, only Redis knows.
func (l *log) mayChange() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.closed {
		return store.ErrClosed
	}
	return nil
}

// own runs a script that only the owner of the log may run. Its reply is an
// array that begins with ok or refused.
func (l *log) own(ctx context.Context, what, script string, args ...string) ([]reply, error) {
	return l.ownKeys(ctx, what, script, []string{l.keys.stream, l.keys.meta}, args)
}

// ownKeys is own with more keys.
func (l *log) ownKeys(ctx context.Context, what, script string, keys, args []string) ([]reply, error) {
	if err := l.mayChange(); err != nil {
		return nil, err
	}
	cmd := l.store.eval(script, keys, append([]string{l.owner}, args...))
	r, err := replies(l.store.do(ctx, cmd))
	if err != nil {
		return nil, attempt(what+" "+l.keys.stream, err)
	}
	if len(r) < 2 {
		return nil, fmt.Errorf("%w: %s %s: short reply", store.ErrStorage, what, l.keys.stream)
	}
	if r[0].text() == "refused" {
		return nil, l.refusal(r[1].text())
	}
	return r[1:], nil
}

// refusal says why a log whose token is not ours is not: a newer epoch has
// opened it, or the same one again, or it was deleted and perhaps made anew. A
// token that is older than ours means that Redis forgot what it had told us,
// which is what a failover does when the new primary is behind.
func (l *log) refusal(token string) error {
	if token == "" {
		return store.ErrClosed // Deleted.
	}
	at, err := parseToken(token)
	if err != nil {
		return err
	}
	ours, err := parseToken(l.token(0))
	switch {
	case err != nil:
		return err
	case at[0] > ours[0]:
		return fmt.Errorf("%w: epoch %d, not %d", store.ErrFenced, at[0], ours[0])
	case at[1] > ours[1]:
		return store.ErrClosed
	}
	return fmt.Errorf("%w: redis is back at %s, after a failover or a restart without persistence", store.ErrFailed, token)
}

// parseToken reads the leader epoch, the incarnation and the counter.
func parseToken(token string) (parts [3]int64, err error) {
	texts := strings.Split(token, ".")
	if len(texts) != len(parts) {
		return parts, fmt.Errorf("%w: token %q", store.ErrCorrupt, token)
	}
	for i, text := range texts {
		if parts[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return parts, fmt.Errorf("%w: token %q", store.ErrCorrupt, token)
		}
	}
	return parts, nil
}

// Bounds implements store.Log.
func (l *log) Bounds() (logStart, logEnd int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.start, l.tail.next
}

// Size implements store.Log. In the log layout it is what the batches take; in
// the stream layout it is an estimate, since others add and remove entries.
func (l *log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.tail.size, 0)
}

// Epochs implements store.Log.
func (l *log) Epochs() []store.EpochStart {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.tail.epochs)
}

// epochAt returns the leader epoch that appended at an offset.
func epochAt(epochs []store.EpochStart, offset int64) int32 {
	at := int32(record.NoProducerID)
	for _, e := range epochs {
		if e.Start > offset {
			break
		}
		at = e.Epoch
	}
	return at
}

// SetConfig implements store.Log. A log keeps the layout it was made with.
func (l *log) SetConfig(cfg store.LogConfig) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replicas = cfg.Replicas
}
