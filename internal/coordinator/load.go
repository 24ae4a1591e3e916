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
// returns false if the shard is stopped meanwhile.
func (s *shard) load(ctx context.Context) bool {
	s.phase.Store(loading)
	for attempt := 0; ; attempt++ {
		select {
		case s.c.gate <- struct{}{}:
		case <-s.stop:
			return false
		}
		err := s.replay(ctx)
		<-s.c.gate
		if err == nil {
			s.phase.Store(active)
			return true
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

// replay reads the whole log into a new core.
func (s *shard) replay(ctx context.Context) error {
	s.epoch++
	s.core = group.NewShard(*s.c.config.Load())
	s.timers, s.waiting = timers{}, map[group.RequestID]*waiter{}
	s.gather, s.flying, s.inAir = batch{}, batch{}, false
	offset := s.log.Start()
	for {
		b, err := s.log.Read(ctx, offset)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			break
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return err
			}
			if err := s.replayBatch(batch); err != nil {
				return err
			}
			offset = batch.LastOffset() + 1
		}
	}
	s.step(group.Loaded{})
	return nil
}

func (s *shard) replayBatch(b record.Batch) error {
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
		s.core.Replay(rec)
		return nil
	})
}
