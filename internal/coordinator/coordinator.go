// Package coordinator is the runtime around a pure core: it gives the core its
// inputs and carries out its effects. It knows no particular core; packages group
// and txn are two.
//
// Each partition of the core's topic is a shard with a lock. It loads its state
// by replaying the partition; from then on the
// goroutine that has an input for it, a connection's or a timer's, takes the lock
// and has the pump (package pump) step the core:
//
//	requests ─┐               ┌─ append  → log, one batch at a time
//	timers   ─┼→ pump → core ─┼─ replies → released once their records are durable
//	outcomes ─┘               ├─ sends   → other brokers, likewise
//	                          ├─ tasks   → a goroutine
//	                          └─ notes   → whoever made the coordinator
//
// All decisions are made in the core and in the pump, which are pure; this
// package adds the lock, the clock, the goroutines and the log. If an append
// fails, all requests that wait are answered NOT_COORDINATOR, the log is opened again, and a
// new core loads it to its true end.
package coordinator

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// Log is a partition of the core's topic.
type Log interface {
	// Reopen ends appends that are under way, so that none of them is stored later,
	// and makes Read go on to the true end of the log.
	Reopen(ctx context.Context) error
	// Append appends a batch and calls done, which must not block, when it is
	// durable or has failed, with the offset of its first record.
	Append(ctx context.Context, batch []byte, done func(base int64, err error))
	// MaxBatch is how many bytes of records fit into one batch. It is asked for
	// once for each load: the setting is fixed for internal topics.
	MaxBatch() int
	// Start returns the first offset.
	Start() int64
	// Read returns durable batches from an offset on, none at the end.
	Read(ctx context.Context, offset int64) ([]byte, error)
}

// Restarting is a Log whose server may stop and come back, maybe without the last that it
// acknowledged. It appends nothing then until it is opened again.
type Restarting interface {
	Log
	// Run returns the run in which Reopen has opened the log.
	Run() machine.Run
	// HasRestarted says whether that one is over. It is asked with each request.
	HasRestarted() bool
}

// Options of a coordinator.
type Options struct {
	Core machine.Definition
	// Log opens a partition of the core's topic.
	Log func(partition int32) Log
	// Send has a broker handle a request, which belongs to it then, and calls done
	// once with the answer, when ctx ends at the latest. It may block, also after that.
	// Nil if the core never sends.
	Send func(ctx context.Context, node int32, req kmsg.Request, done func(kmsg.Response, error))
	// Notes is given what the core of a shard tells, those of a shard in their order, before those
	// are answered who caused them. It must not block; what it is given is never changed
	// again. Optional.
	Notes func(shard int32, notes []machine.Note)
	// Panicked is told of each panic of a core. Optional.
	Panicked func()
	Logger   *slog.Logger
	Now      func() time.Time
	// Image returns the newest metadata that there is: what a request was held
	// against, or newer. Nil if the core does without.
	Image func() *metadata.Image
	// Leads says whether this broker may believe that it still leads a partition
	// under a leader epoch, by the newest metadata that there is. Nil for a
	// coordinator that always may.
	Leads func(partition, leaderEpoch int32) bool
}

// Coordinator runs the shards of this broker.
type Coordinator struct {
	opts   Options
	shards atomic.Pointer[[]*shard] // nil until there is a topic
	lastID atomic.Uint64
	weight atomic.Int64  // of the cores of all shards
	gate   chan struct{} // taken by shards that load
	tasks  chan struct{} // taken by tasks that run

	mu     sync.Mutex
	closed bool
}

// loadAtOnce is how many shards load at the same time.
const loadAtOnce = 4

