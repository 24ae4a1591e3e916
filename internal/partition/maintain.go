package partition

import (
	"context"
	"errors"
	"sync"
	"time"

	"muster/internal/store"
)

// Run applies retention and compaction, and makes durable in the background
// what producers did not wait for, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	var shared sync.WaitGroup
	defer shared.Wait()
	if m.shared {
		shared.Go(func() { m.runShared(ctx) })
	}
	if w, ok := m.deps.store.(store.Watcher); ok {
		shared.Go(func() { m.watch(ctx, w) })
	}
	cfg := m.cfg.Load()
	retention := time.NewTicker(cfg.Duration("log.retention.check.interval.ms"))
	defer retention.Stop()
	cleaner := time.NewTicker(cfg.Duration("log.cleaner.backoff.ms"))
	defer cleaner.Stop()
	flush := time.NewTicker(cfg.Duration("log.flush.scheduler.interval.ms"))
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-retention.C:
			m.each(ctx, "retention", (*Partition).retain)
		case <-cleaner.C:
			m.each(ctx, "compaction", (*Partition).compact)
		case <-flush.C:
			m.flushDirty()
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

func (p *Partition) retain(ctx context.Context, now time.Time) error {
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
		Now: now, NextOffset: p.HighWatermark(),
		MinLag: cfg.MinCompactLag, MaxLag: cfg.MaxCompactLag,
		MinDirtyRatio: cfg.MinDirtyRatio, DeleteRetention: cfg.DeleteRetention,
	})
}

func (m *Manager) noteDirty(p *Partition) {
	m.dirtyMu.Lock()
	defer m.dirtyMu.Unlock()
	m.dirty = append(m.dirty, p)
}

// flushDirty makes durable what was appended without waiting for it, so that a
// loss of power takes no more than about one interval of it.
func (m *Manager) flushDirty() {
	m.dirtyMu.Lock()
	dirty := m.dirty
	m.dirty = nil
	m.dirtyMu.Unlock()
	for _, p := range dirty {
		p.dirty.Store(false)
		l := p.log.Load().Log
		l.Flush(func(err error) {
			if err != nil && !errors.Is(err, store.ErrClosed) {
				_ = p.syncFailed(l, err)
			}
		})
	}
}
