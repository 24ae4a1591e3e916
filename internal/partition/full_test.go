package partition

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
)

// TestAFullStoreIsLeftAlone has producers that try again and again on a Redis
// that takes nothing: the log that retention works on must not be another one each
// time.
func TestAFullStoreIsLeftAlone(t *testing.T) {
	server := redistest.Single(t, "maxmemory-policy noeviction")
	x := newIdle(t, server.URL(), 1)
	p := x.parts[0]
	put := func() *kerr.Error {
		batch, err := record.Build(record.PlainTemplate(), []record.Record{{Value: []byte("v")}})
		must(t, err)
		done := make(chan *kerr.Error, 1)
		p.Append(t.Context(), batch, Produce{Acks: 1}, func(a Appended) { done <- a.Err })
		return <-done
	}
	limit := func(memory string) {
		if _, err := server.Nodes[0].Do("CONFIG", "SET", "maxmemory", memory); err != nil {
			t.Fatal(err)
		}
	}
	rest := func(until time.Time) (before time.Time) {
		p.mu.Lock()
		defer p.mu.Unlock()
		before, p.notBefore = p.notBefore, until
		return before
	}
	refused := func(opensAgain bool) {
		t.Helper()
		log := p.log.Load()
		if err := put(); err != kerr.KafkaStorageError {
			t.Errorf("an append to a full store is answered with %v", err)
		}
		if opened := p.log.Load() != log; opened != opensAgain {
			t.Errorf("the log is opened again: %v", opened)
		}
	}
	later := time.Now().Add(time.Hour)

	if err := put(); err != nil {
		t.Fatal(err)
	}
	limit("1")
	refused(false)
	if !rest(time.Time{}).IsZero() {
		t.Error("a log that took something is left alone at its first failure")
	}
	refused(true)
	if until := rest(later); until.IsZero() || time.Until(until) > fullFor {
		t.Errorf("a log that took nothing is left alone until %v", until)
	}
	refused(false)
	rest(time.Time{})
	refused(true)
	rest(later)
	limit("0")
	x.Verify(t.Context())
	if err := put(); err != nil {
		t.Errorf("a log that was verified is left alone: %v", err)
	}

	for _, err := range []error{store.ErrUnavailable, store.ErrInvalidBatch, store.ErrFenced, context.Canceled} {
		x.Verify(t.Context()) // It has taken nothing since.
		rest(time.Time{})
		p.slots <- struct{}{}
		p.ended(p.log.Load(), &pendingAppend{producer: 1, request: request{done: func(Appended) {}}}, store.Appended{}, err)
		if !rest(time.Time{}).IsZero() {
			t.Errorf("a log is left alone as if its store were full: %v", err)
		}
	}
}

// TestSettingsThatChangeWhileAPartitionIsOpened has the image change between the
// opening of a log and its being known.
func TestSettingsThatChangeWhileAPartitionIsOpened(t *testing.T) {
	x := newIdle(t, redistest.Shared(t, redistest.KindSingle).URL(), 1)
	before := x.image.Load()
	old := before.Topic(testTopic)
	edit := before.Edit()
	changed := *old
	changed.Set = map[string]string{"retention.bytes": "1000"}
	edit.PutTopic(changed)
	must(t, x.Apply(t.Context(), before, edit.Image(), edit.Changed()))
	p, err := open(t.Context(), &x.deps, old, 0)
	must(t, err)
	x.topic(testTopic).partitions[0].Store(nil)
	if !x.install(old, p) || p.cfg.Load().RetentionBytes != 1000 {
		t.Errorf("a partition is known with retention.bytes=%d", p.cfg.Load().RetentionBytes)
	}
}
