// Package coordinator is the shell around the pure group coordinator: it gives
// package group its inputs and carries out its effects.
//
// Each partition of __consumer_offsets is a shard with a lock. It loads its state
// by replaying the partition; from then on who has an input for it, a connection
// or a timer, takes the lock and has the core step:
//
//	requests ─┐        ┌─ records → one batch → log
//	timers   ─┼→ Step ─┼─ timers  → heap
//	appended ─┘        ├─ replies → released once the records are durable
//	                   └─ journal → __group_journal
//
// While a batch is on its way to the disk, the records of further steps gather
// for the next one (group commit). A reply, also one without records, waits for
// all records before it: nobody reads what is not durable. If an append fails,
// the shard is dropped, everybody who waits is told NOT_COORDINATOR, and it is
// loaded again.
package coordinator

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// Log is a partition of __consumer_offsets.
type Log interface {
	// Append appends a batch and calls done, which must not block, when it is
	// durable or has failed.
	Append(ctx context.Context, batch []byte, done func(error))
	// Start returns the first offset.
	Start() int64
	// Read returns durable batches from an offset on, none at the end.
	Read(ctx context.Context, offset int64) ([]byte, error)
}

// Options of a coordinator.
type Options struct {
	// Log opens a partition of __consumer_offsets.
	Log func(partition int32) Log
	// Journal stores what happened to groups.
	Journal func(entries []group.Entry)
	Logger  *slog.Logger
	Config  group.Config
	Now     func() time.Time
	// Alive says whether this broker may believe that it still leads what it was
	// told to. Nil for a broker that is alone.
	Alive func() bool
}

// Coordinator runs the shards of this broker.
type Coordinator struct {
	opts   Options
	config atomic.Pointer[group.Config]
	shards atomic.Pointer[[]*shard] // nil until there is a __consumer_offsets
	lastID atomic.Uint64
	gate   chan struct{} // taken by shards that load

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
	if opts.Alive == nil {
		opts.Alive = func() bool { return true }
	}
	c := &Coordinator{opts: opts, gate: make(chan struct{}, loadAtOnce)}
	c.config.Store(&opts.Config)
	return c
}

// NotLed stands for the leader epoch of a partition that another broker leads.
const NotLed = -1

// Lead makes this broker the coordinator of the partitions of __consumer_offsets
// that it leads: epochs are its leader epochs, NotLed where it does not lead. It
// returns at once; the shards load a few at a time.
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

// Close stops the shards. Who still waits is told that this is not the
// coordinator any more.
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

// Configure changes the settings.
func (c *Coordinator) Configure(cfg group.Config) {
	c.config.Store(&cfg)
	c.broadcast(group.Configured{Config: cfg})
}

// TopicsDeleted removes the offsets of topics.
func (c *Coordinator) TopicsDeleted(topics []string) {
	c.broadcast(group.TopicsDeleted{Topics: topics})
}

func (c *Coordinator) broadcast(e group.Event) {
	if shards := c.shards.Load(); shards != nil {
		for _, s := range *shards {
			if s != nil {
				s.handle(e)
			}
		}
	}
}

// PartitionFor returns the partition of __consumer_offsets that a group belongs
// to.
func PartitionFor(groupID string, partitions int32) int32 {
	return group.PartitionFor(groupID, partitions)
}

// Client is who a request comes from.
type Client struct {
	ID   string
	Host string
}

// Do has a request about one group handled and returns the answer. It blocks
// for as long as the group wants the client to wait.
func (c *Coordinator) Do(ctx context.Context, groupID string, from Client, req kmsg.Request) kmsg.Response {
	shards := c.shards.Load()
	if shards == nil {
		return Failed(req, kerr.CoordinatorNotAvailable)
	}
	return (*shards)[group.PartitionFor(groupID, int32(len(*shards)))].do(ctx, from, req)
}

// do has a request handled. A shard that is nil is another broker's.
func (s *shard) do(ctx context.Context, from Client, req kmsg.Request) kmsg.Response {
	if s == nil || !s.c.opts.Alive() {
		return Failed(req, kerr.NotCoordinator)
	}
	if s.phase.Load() != active {
		if _, ok := req.(*kmsg.HeartbeatRequest); ok && s.phase.Load() == loading {
			// Kafka's rule: a member is not troubled by a load.
			return Failed(req, nil)
		}
		s.awaitLoad(ctx)
		if s.phase.Load() == loading {
			return Failed(req, kerr.CoordinatorLoadInProgress)
		}
	}
	resp, reply := s.ask(from, req)
	if resp != nil {
		return resp
	}
	select {
	case resp := <-reply:
		return resp
	case <-ctx.Done():
		return Failed(req, kerr.NotCoordinator)
	}
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
	case <-s.stop:
	case <-patience.C:
	case <-ctx.Done():
	}
}

func fresh() (b [16]byte) {
	_, _ = rand.Read(b[:]) // Never fails, by its documentation.
	return b
}
