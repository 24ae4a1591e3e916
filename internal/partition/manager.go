package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
)

// Options of a manager.
type Options struct {
	Store  store.Store
	Self   int32 // node id of this broker
	Now    func() time.Time
	Logger *slog.Logger
	// Alive says whether this broker may believe that it still leads what the
	// image says. Nil for a broker with a store of its own.
	Alive func() bool
	// Raise gives a partition that this broker leads under an epoch a higher
	// one, which is above another one too. The manager hears of it by Apply.
	Raise func(ctx context.Context, topic string, partition, from, above int32) error
	// Coordinator is asked about transactions. Nil if there are none.
	Coordinator TxnCoordinator
	// Later does something after a while, on a goroutine of its own. Nil for what
	// everybody but the simulator wants.
	Later func(after time.Duration, do func())
}

// Manager holds the partitions that this broker leads, and keeps them as the
// image says.
type Manager struct {
	deps   deps
	self   int32
	alive  func() bool
	shared bool // other brokers use the store too
	cfg    atomic.Pointer[config.Broker]
	image  atomic.Pointer[metadata.Image]

	mu      sync.RWMutex
	topics  map[string]*topic
	missing atomic.Bool // a partition that this broker leads could not be opened yet

	dirtyMu sync.Mutex
	dirty   []*Partition

	raises raises
}

// topic is a topic's partitions, nil where this broker does not lead.
type topic struct {
	id         metadata.TopicID
	partitions []*Partition
}

// NewManager returns a manager without partitions.
func NewManager(opts Options) *Manager {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Alive == nil {
		opts.Alive = func() bool { return true }
	}
	if opts.Raise == nil {
		opts.Raise = func(context.Context, string, int32, int32, int32) error { return nil }
	}
	if opts.Later == nil {
		opts.Later = later
	}
	m := &Manager{topics: map[string]*topic{}, self: opts.Self, alive: opts.Alive, raises: newRaises(opts.Raise)}
	_, m.shared = opts.Store.(store.Shared)
	m.deps = deps{
		store: opts.Store, now: opts.Now, logger: opts.Logger,
		flushAll: func() bool { return m.cfg.Load().Bool("muster.acks.all.flush") },
		expiry:   func() time.Duration { return m.cfg.Load().Duration("producer.id.expiration.ms") },
		dirtied:  m.noteDirty,
		raise:    m.raises.want,

		coordinator: opts.Coordinator, later: opts.Later,
	}
	return m
}

// later does something after a while, or at once, which needs no timer.
func later(after time.Duration, do func()) {
	if after <= 0 {
		go do()
		return
	}
	time.AfterFunc(after, do)
}

