package redis

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
)

// TestUserOfTheDocsMayDoAllThatIsNeeded uses everything as the user that
// docs/redis.md tells people to make.
func TestUserOfTheDocsMayDoAllThatIsNeeded(t *testing.T) {
	ctx := context.Background()
	s := redistest.Single(t, "user muster on >secret ~test-* ~{test-* &test-* +@all -@admin -@dangerous +info +role +config|get")
	url := "redis://muster:secret@" + s.Nodes[0].Addr()
	for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream} {
		w := newWriter(t, url, store.LogConfig{Layout: layout, Replicas: 2})
		if err := w.append(); err == nil {
			t.Error("there are no replicas, but it was flushed to one")
		}
		w.log.SetConfig(store.LogConfig{Layout: layout, Replicas: 1})
		must(t, w.appendUntil(50))
		w.wantAll(t)
		start, end := w.log.Bounds()
		_, _, err := w.log.OffsetForTimestamp(ctx, 1)
		must(t, err)
		_, _, err = w.log.MaxTimestamp(ctx)
		must(t, err)
		must(t, w.log.Compact(ctx, store.Compaction{Now: time.Now(), NextOffset: end}))
		must(t, w.log.Trim(ctx, start+1))
		must(t, w.log.Retain(ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: 1, NextOffset: end}))
		groups := NewNative(w.store.client, w.store.prefix)
		stream := Stream{TopicPartition: w.tp, Layout: layout}
		must(t, groups.CreateGroup(ctx, stream, "g", start))
		must(t, groups.MoveGroup(ctx, stream, "g", end))
		_, err = groups.Positions(ctx, []Stream{stream}, "g")
		must(t, err)
		must(t, groups.DestroyGroups(ctx, []store.TopicPartition{w.tp}, []string{"g"}))
		_, err = w.store.List(ctx)
		must(t, err)
		must(t, w.store.Delete(ctx, w.tp))
	}
	client := connect(t, url)
	lease := NewLeases(client, "test-", longLease)
	_, err := lease.AcquireFree(ctx, 1, nil)
	must(t, err)
	_, err = lease.Renew(ctx)
	must(t, err)
	must(t, lease.Release(ctx))
	_, err = Inspect(ctx, client)
	must(t, err)
	must(t, probe(ctx, client))
	a := NewAssignments(client, "test-", slog.New(slog.DiscardHandler))
	must(t, a.Announce(ctx, assigned("g", "c", "h", 1)))
	listening, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	a.Listen(listening)
	if refused, err := s.Nodes[0].Do("ACL", "LOG"); err != nil || len(refused.([]any)) != 0 {
		t.Errorf("Redis refused: %v, %v", refused, err)
	}
}
