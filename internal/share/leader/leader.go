// Package leader carries the share partitions (KIP-932) whose partitions this broker leads:
// it gives the pure windows of package window a log, a clock, and the share coordinator, where
// their state is stored.
//
//	first fetch          acquire, acknowledge            leadership or topic gone,
//	     │                 │        │                     no session and nothing acquired
//	     ▼                 ▼        ▼                            │
//	  loading ──84──▶  window ── writes, one at a time ──85──▶  dropped
//	                       ▲        │
//	                     locks    waiters woken
//
// Each share partition has a lock of its own, under which nothing waits. A partition's log is
// read outside of it, by one fetch at a time.
//
// Which member may fetch what is for the caller, as are sessions. What is stored in the share
// coordinator is all that counts: a share partition may be dropped whenever nothing of it is
// acquired or on its way there, and is loaded again when it is next fetched.
//
//	leader.go       share partitions, found, made and dropped
//	load.go         what is stored, and where a new one begins
//	acquire.go      a fetch
//	scan.go         what was read of the log, as windows want to know it
//	acknowledge.go  what members say, and the end of their sessions
//	write.go        writes on their way to the share coordinator
//	wake.go         those who wait for records
package leader

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/share/window"
)

// Key names a share partition.
type Key struct {
	Group string
	Topic metadata.TopicID
	Index int32
}

// Settings are those of a group.
type Settings struct {
	window.Settings
	Committed bool // share.isolation.level
	Reset     Reset
}

// Options of a leader.
type Options struct {
	// Ask has the share coordinator of a share partition handle a request about it. An error
	// says that it could not be reached.
	Ask func(ctx context.Context, of Key, req kmsg.Request) (kmsg.Response, error)
	// Settings returns those of a group. It is called often, and must not block.
	Settings func(group string) Settings
	// InUse says whether a group has a session at this broker. It must not block.
	InUse  func(group string) bool
	Logger *slog.Logger
}

const (
	// budget bounds the memory of all share partitions.
	budget = 256 << 20
	// partSize is about what a share partition takes besides its runs, and loadSize what it
	// takes besides while its state is on the way.
	partSize = 1 << 10
	loadSize = 8 << 10
	// runSize is about what a run of a window takes.
	runSize = 64
	// evictEvery is how often at most all are looked at for some to drop.
	evictEvery = 100 * time.Millisecond
	// maxLoads is how many share partitions are loaded at once.
	maxLoads = 64
)

// Leader holds the share partitions of a broker.
type Leader struct {
	opts   Options
	ctx    context.Context // of what runs in the background
	stop   context.CancelFunc
	work   sync.WaitGroup
	began  time.Time
	loads  chan struct{}
	memory atomic.Int64 // of all share partitions
	budget int64
	// evicted is when some were last dropped for the sake of others, as a time.Duration since the start.
	evicted atomic.Int64

	mu     sync.Mutex // taken after that of a share partition, if at all
	groups map[string]map[place]*part
	closed bool
}

// place is a partition of a topic.
type place struct {
	topic metadata.TopicID
	index int32
}

// New returns a leader of no share partitions.
func New(opts Options) *Leader {
	ctx, stop := context.WithCancel(context.Background())
	return &Leader{
		opts: opts, ctx: ctx, stop: stop, began: time.Now(), loads: make(chan struct{}, maxLoads), budget: budget,
		groups: map[string]map[place]*part{},
	}
}

// Close ends all that runs in the background. What is not stored is delivered again by the
// next leader.
func (l *Leader) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	for _, p := range l.list() {
		l.drop(p)
	}
	l.work.Wait()
}

// background runs something that Close waits for; false says that it is too late for it.
func (l *Leader) background(do func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.work.Go(do)
	}
	return !l.closed
}

// guarded is something that runs in the background for a share partition. If it panics, the
// share partition is dropped: the broker goes on.
func (p *part) guarded(do func()) func() {
	return func() {
		defer func() {
			if v := recover(); v != nil {
				p.leader.opts.Logger.Error("a share partition panicked", "group", p.key.Group, "topic", p.key.Topic, "partition", p.key.Index, "error", v, "stack", string(debug.Stack()))
				p.leader.drop(p)
			}
		}()
		do()
	}
}

// now is the time of locks. It goes on by itself, whatever the clock of the machine is set to.
func (l *Leader) now() time.Time { return l.began.Round(0).Add(time.Since(l.began)) }

// part is a share partition.
type part struct {
	leader *Leader
	key    Key
	log    *partition.Partition
	sparse bool

	mu       sync.Mutex
	window   *window.Partition // nil while it is loaded
	dropped  bool
	failure  *failure // why it could not be loaded
	fetching bool     // someone reads the log for it
	size     int64    // as it was counted
	locks    *time.Timer
	waiters  waiters
	queue    queue
}

// find returns a share partition; nil if it is not here. One that was made for an older leader
// epoch is dropped; one of a newer epoch is not for who found the log of before.
func (l *Leader) find(k Key, log *partition.Partition) *part {
	l.mu.Lock()
	p := l.groups[k.Group][place{k.Topic, k.Index}]
	l.mu.Unlock()
	if p == nil || p.log == log {
		return p
	}
	if log.LeaderEpoch() >= p.log.LeaderEpoch() {
		l.drop(p)
	}
	return nil
}

