package partition

import (
	"context"
	"errors"
	"time"

	"muster/internal/metadata"
)

const (
	// retryOpen is how often partitions are tried again that could not be opened.
	retryOpen = 300 * time.Millisecond
)

// openMissing opens the partitions of a topic that this broker leads and has not
// opened yet. What fails is tried again later: the store may be away, or another
// broker may have opened the log under an epoch that this one has not heard of.
func (m *Manager) openMissing(ctx context.Context, t *metadata.Topic) {
	var todo []int32
	if have := m.topic(t.Name); have != nil && have.id == t.ID {
		for i, p := range t.Partitions {
			if p.Leader == m.self && i < len(have.partitions) && have.partitions[i].Load() == nil {
				todo = append(todo, int32(i))
			}
		}
	}
	inParallel(todo, func(i int32) {
		p, err := open(ctx, &m.deps, t, i)
		if err != nil {
			m.missing.Store(true)
			m.deps.logger.Debug("partition not opened yet", "topic", t.Name, "partition", i, "error", err)
			return
		}
		if !m.install(t, p) {
			m.resign(ctx, p)
		}
	})
}

// install makes an opened partition known, unless the image has moved on.
func (m *Manager) install(t *metadata.Topic, p *Partition) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, have := m.image.Load().Topic(t.Name), m.topic(t.Name)
	want := metadata.Partition{Leader: m.self, LeaderEpoch: p.epoch}
	if now == nil || now.ID != t.ID || have == nil || have.id != t.ID || now.Partitions[p.index] != want || have.partitions[p.index].Load() != nil {
		return false
	}
	p.setConfig(&now.Config) // They may have changed since it was opened.
	have.partitions[p.index].Store(p)
	return true
}

// openRest tries again what could not be opened.
func (m *Manager) openRest(ctx context.Context) {
	if !m.missing.Swap(false) {
		return
	}
	for _, t := range m.image.Load().Topics() {
		m.openMissing(ctx, t)
	}
}

// Verify opens all logs again, to see whether they hold what readers were shown,
// after a store was away that may have lost something.
func (m *Manager) Verify(ctx context.Context) {
	inParallel(m.all(), func(p *Partition) {
		p.mu.Lock()
		p.failed.Store(true)
		if errors.Is(p.resting, errFull) {
			p.notBefore = time.Time{} // It may be another store by now.
		}
		p.mu.Unlock()
		if err := p.Reopen(ctx); err != nil {
			m.deps.logger.Debug("log not opened again yet", "topic", p.topic, "partition", p.index, "error", err)
		}
	})
}

// runShared does what a store needs that others use too, until ctx ends.
func (m *Manager) runShared(ctx context.Context) {
	every(ctx, retryOpen, m.openRest)
}
