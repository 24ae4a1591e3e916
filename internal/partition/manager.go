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

	topics  sync.Map    // of *topic by name: each read and write looks partitions up, without a lock
	mu      sync.Mutex  // of those who change them
	missing atomic.Bool // a partition that this broker leads could not be opened yet

	dirtyMu sync.Mutex
	dirty   []*Partition

	raises raises
}

// topic is a topic's partitions, nil where this broker does not lead.
type topic struct {
	id         metadata.TopicID
	partitions []atomic.Pointer[Partition]
}

func (m *Manager) topic(name string) *topic {
	t, _ := m.topics.Load(name)
	found, _ := t.(*topic)
	return found
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
	m := &Manager{self: opts.Self, alive: opts.Alive, raises: newRaises(opts.Raise)}
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
	t := m.topic(name)
	if t == nil || index < 0 || int(index) >= len(t.partitions) {
		return nil
	}
	if p := t.partitions[index].Load(); p != nil && !p.cut.Load() {
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
	next, old, lost := m.replace(t)
	known := 0
	if old != nil {
		known = min(len(old.partitions), len(next.partitions))
	}
	inParallel(lost, func(p *Partition) { m.resign(ctx, p) })
	if m.shared {
		m.openMissing(ctx, t)
		return nil
	}
	return m.openNew(ctx, t, next, known, created || old != nil)
}

// replace makes the new partitions of a topic known, with what this broker goes on
// to lead, and returns those that it does not.
func (m *Manager) replace(t *metadata.Topic) (next, old *topic, lost []*Partition) {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, old = &topic{id: t.ID, partitions: make([]atomic.Pointer[Partition], len(t.Partitions))}, m.topic(t.Name)
	defer m.topics.Store(t.Name, next)
	if old == nil {
		return next, nil, nil
	}
	for i := range min(len(old.partitions), len(next.partitions)) {
		switch p := old.partitions[i].Load(); {
		case p == nil:
		case t.Partitions[i] != metadata.Partition{Leader: m.self, LeaderEpoch: p.epoch}:
			lost = append(lost, p)
		default:
			p.setConfig(&t.Config)
			next.partitions[i].Store(p)
		}
	}
	return next, old, lost
}

// resign gives up a partition that another broker leads now.
func (m *Manager) resign(ctx context.Context, p *Partition) {
	if err := p.close(ctx); err != nil {
		m.deps.logger.Warn("partition not closed cleanly", "topic", p.topic, "partition", p.index, "error", err)
	}
}

// openNew opens the partitions that are not, of a store that no one else uses.
// What a deleted topic of the same name may have left behind of those from known
// on goes first. A log that knows a higher epoch is opened when it has a new one.
func (m *Manager) openNew(ctx context.Context, t *metadata.Topic, into *topic, known int, created bool) error {
	var todo []int32
	for i := range t.Partitions {
		if into.partitions[i].Load() == nil {
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
		into.partitions[i].Store(p)
		return nil
	})
}

// remove ends a topic's partitions, and deletes their records if this broker is
// alone: otherwise the broker that deleted the topic does that.
func (m *Manager) remove(ctx context.Context, name string) error {
	m.mu.Lock()
	t := m.topic(name)
	m.topics.Delete(name)
	m.mu.Unlock()
	if t == nil {
		return nil
	}
	var errs []error
	for i := range t.partitions {
		switch p := t.partitions[i].Load(); {
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
	var out []*Partition
	for _, t := range m.topics.Range {
		for i := range t.(*topic).partitions {
			if p := t.(*topic).partitions[i].Load(); p != nil {
				out = append(out, p)
			}
		}
	}
	return out
}