// findOrLoad is find, and begins to load a share partition that is not here. It is nil if
// there is no room for it.
func (l *Leader) findOrLoad(k Key, log *partition.Partition, sparse bool) *part {
	if p := l.find(k, log); p != nil {
		return p
	}
	const size = partSize + loadSize
	if l.memory.Add(size) > l.budget {
		if l.memory.Add(-size); !l.evict(size) {
			return nil
		}
		l.memory.Add(size)
	}
	p := &part{leader: l, key: k, log: log, sparse: sparse, size: size}
	at := place{k.Topic, k.Index}
	l.mu.Lock()
	if other := l.groups[k.Group][at]; other != nil || l.closed {
		l.mu.Unlock()
		l.memory.Add(-size)
		return other
	}
	if l.groups[k.Group] == nil {
		l.groups[k.Group] = map[place]*part{}
	}
	l.groups[k.Group][at] = p
	l.mu.Unlock()
	l.background(p.guarded(p.load))
	return p
}

// of lists the share partitions of a group.
func (l *Leader) of(group string) []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*part, 0, len(l.groups[group]))
	for _, p := range l.groups[group] {
		out = append(out, p)
	}
	return out
}

// drop forgets a share partition. What waits to be stored is not stored any more.
func (l *Leader) drop(p *part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.discard()
}

// unlist has a share partition not found any more.
func (l *Leader) unlist(p *part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := place{p.key.Topic, p.key.Index}
	if parts := l.groups[p.key.Group]; parts[at] == p {
		if delete(parts, at); len(parts) == 0 {
			delete(l.groups, p.key.Group)
		}
	}
}

// discard is drop for who has the lock.
func (p *part) discard() {
	if p.dropped {
		return
	}
	p.dropped = true
	p.leader.unlist(p)
	p.leader.memory.Add(-p.size)
	p.size = 0
	if p.locks != nil {
		p.locks.Stop()
	}
	p.queue.discard()
	p.waiters.wakeAll()
}

// list returns all share partitions.
func (l *Leader) list() []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*part
	for _, parts := range l.groups {
		for _, p := range parts {
			all = append(all, p)
		}
	}
	return all
}

// Changed drops the share partitions that this broker does not lead any more, and those of
// topics that are gone. Leads returns the partition that it leads, nil if it does not.
func (l *Leader) Changed(leads func(topic metadata.TopicID, index int32) *partition.Partition) {
	for _, p := range l.list() {
		if leads(p.key.Topic, p.key.Index) != p.log {
			l.drop(p)
		}
	}
}

// evict drops share partitions that rest, until there is as much memory; false says that
// there is not. They are loaded again when they are next fetched.
func (l *Leader) evict(bytes int64) bool {
	now := time.Since(l.began)
	if last := time.Duration(l.evicted.Load()); last > 0 && now-last < evictEvery || !l.evicted.CompareAndSwap(int64(last), int64(now)) {
		return false
	}
	for _, p := range l.list() {
		if l.memory.Load()+bytes > l.budget {
			p.dropIfRests()
		}
	}
	return l.memory.Load()+bytes <= l.budget
}

// dropIfRests drops a share partition if nothing is lost by that, and no one waits for it.
func (p *part) dropIfRests() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isStored() && !p.fetching && p.waiters.none() {
		p.discard()
	}
}

// Refresh drops what rests of a group, whose offsets may have been altered or deleted without
// that the leader was told of it. The share partitions are loaded again.
func (l *Leader) Refresh(group string) {
	for _, p := range l.of(group) {
		p.dropIfRests()
	}
}

// isStored says that all there is of a share partition is stored.
func (p *part) isStored() bool {
	if p.window == nil || p.queue.busy() {
		return false
	}
	_, locked := p.window.NextExpiry()
	return !locked
}

// leave drops a share partition whose group has no session here any more, once there is
// nothing to it but what is stored: its offsets may be altered then, without that the leader
// is told of it. It must not be called under the lock of the share partition.
func (p *part) leave() {
	if !p.leader.opts.InUse(p.key.Group) {
		p.dropIfRests()
	}
}

// changed is to be called when the window may have changed, by who has the lock.
func (p *part) changed() {
	if p.dropped {
		return
	}
	size := int64(partSize + runSize*p.window.Runs())
	p.leader.memory.Add(size - p.size)
	p.size = size
	p.arm()
}

// arm sets the timer for the next lock that runs out.
func (p *part) arm() {
	at, ok := p.window.NextExpiry()
	switch {
	case !ok && p.locks != nil:
		p.locks.Stop()
	case !ok:
	case p.locks == nil:
		p.locks = time.AfterFunc(at.Sub(p.leader.now()), p.guarded(p.expire))
	default:
		p.locks.Reset(at.Sub(p.leader.now()))
	}
}

// expire releases what was held for too long.
func (p *part) expire() {
	p.releaseExpired()
	p.leave()
}

func (p *part) releaseExpired() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dropped {
		return
	}
	p.begin(p.window.Expire(p.leader.now()), nil)
	p.changed()
	p.waiters.wakeAll()
}
