package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"runtime"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/coordinator/pump"
)

// unlock gives the lock back and begins an append, unless someone else is about to.
func (s *shard) unlock() {
	if s.soon {
		s.release()
		return
	}
	a, ok := s.pump.Append()
	if ok {
		s.background.Add(1)
	}
	s.release()
	if ok {
		s.append(&a)
	}
}

// appendSoon has another goroutine begin the next append, for a caller that must
// not wait for the log, and lets those run first who were just answered: what they
// ask for next is appended together, which spares the log a sync.
func (s *shard) appendSoon() {
	if s.soon || !s.pump.Ready() {
		return
	}
	s.soon = true
	s.background.Go(func() {
		runtime.Gosched()
		s.mu.Lock()
		s.soon = false
		s.unlock()
	})
}

// append appends a batch. The shard's end waits for that to begin.
func (s *shard) append(a *pump.Append) {
	defer s.background.Done()
	b, err := pump.Encode(&a.Batch, s.c.opts.Now())
	if err != nil {
		s.appended(a.Life, 0, err)
		return
	}
	life := a.Life
	s.log.Append(context.Background(), b, func(base int64, err error) { s.appended(life, base, err) })
}

// appended handles the outcome of an append. It may be called while someone
// waits for the log, and does not.
func (s *shard) appended(life uint64, base int64, err error) {
	if err != nil {
		s.logLost(err)
	}
	in := s.input()
	s.lock(&in)
	s.pump.Appended(life, in, base, err != nil)
	s.carryOut()
	s.appendSoon()
	s.release()
}

func (s *shard) logLost(err error) {
	level := slog.LevelError
	if errors.Is(err, kerr.NotLeaderForPartition) {
		level = slog.LevelDebug // Another broker leads now, or the store is away, which is told once.
	}
	s.c.opts.Logger.Log(context.Background(), level, "records of "+s.c.opts.Core.Name+" could not be stored; loading the shard again",
		"shard", s.index, "error", err)
}
