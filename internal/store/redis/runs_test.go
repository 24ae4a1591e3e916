package redis

import (
	"errors"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis/conn"
)

// restartBed is a log in a Redis that is its own, on a client that knows restarts.
func restartBed(t *testing.T) (*bed, *redistest.Server) {
	server := redistest.Single(t)
	b := newBedAt(t, server.URL(), store.LogConfig{Layout: store.LayoutLog})
	runs := &conn.Runs{}
	client, err := conn.Connect(t.Context(), server.URL(), conn.Options{Runs: runs})
	must(t, err)
	t.Cleanup(client.Close)
	b.store = New(client, Options{Prefix: b.prefix, Runs: runs, Timeout: patience})
	t.Cleanup(func() { _ = b.store.Close() })
	return b, server
}

// openAgain opens the log once the server is there again, which was shown to end somewhere.
func (b *bed) openAgain(shown int64) store.Run {
	b.Helper()
	b.cfg.Shown = shown
	var l store.Log
	must(b.T, redistest.Poll(time.Minute, func() (err error) {
		l, err = b.store.Open(b.ctx, b.at, 1, b.cfg)
		return err
	}))
	b.log = l.(store.Pipelined)
	return l.(store.Restarting).Run()
}

// A handle of before a restart appends nothing, though its log has lost nothing: others may.
func TestAHandleOfBeforeARestartAppendsNothing(t *testing.T) {
	t.Run("which somebody has noticed", func(t *testing.T) { appendsNothing(t, true) })
	t.Run("which it notices itself", func(t *testing.T) { appendsNothing(t, false) })
}

func appendsNothing(t *testing.T, noticed bool) {
	b, server := restartBed(t)
	b.open(1)
	b.append(b.log, b.valued("kept"))
	old := b.log
	if old.(store.Restarting).Failed() {
		t.Error("it has failed at once")
	}
	server.Nodes[0].Kill()
	// The connection is known to be gone, so that the next command makes another.
	redistest.Eventually(t, "the end to be noticed", func() bool { _, err := b.store.List(b.ctx); return err != nil })
	server.Nodes[0].Start(t)
	if noticed {
		redistest.Eventually(t, "the restart to be noticed", func() bool {
			_, _ = b.store.List(b.ctx)
			return old.(store.Restarting).Failed()
		})
	}
	for range 3 {
		if _, err := old.Append(b.ctx, b.valued("refused")); err == nil || noticed && !errors.Is(err, store.ErrFailed) {
			t.Errorf("it appends: %v", err)
		}
	}
	b.openAgain(1)
	if b.log.(store.Restarting).Failed() {
		t.Error("the next has failed at once")
	}
	if at := b.append(b.log, b.valued("next")); at.BaseOffset != 1 {
		t.Errorf("the next is stored at %d", at.BaseOffset)
	}
}

// What was found when a log was first opened in a run is known to those who open it later.
func TestALogKnowsWhereARunBeganAndWhatItLost(t *testing.T) {
	b, server := restartBed(t)
	b.open(1)
	first := b.log.(store.Restarting).Run()
	if first.ID == "" || first.Began != 0 || first.Lost != 0 {
		t.Errorf("a new log: %+v", first)
	}
	b.append(b.log, b.valued("kept", "kept"))
	if run := b.openAgain(0); run != first {
		t.Errorf("opened again in the same run: %+v", run)
	}
	restart := func() {
		server.Nodes[0].Kill()
		server.Nodes[0].Start(t)
	}
	restart()
	second := b.openAgain(2)
	if second.ID == first.ID || second.Began != 2 || second.Lost != 0 {
		t.Errorf("nothing is lost: %+v", second)
	}
	older := server.Nodes[0].Snapshot(t)
	b.append(b.log, b.valued("lost"))
	server.Nodes[0].Restore(t, older)
	third := b.openAgain(3)
	if third.Began != 2 || third.Lost != 2 {
		t.Errorf("a record is lost: %+v", third)
	}
	b.append(b.log, b.valued("next"))
	if run := b.openAgain(0); run != third {
		t.Errorf("opened later in the same run: %+v, not %+v", run, third)
	}
	restart()
	if run := b.openAgain(3); run.Began != 3 || run.Lost != 2 {
		t.Errorf("nothing is lost since: %+v", run)
	}
	b.cfg.Lost = 3
	if run := b.openAgain(3); run.Lost != 3 {
		t.Errorf("somebody remembers what the server has forgotten: %+v", run)
	}
	b.append(b.log, b.valued("last"))
	b.cfg.Lost = 0
	restart()
	if run := b.openAgain(0); run.Lost != 4 {
		t.Errorf("nobody knows what is lost: %+v", run)
	}
}
