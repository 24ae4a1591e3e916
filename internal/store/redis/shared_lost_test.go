package redis

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
)

// appendShared appends a change and returns how far the log was seen then.
func (b *bed) appendShared(l store.SharedLog, at store.Seen, value string) store.Seen {
	b.Helper()
	batch := b.change("a", value)
	must(b.T, l.AppendAt(b.ctx, at, batch))
	return seen(batch)
}

// wantProof uses a shared log from a position in every way.
func (b *bed) wantProof(l store.SharedLog, at store.Seen, want error) {
	b.Helper()
	_, err := l.Read(b.ctx, at, 0)
	if !errors.Is(err, want) {
		b.Errorf("read: %v, want %v", err, want)
	}
	if _, err := l.Read(b.ctx, at, 10*time.Millisecond); !errors.Is(err, want) {
		b.Errorf("read and wait: %v, want %v", err, want)
	}
	if err := l.Replicate(b.ctx, at, 2); want != nil && !errors.Is(err, want) {
		b.Errorf("replicate: %v, want %v", err, want)
	}
	if err := l.AppendAt(b.ctx, at, b.change("a", "x")); want != nil && !errors.Is(err, want) {
		b.Errorf("append: %v, want %v", err, want)
	}
}

// TestSharedLogTellsReadersThatItWentBack restores a server to what it was
// earlier, and lets another broker go on from there.
func TestSharedLogTellsReadersThatItWentBack(t *testing.T) {
	s := redistest.Single(t)
	b := newBedAt(t, s.URL(), store.LogConfig{})
	l := b.openShared(b.newStore(s.URL(), Options{ReplicaTimeout: 100 * time.Millisecond}))
	var at []store.Seen
	for i := range 5 {
		at = append(at, b.appendShared(l, append(at, store.Seen{})[max(i-1, 0)], fmt.Sprint(i)))
	}
	older := s.Nodes[0].Snapshot(t)
	ahead := b.appendShared(l, at[4], "lost")
	s.Nodes[0].Restore(t, older)
	must(t, redistest.Poll(time.Minute, func() error {
		_, err := l.Read(b.ctx, at[4], 0)
		return err
	}))
	b.wantProof(l, ahead, store.ErrLost)
	// Another batch takes the place of the one that was lost, and then more.
	again := b.appendShared(l, at[4], "other")
	if again.Next != ahead.Next {
		t.Fatalf("at %v and %v", again, ahead)
	}
	b.wantProof(l, ahead, store.ErrLost)
	b.appendShared(l, again, "more")
	b.wantProof(l, ahead, store.ErrLost)
	b.wantProof(l, at[2], nil)
	if err := l.AppendAt(b.ctx, at[2], b.change("a", "x")); !errors.Is(err, store.ErrMoved) {
		t.Errorf("an append of who is behind: %v", err)
	}
	_, err := s.Nodes[0].Do("FLUSHALL")
	must(t, err)
	b.wantProof(l, again, store.ErrLost)
}

// TestSharedLogTellsCompactionFromLoss compacts what a reader has seen last.
func TestSharedLogTellsCompactionFromLoss(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	l := b.openShared(b.newStore(single(t), Options{ReplicaTimeout: 100 * time.Millisecond}))
	var at []store.Seen
	for i := range 6 {
		at = append(at, b.appendShared(l, append(at, store.Seen{})[max(i-1, 0)], fmt.Sprint(i)))
	}
	must(t, l.Compact(b.ctx, at[3].Next))
	b.wantProof(l, at[2], store.ErrCompacted)
	b.wantProof(l, at[3], nil) // It is the newest of its key below the limit.
	b.wantProof(l, at[4], nil)
	b.wantProof(l, store.Seen{Next: at[4].Next, CRC: 7}, store.ErrLost)
	if state, n, _ := b.fold(l, store.Seen{}, 0); n != 3 || state["a"] != "5" {
		t.Errorf("%d records, %v", n, state)
	}
}

func TestSharedLogReplicates(t *testing.T) {
	s := redistest.Sentinel(t)
	b := newBedAt(t, s.URL(), store.LogConfig{})
	st := b.newStore(s.URL(), Options{ReplicaTimeout: 5 * time.Second})
	l := b.openShared(st)
	at := b.appendShared(l, store.Seen{}, "1")
	must(t, l.Replicate(b.ctx, at, 3))
	must(t, l.Replicate(b.ctx, at, 1))
	for _, n := range s.Replicas(s.Primary(t, "")) {
		n.Kill()
	}
	if err := l.Replicate(b.ctx, at, 2); !errors.Is(err, store.ErrNotReplicated) {
		t.Errorf("without replicas: %v", err)
	}
}

func TestSharedLogTellsTheServersTime(t *testing.T) {
	b := newBed(t, store.LogConfig{})
	before := time.Now().Add(-time.Second)
	now, err := b.openShared(b.store).Time(b.ctx)
	if err != nil || now.Before(before) || now.After(time.Now().Add(time.Second)) {
		t.Errorf("%v, %v", now, err)
	}
}
