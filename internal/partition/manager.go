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
	Now    func() time.Time
	Logger *slog.Logger
}

// Manager holds the partitions that this broker leads, and keeps them as the
// image says.
type Manager struct {
	deps deps
	cfg  atomic.Pointer[config.Broker]

	mu     sync.RWMutex
	topics map[string]*topic

	dirtyMu sync.Mutex
	dirty   []*Partition
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
	m := &Manager{topics: map[string]*topic{}}
	m.deps = deps{
		store: opts.Store, now: opts.Now, logger: opts.Logger,
		flushAll: func() bool { return m.cfg.Load().Bool("muster.acks.all.flush") },
		expiry:   func() time.Duration { return m.cfg.Load().Duration("producer.id.expiration.ms") },
		dirtied:  m.noteDirty,
	}
	return m
}

// Get returns a partition, nil if this broker does not lead it.
func (m *Manager) Get(name string, index int32) *Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t := m.topics[name]
	if t == nil || index < 0 || int(index) >= len(t.partitions) {
		return nil
	}
	return t.partitions[index]
}

// Apply opens and closes partitions so that the named topics are as in the
// image after.
func (m *Manager) Apply(ctx context.Context, before, after *metadata.Image, topics []string) error {
	m.cfg.Store(after.Config)
	var errs []error
	for _, name := range topics {
		old, t := before.Topic(name), after.Topic(name)
		if old != nil && (t == nil || t.ID != old.ID) {
			errs = append(errs, m.remove(ctx, name))
		}
		if t != nil {
			errs = append(errs, m.update(ctx, t, old == nil && before.ClusterID != ""))
		}
	}
	return errors.Join(errs...)
}

// update opens what is new of a topic and passes on changed settings. What a
// deleted topic of the same name may have left behind goes first.
func (m *Manager) update(ctx context.Context, t *metadata.Topic, created bool) error {
	m.mu.RLock()
	old := m.topics[t.Name]
	m.mu.RUnlock()
	next := &topic{id: t.ID}
	if old != nil {
		next.partitions = append(next.partitions, old.partitions...)
	}
	for _, p := range next.partitions {
		p.setConfig(&t.Config)
	}
	for i := len(next.partitions); i < len(t.Partitions); i++ {
		if created || old != nil {
			tp := store.TopicPartition{Topic: t.Name, Partition: int32(i)}
			if err := m.deps.store.Delete(ctx, tp); err != nil {
				return err
			}
		}
		p, err := open(ctx, &m.deps, t, int32(i))
		if err != nil {
			return fmt.Errorf("open partition %s-%d: %w", t.Name, i, err)
		}
		next.partitions = append(next.partitions, p)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.topics[t.Name] = next
	return nil
}

// remove deletes a topic's partitions with their records.
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
		p.abandon()
		errs = append(errs, m.deps.store.Delete(ctx, p.id()))
	}
	return errors.Join(errs...)
}

// RemoveOrphans deletes logs that no topic of the image has: a crash came
// between a topic's deletion and that of its logs.
func (m *Manager) RemoveOrphans(ctx context.Context, image *metadata.Image) error {
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
	var errs []error
	for _, p := range m.all() {
		errs = append(errs, p.close(ctx))
	}
	return errors.Join(errs...)
}

func (m *Manager) all() []*Partition {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []*Partition
	for _, t := range m.topics {
		out = append(out, t.partitions...)
	}
	return out
}
