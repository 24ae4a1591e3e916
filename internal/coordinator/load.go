package coordinator

import (
	"errors"
	"time"

	"muster/internal/coordinator/pump"
	"muster/internal/machine"
	"muster/internal/record"
)

// retryLoad is how long a shard waits after a load that failed.
const retryLoad = 200 * time.Millisecond

// retriesBeforeWarning keeps loads that fail for a moment, as when leaders
// change, out of the log.
const retriesBeforeWarning = 10

// load makes a core for a life of the pump by replaying the log, and goes on
// until it has. It returns false if the shard ends meanwhile.
func (s *shard) load(life uint64) bool {
	for attempt := 0; ; attempt++ {
		select {
		case s.c.gate <- struct{}{}:
		case <-s.ctx.Done():
			return false
		}
		core, run, err := s.replaySafely()
		<-s.c.gate
		if err == nil {
			return s.begin(life, core, run)
		}
		if attempt == retriesBeforeWarning {
			s.c.opts.Logger.Warn(s.c.opts.Core.Name+" could not be loaded yet; trying again until they are", "shard", s.index, "error", err)
		}
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(retryLoad):
		}
	}
}

// begin begins a life of the shard with the core that was loaded.
func (s *shard) begin(life uint64, core machine.Core, run machine.Run) (begun bool) {
	s.with(func(p *pump.Pump, in machine.Input) {
		if begun = p.Begin(life, core, machine.Loaded{Epoch: s.leaderEpoch, Run: run}, in); begun {
			s.phase.Store(active)
		}
	})
	return begun
}

// errReplay is that the core panicked at what is in the log.
var errReplay = errors.New("the log makes the coordinator panic; the log of the broker says where")

// replaySafely has a panic be a load that failed.
func (s *shard) replaySafely() (core machine.Core, run machine.Run, err error) {
	defer func() {
		if v := recover(); v != nil {
			s.panicked(v)
			core, err = nil, errReplay
		}
	}()
	return s.replay()
}

// replay reads the whole log into a new core. The log is opened again first:
// what a life that is over, or a shard that this one replaces, asked it to append
// may be in it, or may even arrive later.
func (s *shard) replay() (core machine.Core, run machine.Run, err error) {
	if err := s.log.Reopen(s.ctx); err != nil {
		return nil, run, err
	}
	if s.restarts != nil {
		run = s.restarts.Run()
	}
	s.maxBatch.Store(int64(s.log.MaxBatch()))
	core = s.c.opts.Core.New()
	offset := s.log.Start()
	decode, done := s.reader()
	var records []machine.StoredRecord
	for {
		b, err := s.log.Read(s.ctx, offset)
		if err != nil {
			return nil, run, err
		}
		if len(b) == 0 {
			return core, run, nil
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, run, err
			}
			stored, err := pump.DecodeInto(records, batch, decode, s.unreadable)
			if err != nil {
				return nil, run, err
			}
			core.Replay(stored)
			done()
			records = stored.Records
			offset = batch.LastOffset() + 1
		}
	}
}

// Reload has those shards loaded again whose log may have lost what they know.
func (c *Coordinator) Reload() {
	shards := c.shards.Load()
	if shards == nil {
		return
	}
	for _, s := range *shards {
		if s != nil {
			s.reloadIfStale()
		}
	}
}

// reloadIfStale has the shard loaded again if the server that has its log was started again
// since the last load: what it knows may be what the log has lost.
func (s *shard) reloadIfStale() bool {
	if s.restarts == nil || !s.restarts.HasRestarted() {
		return false
	}
	s.with(func(p *pump.Pump, _ machine.Input) {
		// Under the lock, lest a load that has just ended be thrown away.
		if s.restarts.HasRestarted() {
			p.Reload()
		}
	})
	return true
}

// reader returns what decodes the records of one load.
func (s *shard) reader() (decode func(key, value []byte) (machine.Record, error), done func()) {
	if s.c.opts.Core.Reader == nil {
		return s.c.opts.Core.Decode, func() {}
	}
	return s.c.opts.Core.Reader()
}

func (s *shard) unreadable(offset int64, err error) {
	s.c.opts.Logger.Warn("a record of "+s.c.opts.Core.Name+" cannot be read and is left out", "shard", s.index, "offset", offset, "error", err)
}
