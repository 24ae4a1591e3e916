package coordinator

import (
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
		core, err := s.replay()
		<-s.c.gate
		if err == nil {
			return s.begin(life, core)
		}
		if attempt == retriesBeforeWarning {
			s.c.opts.Logger.Warn(s.c.opts.Kind.Name+" could not be loaded yet; trying again until they are", "shard", s.index, "error", err)
		}
		select {
		case <-s.ctx.Done():
			return false
		case <-time.After(retryLoad):
		}
	}
}

// begin begins a life of the shard with the core that was loaded.
func (s *shard) begin(life uint64, core machine.Core) (begun bool) {
	s.with(func(p *pump.Pump, in machine.Input) {
		if begun = p.Begin(life, core, s.leaderEpoch, in); begun {
			s.phase.Store(active)
		}
	})
	return begun
}

// replay reads the whole log into a new core. The log is opened again first:
// what a life that is over, or a shard that this one replaces, asked it to append
// may be in it, or may even arrive later.
func (s *shard) replay() (machine.Core, error) {
	if err := s.log.Reopen(s.ctx); err != nil {
		return nil, err
	}
	s.maxBatch.Store(int64(s.log.MaxBatch()))
	core := s.c.opts.Kind.New()
	offset := s.log.Start()
	decode, done := s.reader()
	var records []machine.StoredRecord
	for {
		b, err := s.log.Read(s.ctx, offset)
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
			stored, err := pump.DecodeInto(records, batch, decode, s.unreadable)
			if err != nil {
				return nil, err
			}
			core.Replay(stored)
			done()
			records = stored.Records
			offset = batch.LastOffset() + 1
		}
	}
}

// reader returns what decodes the records of one load.
func (s *shard) reader() (decode func(key, value []byte) (machine.Record, error), done func()) {
	if s.c.opts.Kind.Reader == nil {
		return s.c.opts.Kind.Decode, func() {}
	}
	return s.c.opts.Kind.Reader()
}

func (s *shard) unreadable(offset int64, err error) {
	s.c.opts.Logger.Warn("a record of "+s.c.opts.Kind.Name+" cannot be read and is left out", "shard", s.index, "offset", offset, "error", err)
}
