package coordinator

import (
	"context"
	"errors"
	"time"

	"muster/internal/group"
	"muster/internal/record"
)

// retryLoad is how long a shard waits after a load that failed.
const retryLoad = 200 * time.Millisecond

// retriesBeforeWarning keeps loads that fail for a moment, as when leaders
// change, out of the log.
const retriesBeforeWarning = 10

// load makes the shard's state what its log says, and goes on until it has. It
// returns false if the shard ends meanwhile.
func (s *shard) load() bool {
	for attempt := 0; ; attempt++ {
		select {
		case s.c.gate <- struct{}{}:
		case <-s.stop:
			return false
		}
		core, err := s.replay()
		<-s.c.gate
		if err == nil {
			return s.begin(core)
		}
		if attempt == retriesBeforeWarning {
			s.c.opts.Logger.Warn("groups could not be loaded yet; trying again until they are", "shard", s.index, "error", err)
		}
		select {
		case <-s.stop:
			return false
		case <-time.After(retryLoad):
		}
	}
}

// begin begins a life of the shard with the state that was loaded.
func (s *shard) begin(core *group.Shard) bool {
	s.mu.Lock()
	defer s.finish()
	if s.phase.Load() == ended {
		return false
	}
	s.core, s.timers, s.waiting = core, timers{}, map[group.RequestID]*waiter{}
	s.gather, s.flying, s.inAir = batch{}, batch{}, false
	s.step(group.Loaded{})
	for _, e := range s.later {
		s.step(e)
	}
	s.later = nil
	s.phase.Store(active)
	return true
}

// replay reads the whole log into a new core.
func (s *shard) replay() (*group.Shard, error) {
	core := group.NewShard(*s.c.config.Load())
	offset := s.log.Start()
	for {
		b, err := s.log.Read(context.Background(), offset)
		if err != nil {
			return nil, err
		}
		if len(b) == 0 {
			return core, nil
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, err
			}
			if err := s.replayBatch(core, batch); err != nil {
				return nil, err
			}
			offset = batch.LastOffset() + 1
		}
	}
}

func (s *shard) replayBatch(core *group.Shard, b record.Batch) error {
	if b.Control() {
		return nil
	}
	return b.Each(func(r *record.Record) error {
		rec, err := group.DecodeRecord(r.Key, r.Value)
		switch {
		case errors.Is(err, group.ErrUnknownRecord):
			return nil // Of a newer version, or of another kind of group.
		case err != nil:
			// Losing one group is better than losing all of the shard.
			s.c.opts.Logger.Warn("a group record cannot be read and is left out", "shard", s.index, "offset", r.Offset, "error", err)
			return nil
		}
		core.Replay(rec)
		return nil
	})
}
