package redis

import (
	"context"

	"muster/internal/store"
)

func (l *log) OffsetForTimestamp(ctx context.Context, ts int64) (store.TimestampOffset, bool, error) {
	return store.TimestampOffset{}, false, store.ErrStorage
}
func (l *log) MaxTimestamp(ctx context.Context) (store.TimestampOffset, bool, error) {
	return store.TimestampOffset{}, false, store.ErrStorage
}
func (l *log) Trim(ctx context.Context, newStart int64) error            { return store.ErrStorage }
func (l *log) Retain(ctx context.Context, r store.Retention) error       { return store.ErrStorage }
func (l *log) Compact(ctx context.Context, c store.Compaction) error     { return store.ErrStorage }
func (l *sharedLog) Compact(ctx context.Context, nextOffset int64) error { return store.ErrStorage }
