package partition

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"muster/internal/store"
)

// retryFailed is how often logs that have failed are tried again, whether
// someone wants to append to them or not.
const retryFailed = 3 * time.Second

// Failed says how many partitions cannot be appended to because of their
// storage, and names one of them.
func (m *Manager) Failed() (count int, one string) {
	for _, p := range m.all() {
		if p.hasFailed() {
			count++
			one = p.name()
		}
	}
	return count, one
}

// runFailed opens logs again that have failed, until ctx ends. For a store that
// several brokers share, Verify does it when the store is back.
func (m *Manager) runFailed(ctx context.Context) {
	every(ctx, retryFailed, m.Mend)
}

// every does something at intervals until ctx ends.
func every(ctx context.Context, d time.Duration, do func(context.Context)) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(ctx)
		}
	}
}

// Mend opens logs again that have failed, by topic and partition, until one cannot be: that
// is said by Reopen, once for all of them.
func (m *Manager) Mend(ctx context.Context) {
	failed := slices.DeleteFunc(m.all(), func(p *Partition) bool { return !p.hasFailed() || p.cut.Load() })
	slices.SortFunc(failed, func(a, b *Partition) int {
		return cmp.Or(strings.Compare(a.topic, b.topic), cmp.Compare(a.index, b.index))
	})
	for _, p := range failed {
		p.failed.Store(true)
		if p.Reopen(ctx) != nil {
			return
		}
	}
}

// hasFailed says whether the log must be opened again, also if that is so since its
// store did something for itself and no one was told.
func (p *Partition) hasFailed() bool {
	f, ok := p.log.Load().Log.(store.Failer)
	return p.failed.Load() || ok && f.Failed()
}
