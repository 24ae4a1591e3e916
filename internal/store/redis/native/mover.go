package native

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"muster/internal/store"
	"muster/internal/store/redis"
)

// How much a Mover does at most: how many groups and partitions may wait, how
// many entries Redis counts for all moves of one round, and how long a round
// may take.
const (
	moverLimit   = 100_000
	moverCounted = 20_000
	moverTimeout = 30 * time.Second
)

// MoverOptions are what a Mover can be told.
type MoverOptions struct {
	Every  time.Duration // how often a group is moved at most, 1 s if zero
	Logger *slog.Logger
}

// Mover moves groups off the request path: of the offsets that a group commits
// for a partition, only the newest counts when the next round comes. If too
// many are waiting, further ones are left out; they are moved by their next
// commit.
type Mover struct {
	native *Groups
	every  time.Duration
	logger *slog.Logger

	mu      sync.Mutex
	waiting map[moveKey]placement

	// busy is held while groups are moved or destroyed, so that a group which was
	// destroyed does not come back.
	busy chan struct{}
	// failing says that the last round had an error other than that Redis is
	// away. Only the holder of busy looks at it.
	failing bool

	stop chan struct{}
	done chan struct{}
}

// moveKey names a group in a partition.
type moveKey struct {
	tp    store.TopicPartition
	group string
}

// NewMover starts a Mover, which must be closed.
func NewMover(native *Groups, opts MoverOptions) *Mover {
	m := &Mover{
		native:  native,
		every:   cmp.Or(opts.Every, time.Second),
		logger:  opts.Logger,
		waiting: make(map[moveKey]placement),
		busy:    make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	if m.logger == nil {
		m.logger = slog.New(slog.DiscardHandler)
	}
	go m.run()
	return m
}

// Move has a group moved to a committed offset, soon. It never waits.
func (m *Mover) Move(s redis.Stream, group string, offset int64) {
	key := moveKey{s.TopicPartition, group}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.waiting[key]; ok || len(m.waiting) < moverLimit {
		m.waiting[key] = placement{s, group, offset}
	}
}

// Destroy destroys groups, and forgets the moves of them that wait.
func (m *Mover) Destroy(ctx context.Context, tps []store.TopicPartition, groups []string) error {
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	m.mu.Lock()
	maps.DeleteFunc(m.waiting, func(key moveKey, _ placement) bool { return slices.Contains(groups, key.group) })
	m.mu.Unlock()
	return m.native.DestroyGroups(ctx, tps, groups)
}

// Close moves what waits, for as long as ctx allows, and ends the Mover.
func (m *Mover) Close(ctx context.Context) {
	close(m.stop)
	<-m.done
	m.round(ctx)
}

func (m *Mover) acquire(ctx context.Context) error {
	select {
	case m.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *Mover) release() { <-m.busy }

func (m *Mover) run() {
	defer close(m.done)
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for {
		select {
		case <-m.stop:
			return
		case <-tick.C:
			ctx, cancel := context.WithTimeout(context.Background(), moverTimeout)
			m.round(ctx)
			cancel()
		}
	}
}

// round moves all that waits.
func (m *Mover) round(ctx context.Context) {
	if m.acquire(ctx) != nil {
		return
	}
	defer m.release()
	m.mu.Lock()
	list := slices.Collect(maps.Values(m.waiting))
	clear(m.waiting)
	m.mu.Unlock()
	if len(list) == 0 {
		return
	}
	errs := m.native.place(ctx, list, placeAny, min(maxCounted, moverCounted/len(list)))
	m.report(errs)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, err := range errs {
		key := moveKey{list[i].stream.TopicPartition, list[i].group}
		if _, newer := m.waiting[key]; !newer && errors.Is(err, store.ErrUnavailable) {
			m.waiting[key] = list[i]
		}
	}
}

// report logs the first of a row of errors. That Redis is away is told by
// conn.Watch.
func (m *Mover) report(errs []error) {
	for _, err := range errs {
		if err == nil || errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) {
			continue
		}
		if !m.failing {
			m.logger.Warn("redis groups cannot be moved to their committed offsets", "error", err)
		}
		m.failing = true
		return
	}
	m.failing = false
}
