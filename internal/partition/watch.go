package partition

import (
	"context"
	"time"

	"muster/internal/store"
)

// Redis clients and other brokers append to some logs without telling this broker. So the logs
// that someone waits for are watched, all of them at once: what it costs depends
// little on how many they are.
const (
	// watchPause is the time between two looks, if no one waits or much happens.
	watchPause = 50 * time.Millisecond
	// watchFor is how long one look waits for something to happen. For as long,
	// a log that someone has just begun to wait for is not watched.
	watchFor = 100 * time.Millisecond
	// watchSlack is how late the next look may come before readers look for
	// themselves.
	watchSlack = time.Second
	// watchAfter is how long a log is watched after someone waited for it.
	watchAfter = 2 * time.Second
)

// watch looks for records that others added to logs that someone waits for,
// until ctx ends.
func (m *Manager) watch(ctx context.Context, w store.Watcher) {
	for ctx.Err() == nil {
		if m.watchOnce(ctx, w) {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(watchPause):
		}
	}
}

// watchOnce says whether it waited in vain for something to happen. If it did
// not, the next look is not for now.
func (m *Manager) watchOnce(ctx context.Context, w store.Watcher) bool {
	var parts []*Partition
	var logs []store.Refresher
	for _, p := range m.all() {
		if l, ok := p.log.Load().Log.(store.Refresher); ok && p.waiters.lately(watchAfter) {
			parts, logs = append(parts, p), append(logs, l)
		}
	}
	if len(parts) == 0 {
		return false
	}
	until := time.Now().Add(watchFor + watchSlack)
	for _, p := range parts {
		p.watchedUntil.Store(until.UnixNano())
	}
	changed, err := w.AwaitChange(ctx, logs, watchFor)
	if err != nil {
		for _, p := range parts {
			p.watchedUntil.Store(0)
		}
	}
	some := make([]*Partition, len(changed))
	for i, at := range changed {
		some[i] = parts[at]
	}
	inParallel(some, func(p *Partition) { _ = p.Refresh(ctx) })
	return err == nil && len(changed) == 0
}

// watched says whether readers will hear of what others append, or have heard.
func (p *Partition) watched() bool { return time.Now().UnixNano() < p.watchedUntil.Load() }
