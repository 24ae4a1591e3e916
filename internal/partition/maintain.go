package partition

import (
	"context"
	"errors"
	"sync"
	"time"

	"muster/internal/store"
)

// Run applies retention and compaction, and makes durable in the background
// what producers did not wait for, until ctx ends. Each has a goroutine of its
// own, since a compaction may take minutes, and the others must not wait for it.
func (m *Manager) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { m.raises.run(ctx) })
	if m.shared {
		running.Go(func() { m.runShared(ctx) })
	} else {
		running.Go(func() { m.runFailed(ctx) })
	}
	if w, ok := m.deps.store.(store.Watcher); ok {
		running.Go(func() { m.watch(ctx, w) })
	}
	running.Go(func() {
		m.every(ctx, "log.retention.check.interval.ms", func() { m.each(ctx, "retention", (*Partition).Retain) })
	})
	running.Go(func() {
		m.every(ctx, "log.cleaner.backoff.ms", func() { m.each(ctx, "compaction", (*Partition).compact) })
	})
	running.Go(func() { m.every(ctx, "log.flush.scheduler.interval.ms", m.flushDirty) })
}

// every does something again and again, as often as a setting says now, until
// ctx ends.
func (m *Manager) every(ctx context.Context, setting string, do func()) {
	for {
		wait := time.NewTimer(m.cfg.Load().Duration(setting))
		select {
		case <-ctx.Done():
			wait.Stop()
			return
		case <-wait.C:
			do()
		}
	}
}

// each runs one kind of maintenance over all partitions. A failure is logged
// and does not keep the others from theirs.
func (m *Manager) each(ctx context.Context, what string, do func(*Partition, context.Context, time.Time) error) {
	now := m.deps.now()
	for _, p := range m.all() {
		if ctx.Err() != nil {
			return
		}
		err := do(p, ctx, now)
		if err != nil && !errors.Is(err, store.ErrClosed) && ctx.Err() == nil {
			m.deps.logger.Warn(what+" failed", "topic", p.topic, "partition", p.index, "error", err)
		}
	}
}

// Retain forgets idle producers, and deletes what is older than the topic's
// retention, or too much. The manager has it done from time to time.
func (p *Partition) Retain(ctx context.Context, now time.Time) error {
	p.expireProducers(now)
	cfg := p.cfg.Load()
	if !cfg.Delete || cfg.RetentionAge < 0 && cfg.RetentionBytes < 0 {
		return nil
	}
	return p.log.Load().Retain(ctx, store.Retention{
		Now: now, MaxAge: cfg.RetentionAge, MaxBytes: cfg.RetentionBytes, NextOffset: p.HighWatermark(),
	})
}

func (p *Partition) compact(ctx context.Context, now time.Time) error {
	cfg := p.cfg.Load()
	if !cfg.Compact {
		return nil
	}
	return p.log.Load().Compact(ctx, store.Compaction{
		Now: now, NextOffset: p.LastStableOffset(),
		MinLag: cfg.MinCompactLag, MaxLag: cfg.MaxCompactLag,
		MinDirtyRatio: cfg.MinDirtyRatio, DeleteRetention: cfg.DeleteRetention,
	})
}

func (m *Manager) noteDirty(p *Partition) {
	m.dirtyMu.Lock()
	defer m.dirtyMu.Unlock()
	m.dirty = append(m.dirty, p)
}

// flushDirty begins to make durable what was appended without waiting for it, so
// that a loss of power takes no more of it than came in one interval and in the
// time that the sync takes.
func (m *Manager) flushDirty() {
	m.dirtyMu.Lock()
	dirty := m.dirty
	m.dirty = nil
	m.dirtyMu.Unlock()
	for _, p := range dirty {
		p.dirty.Store(false)
		l := p.log.Load()
		l.Flush(func(err error) {
			if err != nil && !errors.Is(err, store.ErrClosed) {
				_ = p.syncFailed(l, err)
			}
		})
	}
}
