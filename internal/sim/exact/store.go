package exact

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"muster/internal/record"
	"muster/internal/sim/seeds"
	"muster/internal/store"
	"muster/internal/store/mem"
)

// simStore is the store that all brokers share: logs of package mem, whose
// appends and syncs take a while and fail. It outlives the brokers.
type simStore struct {
	w    *world
	logs map[store.TopicPartition]*simLog
	// atOnce makes syncs end at once, for a caller that waits for one.
	atOnce bool
	opens  int             // how often logs were opened
	seq    int             // of what was written, in all logs
	runs   []int           // how often each server was started
	away   []time.Duration // until when each is away
	// found is a rule that was found broken on a goroutine of a manager.
	found *seeds.Violation
}

func newSimStore(w *world) *simStore {
	return &simStore{w: w, logs: map[store.TopicPartition]*simLog{}, runs: make([]int, w.plan.tails.servers), away: make([]time.Duration, w.plan.tails.servers)}
}

// simLog is one log. Its batches are kept twice: by package mem, which is what
// brokers read, and here, for the checks.
type simLog struct {
	w       *world
	tp      store.TopicPartition
	st      *mem.Store
	epoch   int32
	owner   *handle
	raw     []*entry
	durable int  // how many of raw would survive a crash
	loaded  int  // the number of the last open by which a broker came to lead it
	inDoubt bool // what is not durable may be gone when it is opened next
	cuts    int  // how often it has lost something
	server  int  // that has it
	opened  []opening
	start   int64
	packed  bool // it was compacted, and so cannot lose anything any more

	producers store.ProducerMap // of a pipelined log
	last      lastStable
}

// entry is a batch in a log, as it was appended.
type entry struct {
	batch  record.Batch
	marker *record.Marker
	start  int64          // of the transaction that a marker was sent for, if that is known
	of     *transaction   // that data belongs to
	closes []*transaction // that a marker ends
	seq    int            // in all that was written
}

func (s *simStore) log(tp store.TopicPartition) *simLog {
	l := s.logs[tp]
	if l == nil {
		l = &simLog{w: s.w, tp: tp, st: mem.New(), epoch: -1, server: s.serverOf(tp)}
		s.logs[tp] = l
	}
	return l
}

func (l *simLog) end() int64 {
	if len(l.raw) == 0 {
		return 0
	}
	return l.raw[len(l.raw)-1].batch.LastOffset() + 1
}

// settle decides what an opened log holds: what was not durable is gone in part,
// if there is doubt about it, and durable from now on otherwise.
func (l *simLog) settle() {
	if l.inDoubt && !l.packed && l.durable < len(l.raw) {
		if n := l.durable + l.w.Rand.IntN(len(l.raw)-l.durable+1); n < len(l.raw) {
			l.w.Count("unsynced tail lost")
			l.cut(n)
		}
	}
	l.inDoubt = false
	l.sync(l.end())
}

// cut takes all but the first n batches away.
func (l *simLog) cut(n int) {
	l.w.Tracef("%s-%d: loses %d batches", l.tp.Topic, l.tp.Partition, len(l.raw)-n)
	l.raw = l.raw[:n]
	l.cuts++
	l.durable = min(l.durable, n)
	l.st = mem.New()
	ctx := context.Background()
	for _, e := range l.raw {
		h, err := l.st.Open(ctx, l.tp, e.batch.LeaderEpoch(), store.LogConfig{})
		if err == nil {
			_, err = h.Append(ctx, bytes.Clone(e.batch))
		}
		if err != nil {
			panic(fmt.Sprintf("a log cannot be made again: %v", err))
		}
	}
	l.producersAgain()
	if l.start > 0 {
		h, err := l.st.Open(ctx, l.tp, l.epoch, store.LogConfig{})
		if err == nil {
			err = h.Trim(ctx, l.start)
		}
		if err != nil {
			panic(fmt.Sprintf("a log cannot be made again: %v", err))
		}
	}
	l.w.model.cut(l)
}

// sync makes durable what is below an offset.
func (l *simLog) sync(end int64) {
	for l.durable < len(l.raw) && l.raw[l.durable].batch.BaseOffset() < end {
		e := l.raw[l.durable]
		l.durable++
		l.w.model.durable(l, e)
	}
}

