package partition

import (
	"context"
	"sync"
	"time"

	"muster/internal/store"
)

// raises are the partitions that wait for a higher leader epoch. They ask from
// under their lock, and the metadata is changed without it.
type raises struct {
	raise func(ctx context.Context, topic string, partition, from, above int32) error
	wake  chan struct{}

	mu   sync.Mutex
	todo map[store.TopicPartition]raise
}

// raise says which leader epoch a partition has, and which it must exceed.
type raise struct{ from, above int32 }

func newRaises(do func(ctx context.Context, topic string, partition, from, above int32) error) raises {
	return raises{raise: do, wake: make(chan struct{}, 1), todo: map[store.TopicPartition]raise{}}
}

func (r *raises) want(tp store.TopicPartition, from, above int32) {
	r.mu.Lock()
	r.todo[tp] = raise{from, max(from, above)}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run raises epochs until ctx ends. What fails is tried again: the metadata may
// be away as well.
func (r *raises) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		if r.work(ctx) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryOpen):
		}
	}
}

// RaiseEpochs asks for the leader epochs that partitions want right now, for a caller who
// has no goroutines run.
func (m *Manager) RaiseEpochs(ctx context.Context) { m.raises.work(ctx) }

// work raises what is wanted, and says whether all of it was.
func (r *raises) work(ctx context.Context) bool {
	r.mu.Lock()
	todo := r.todo
	r.todo = map[store.TopicPartition]raise{}
	r.mu.Unlock()
	done := true
	for tp, x := range todo {
		if err := r.raise(ctx, tp.Topic, tp.Partition, x.from, x.above); err != nil {
			r.want(tp, x.from, x.above)
			done = false
		}
	}
	return done
}
