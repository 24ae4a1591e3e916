package native

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
	"muster/internal/store/redis/lease"
)

// TestUserOfTheDocsMayDoAllThatIsNeeded uses everything as the user that
// docs/redis.md tells people to make.
func TestUserOfTheDocsMayDoAllThatIsNeeded(t *testing.T) {
	ctx := context.Background()
	s := redistest.Single(t, "user muster on >secret ~test-* ~{test-* &test-* +@all -@admin -@dangerous +info +role +config|get")
	client := connect(t, "redis://muster:secret@"+s.Nodes[0].Addr())
	useLogs(t, redis.New(client, redis.Options{Prefix: "test-", ReplicaTimeout: 100 * time.Millisecond}))
	for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream, store.LayoutIndexed} {
		groups, stream := New(client, "test-"), redis.Stream{TopicPartition: store.TopicPartition{Topic: string(layout)}, Layout: layout}
		must(t, groups.CreateGroup(ctx, stream, "g", 0))
		must(t, groups.MoveGroup(ctx, stream, "g", 1))
		_, err := groups.Positions(ctx, []redis.Stream{stream}, "g")
		must(t, err)
		must(t, groups.DestroyGroups(ctx, []store.TopicPartition{stream.TopicPartition}, []string{"g"}))
	}
	l := lease.New(client, "test-", time.Minute)
	_, err := l.AcquireFree(ctx, 1, nil)
	must(t, err)
	_, err = l.Renew(ctx)
	must(t, err)
	must(t, l.Release(ctx))
	_, err = conn.Inspect(ctx, client)
	must(t, err)
	a := NewAssignments(client, "test-", slog.New(slog.DiscardHandler))
	must(t, a.Announce(ctx, assigned("g", "c", "h", 1)))
	listening, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	go conn.Watch(listening, client, time.Millisecond, func(bool, error, time.Duration) {})
	a.Listen(listening)
	if refused, err := s.Nodes[0].Do("ACL", "LOG"); err != nil || len(refused.([]any)) != 0 {
		t.Errorf("Redis refused: %v, %v", refused, err)
	}
}

// useLogs does with a log of each layout all that can be done, and leaves one
// that is empty.
func useLogs(t *testing.T, s *redis.Store) {
	ctx := context.Background()
	for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream, store.LayoutIndexed} {
		tp := store.TopicPartition{Topic: string(layout)}
		l, err := s.Open(ctx, tp, 1, store.LogConfig{Layout: layout, Replicas: 2})
		must(t, err)
		for range 50 {
			batch, err := record.Build(record.PlainTemplate(), []record.Record{{Timestamp: 1, Key: []byte("k"), Value: []byte("v")}})
			must(t, err)
			_, err = l.Append(ctx, batch)
			must(t, err)
		}
		flushed := make(chan error)
		l.Flush(func(err error) { flushed <- err })
		if <-flushed == nil {
			t.Error("there are no replicas, but it was flushed to one")
		}
		start, end := l.Bounds()
		_, err = l.Read(ctx, store.ReadRequest{Offset: start, NextOffset: end, MaxBytes: 1 << 20, MinOne: true})
		must(t, err)
		if r, ok := l.(store.Refresher); ok {
			_, err = r.Refresh(ctx)
			must(t, err)
		}
		_, _, err = l.OffsetForTimestamp(ctx, 1)
		must(t, err)
		_, _, err = l.MaxTimestamp(ctx)
		must(t, err)
		must(t, l.Compact(ctx, store.Compaction{Now: time.Now(), NextOffset: end}))
		must(t, l.Trim(ctx, start+1))
		must(t, l.Retain(ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: 1, NextOffset: end}))
		must(t, s.Delete(ctx, tp))
		_, err = s.Open(ctx, tp, 2, store.LogConfig{Layout: layout})
		must(t, err)
	}
	_, err := s.List(ctx)
	must(t, err)
	must(t, s.Close())
}