// Get returns a partition, nil if this broker does not lead it.
func (m *Manager) Get(name string, index int32) *Partition {
	if !m.alive() {
		return nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	t := m.topics[name]
	if t == nil || index < 0 || int(index) >= len(t.partitions) {
		return nil
	}
	if p := t.partitions[index]; p != nil && !p.cut.Load() {
		return p
	}
	return nil
}

// Apply opens and closes partitions so that the named topics are as in the
// image after.
func (m *Manager) Apply(ctx context.Context, before, after *metadata.Image, topics []string) error {
	m.cfg.Store(after.Config)
	m.image.Store(after)
	return allOf(topics, func(name string) (err error) {
		old, t := before.Topic(name), after.Topic(name)
		if old != nil && (t == nil || t.ID != old.ID) {
			err = m.remove(ctx, name)
		}
		if t != nil {
			err = errors.Join(err, m.update(ctx, t, old == nil && before.ClusterID != ""))
		}
		return err
	})
}

// update closes what this broker does not lead any more of a topic, opens what
// is new, and passes on changed settings.
func (m *Manager) update(ctx context.Context, t *metadata.Topic, created bool) error {
	m.mu.RLock()
	old := m.topics[t.Name]
	m.mu.RUnlock()
	next := &topic{id: t.ID, partitions: make([]*Partition, len(t.Partitions))}
	known := 0
	if old != nil {
		known = copy(next.partitions, old.partitions)
	}
	var lost []*Partition
	for i, p := range next.partitions {
		if p == nil {
			continue
		}
		if t.Partitions[i] != (metadata.Partition{Leader: m.self, LeaderEpoch: p.epoch}) {
			lost = append(lost, p)
			next.partitions[i] = nil
			continue
		}
		p.setConfig(&t.Config)
	}
	m.mu.Lock()
	m.topics[t.Name] = next
	m.mu.Unlock()
	inParallel(lost, func(p *Partition) { m.resign(ctx, p) })
	if m.shared {
		m.openMissing(ctx, t)
		return nil
	}
	return m.openNew(ctx, t, next, known, created || old != nil)
}

// resign gives up a partition that another broker leads now.
func (m *Manager) resign(ctx context.Context, p *Partition) {
	if err := p.close(ctx); err != nil {
		m.deps.logger.Warn("partition not closed cleanly", "topic", p.topic, "partition", p.index, "error", err)
	}
}

// openNew opens the partitions that are not, of a store that nobody else uses.
// What a deleted topic of the same name may have left behind of those from known
// on goes first. A log that knows a higher epoch is opened when it has a new one.
func (m *Manager) openNew(ctx context.Context, t *metadata.Topic, into *topic, known int, created bool) error {
	var todo []int32
	for i := range t.Partitions {
		if into.partitions[i] == nil {
			todo = append(todo, int32(i))
		}
	}
	return allOf(todo, func(i int32) error {
		if created && int(i) >= known {
			if err := m.deps.store.Delete(ctx, store.TopicPartition{Topic: t.Name, Partition: i}); err != nil {
				return err
			}
		}
		p, err := open(ctx, &m.deps, t, i)
		if errors.Is(err, store.ErrFenced) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("open partition %s-%d: %w", t.Name, i, err)
		}
		m.mu.Lock()
		into.partitions[i] = p
		m.mu.Unlock()
		return nil
	})
}

// remove ends a topic's partitions, and deletes their records if this broker is
// alone: otherwise the broker that deleted the topic does that.
func (m *Manager) remove(ctx context.Context, name string) error {
	m.mu.Lock()
	t := m.topics[name]
	delete(m.topics, name)
	m.mu.Unlock()
	if t == nil {
		return nil
	}
	var errs []error
	for _, p := range t.partitions {
		switch {
		case p == nil:
		case m.shared:
			m.resign(ctx, p)
		default:
			p.abandon()
			errs = append(errs, m.deps.store.Delete(ctx, p.id()))
		}
	}
	return errors.Join(errs...)
}

// RemoveOrphans deletes logs that no topic of the image has: a crash came
// between a topic's deletion and that of its logs. In a store that others use,
// what is not known is theirs.
func (m *Manager) RemoveOrphans(ctx context.Context, image *metadata.Image) error {
	if m.shared {
		return nil
	}
	logs, err := m.deps.store.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, tp := range logs {
		t := image.Topic(tp.Topic)
		if tp.Topic == metadata.ClusterMetadataTopic || t != nil && int(tp.Partition) < len(t.Partitions) {
			continue
		}
		m.deps.logger.Info("removing the log of a deleted topic", "topic", tp.Topic, "partition", tp.Partition)
		errs = append(errs, m.deps.store.Delete(ctx, tp))
	}
	return errors.Join(errs...)
}

// Close closes all partitions; their store is still open.
func (m *Manager) Close(ctx context.Context) error {
	return allOf(m.all(), func(p *Partition) error { return p.leave(ctx) })
}

func (m *Manager) all() []*Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []*Partition
	for _, t := range m.topics {
		for _, p := range t.partitions {
			if p != nil {
				out = append(out, p)
			}
		}
	}
	return out
}
