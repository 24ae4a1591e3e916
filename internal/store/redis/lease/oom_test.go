package lease

import (
	"context"
	"testing"

	"muster/internal/redistest"
)

// TestNodeIDIsAcquiredWhenRedisIsFull has a broker start that shall free memory.
func TestNodeIDIsAcquiredWhenRedisIsFull(t *testing.T) {
	ctx, s := context.Background(), redistest.Single(t, "maxmemory 1kb", "maxmemory-policy noeviction")
	l := New(connect(t, s.URL()), "p", longLease)
	if _, err := l.AcquireFree(ctx, 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if ok, err := l.Renew(ctx); !ok || err != nil {
		t.Errorf("renewing: %v, %v", ok, err)
	}
	if err := l.Release(ctx); err != nil {
		t.Error(err)
	}
}
