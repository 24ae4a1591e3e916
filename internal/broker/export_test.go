package broker

import (
	"context"
	"time"

	"muster/internal/partition"
)

// ResolveOnce aborts orphans as if it were a certain time.
func (b *Broker) ResolveOnce(ctx context.Context, now time.Time) error {
	return b.resolveOnce(ctx, now)
}

// Partition returns a partition that the broker leads.
func (b *Broker) Partition(topic string, index int32) *partition.Partition {
	return b.manager.Get(topic, index)
}

// Deaf has the broker not answer requests of its own until undo is called.
func (b *Broker) Deaf() (undo func()) {
	h := b.front.handler.Swap(nil)
	return func() { b.front.handler.Store(h) }
}