// keep notes a batch that mem has stored.
func (l *simLog) keep(b []byte, start int64) {
	l.w.store.seq++
	e := &entry{batch: bytes.Clone(b), start: start, seq: l.w.store.seq}
	l.w.model.stored(l, e)
	l.raw = append(l.raw, e)
}

// nodeStore is the store as one broker sees it in one life.
type nodeStore struct {
	*simStore
	b    *broker
	life int
}

var _ store.Shared = nodeStore{}

// Open implements store.Store.
func (s nodeStore) Open(ctx context.Context, tp store.TopicPartition, epoch int32, cfg store.LogConfig) (log store.Log, err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case seeds.Violation:
			s.found, log, err = &v, nil, store.ErrUnavailable
		default:
			panic(v)
		}
	}()
	l := s.log(tp)
	if epoch < l.epoch {
		return nil, &store.FencedError{Epoch: l.epoch}
	}
	if s.isAway(l) || s.w.Chance(s.w.faults().appendFails) {
		s.w.Count("open failed")
		return nil, store.ErrUnavailable
	}
	l.epoch = epoch
	s.opens++
	l.settle()
	inner, err := l.st.Open(ctx, tp, epoch, cfg)
	if err != nil {
		return nil, err
	}
	h := &handle{Log: inner, log: l, b: s.b, life: s.life, run: l.look(epoch, cfg), start: s.runs[l.server]}
	s.w.Tracef("%s-%d: opened by broker %d under epoch %d, ends at %d", tp.Topic, tp.Partition, s.b.id, epoch, l.end())
	l.owner, s.b.handles[tp] = h, h
	if s.w.plan.pipelined {
		return &pipe{handle: h}, nil
	}
	return h, nil
}

// Delete implements store.Store. In a store that others use too managers delete
// nothing: see removeSide.
func (s nodeStore) Delete(context.Context, store.TopicPartition) error {
	panic("a log is deleted")
}

// List implements store.Store.
func (s nodeStore) List(context.Context) ([]store.TopicPartition, error) { return nil, nil }

// Close implements store.Store.
func (s nodeStore) Close() error { return nil }

// OpenShared implements store.Shared, which tells the partitions that other
// brokers use the store too.
func (s nodeStore) OpenShared(context.Context, store.TopicPartition) (store.SharedLog, error) {
	return nil, store.ErrUnavailable
}

// handle is a log on a disk: appends are done at once, syncs take a while.
type handle struct {
	store.Log
	log    *simLog
	b      *broker
	life   int
	failed bool
	run    store.Run
	start  int // of the server
}

func (h *handle) owns() bool { return h.log.owner == h }

// Append implements store.Log.
func (h *handle) Append(ctx context.Context, batch []byte) (store.Appended, error) {
	w := h.log.w
	if h.failed {
		return store.Appended{}, store.ErrFailed
	}
	if w.Chance(w.faults().appendFails) {
		w.Count("append failed")
		h.failed = w.Rand.IntN(2) == 0
		return store.Appended{}, store.ErrStorage
	}
	if !h.owns() {
		w.Count("append fenced")
		return store.Appended{}, store.ErrFenced
	}
	at, err := h.Log.Append(ctx, batch)
	if err == nil {
		h.log.keep(batch, h.log.w.model.sending)
	}
	return at, err
}

// Flush implements store.Log.
func (h *handle) Flush(done func(error)) {
	l, w := h.log, h.log.w
	end, cuts := l.end(), l.cuts
	if w.store.atOnce {
		l.sync(end)
		done(nil)
		return
	}
	w.After(w.appendDelay(), func() {
		if h.b.life != h.life {
			return
		}
		var err error
		switch {
		case l.cuts != cuts:
			err = store.ErrClosed
		case !h.owns() && w.Rand.IntN(2) == 0:
			err = store.ErrFenced
		case h.owns() && (h.failed || w.Chance(w.faults().appendFails)):
			w.Count("sync failed")
			h.failed, l.inDoubt = true, true
			err = store.ErrStorage
		case h.owns():
			l.sync(end)
		}
		h.b.do(h.life, func() { done(err) })
	})
}

// Close implements store.Log.
func (h *handle) Close() error { return nil }

// appendDelay is how long a store takes for something.
func (w *world) appendDelay() time.Duration {
	if w.Chance(w.faults().appendSlow) {
		w.Count("slow append")
		return w.Between(50*time.Millisecond, 3*time.Second)
	}
	return w.About(w.plan.append) + 50*time.Microsecond
}