// New returns a coordinator without shards.
func New(opts Options) *Coordinator {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Image == nil {
		opts.Image = func() *metadata.Image { return nil }
	}
	if opts.Leads == nil {
		opts.Leads = func(int32, int32) bool { return true }
	}
	return &Coordinator{opts: opts, gate: make(chan struct{}, loadAtOnce), tasks: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// NotLed stands for the leader epoch of a partition that another broker leads.
const NotLed = -1

// Lead makes this broker the coordinator of the partitions of the topic that it
// leads: epochs are its leader epochs, NotLed where it does not lead. It returns
// at once; the shards load a few at a time.
func (c *Coordinator) Lead(epochs []int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	var old []*shard
	if shards := c.shards.Load(); shards != nil {
		old = *shards
	}
	next := make([]*shard, len(epochs))
	var ended, begun []*shard
	for i, epoch := range epochs {
		if i < len(old) && old[i] != nil {
			if old[i].leaderEpoch == epoch {
				next[i] = old[i]
				continue
			}
			ended = append(ended, old[i])
		}
		if epoch != NotLed {
			next[i] = newShard(c, int32(i), epoch)
			begun = append(begun, next[i])
		}
	}
	c.shards.Store(&next)
	stopAll(ended)
	for _, s := range begun {
		s.start()
	}
}

// Close stops the shards. Requests that still wait are answered that this is not
// the coordinator any more.
func (c *Coordinator) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if shards := c.shards.Load(); shards != nil {
		stopAll(*shards)
	}
}

func stopAll(shards []*shard) {
	for _, s := range shards {
		if s != nil {
			s.end()
		}
	}
	for _, s := range shards {
		if s != nil {
			s.background.Wait()
		}
	}
}

// Changed tells the cores that these topics are not what they were.
func (c *Coordinator) Changed(before, after *metadata.Image, topics []string) {
	if len(topics) == 0 {
		return
	}
	e := machine.TopicsChanged{Topics: topics}
	for _, name := range topics {
		if old, t := before.Topic(name), after.Topic(name); old != nil && (t == nil || t.ID != old.ID) {
			e.Gone = append(e.Gone, name)
		}
	}
	c.Tell(e)
}

// Tell has every shard handle an event.
func (c *Coordinator) Tell(e machine.Event) {
	if shards := c.shards.Load(); shards != nil {
		for _, s := range *shards {
			if s != nil {
				s.tell(e)
			}
		}
	}
}

// PartitionFor returns the partition of the core's topic that a group, or a
// transactional id, belongs to.
func PartitionFor(id string, partitions int32) int32 { return journal.PartitionFor(id, partitions) }

// Client is who a request comes from.
type Client struct {
	ID   string
	Host string
	// Asker is who logged in, where that matters to a core.
	Asker metadata.Asker
}

// Do has a request about one group handled and returns the answer. It blocks
// for as long as the group wants the client to wait, or until ctx ends.
func (c *Coordinator) Do(ctx context.Context, groupID string, from Client, req kmsg.Request) kmsg.Response {
	shards := c.shards.Load()
	if shards == nil {
		return c.opts.Core.Fail(req, kerr.CoordinatorNotAvailable)
	}
	return c.do(ctx, (*shards)[PartitionFor(groupID, int32(len(*shards)))], from, req)
}

// DoAt has a request handled that is about one partition of the core's topic, such
// as a transaction marker.
func (c *Coordinator) DoAt(ctx context.Context, partition int32, from Client, req kmsg.Request) kmsg.Response {
	shards := c.shards.Load()
	if shards == nil || partition < 0 || int(partition) >= len(*shards) {
		return c.opts.Core.Fail(req, kerr.NotCoordinator)
	}
	return c.do(ctx, (*shards)[partition], from, req)
}

// Fail is the answer that tells a client of an error that is not about its
// request but about the coordinator.
func (c *Coordinator) Fail(req kmsg.Request, err *kerr.Error) kmsg.Response {
	return c.opts.Core.Fail(req, err)
}

// do has a request handled. A shard that is nil is another broker's.
func (c *Coordinator) do(ctx context.Context, s *shard, from Client, req kmsg.Request) kmsg.Response {
	kind := &c.opts.Core
	if s == nil || !c.opts.Leads(s.index, s.leaderEpoch) {
		return kind.Fail(req, kerr.NotCoordinator)
	}
	if s.phase.Load() == loading {
		if kind.WhileLoading != nil {
			if resp := kind.WhileLoading(req); resp != nil {
				return resp
			}
		}
		s.awaitLoad(ctx)
		if s.phase.Load() == loading {
			return kind.Fail(req, kerr.CoordinatorLoadInProgress)
		}
	}
	if s.reloadIfStale() {
		return kind.Fail(req, kerr.CoordinatorLoadInProgress)
	}
	if resp := s.ask(ctx, from, req); resp != nil && !s.reloadIfStale() {
		return resp
	}
	return kind.Fail(req, kerr.NotCoordinator)
}

// loadPatience is how long a request waits for a shard that loads for the first
// time. That is mostly a matter of milliseconds, and a client that is told to try
// again waits for longer.
const loadPatience = 500 * time.Millisecond

func (s *shard) awaitLoad(ctx context.Context) {
	patience := time.NewTimer(loadPatience)
	defer patience.Stop()
	select {
	case <-s.loaded:
	case <-s.ctx.Done():
	case <-patience.C:
	case <-ctx.Done():
	}
}
