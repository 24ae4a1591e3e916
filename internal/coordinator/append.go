package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group"
	"muster/internal/record"
)

// batch is records that are appended together, with what waits for them.
type batch struct {
	records []group.Record
	replies []group.Reply
	journal []group.Entry
}

// maxBatchRecords bounds a batch; what is more makes several in a row.
const maxBatchRecords = 10_000

// depart takes the records that are to go on their way now: none while others
// still are. They must be sent, for the shard's end waits for that.
func (s *shard) depart() ([]group.Record, bool) {
	if s.inAir || s.phase.Load() != active {
		return nil, false
	}
	if len(s.gather.records) == 0 {
		s.tell(s.gather.journal)
		s.gather.journal = nil
		return nil, false
	}
	s.flying, s.gather = s.gather, batch{}
	if n := len(s.flying.records); n > maxBatchRecords {
		// A reply waits for all records before it, so all of them wait for the
		// rest.
		s.gather = batch{records: s.flying.records[maxBatchRecords:], replies: s.flying.replies, journal: s.flying.journal}
		s.flying = batch{records: s.flying.records[:maxBatchRecords]}
	}
	s.inAir = true
	s.background.Add(1)
	return s.flying.records, true
}

// send appends records that departed. It is called without the lock.
func (s *shard) send(records []group.Record, epoch int) {
	defer s.background.Done()
	b, err := encode(records, s.c.opts.Now())
	if err != nil {
		s.appended(epoch, err)
		return
	}
	s.log.Append(context.Background(), b, func(err error) { s.appended(epoch, err) })
}

// encode makes a record batch.
func encode(records []group.Record, now time.Time) (record.Batch, error) {
	recs := make([]record.Record, len(records))
	for i, r := range records {
		recs[i].Key, recs[i].Value = r.Encode()
		recs[i].OffsetDelta, recs[i].Timestamp = int32(i), now.UnixMilli()
	}
	return record.Build(record.PlainTemplate(), recs)
}

// appended handles the outcome of an append, and has the next one begin.
func (s *shard) appended(epoch int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch != s.epoch || s.phase.Load() != active {
		return
	}
	done := s.flying
	s.flying, s.inAir = batch{}, false
	if err != nil {
		s.lost(err)
		return
	}
	s.release(done.replies)
	s.tell(done.journal)
	s.settle()
}

// lost drops the shard's state, which has records that the log does not, and
// loads it again.
func (s *shard) lost(err error) {
	level := slog.LevelError
	if errors.Is(err, kerr.NotLeaderForPartition) {
		level = slog.LevelDebug // Another broker leads now, or the store is away, which is told once.
	}
	s.c.opts.Logger.Log(context.Background(), level, "group records could not be stored; loading the shard again", "shard", s.index, "error", err)
	s.failAll(kerr.NotCoordinator)
	s.phase.Store(loading)
	s.epoch++
	s.background.Go(func() { s.load() })
}

func (s *shard) tell(entries []group.Entry) {
	if len(entries) > 0 && s.c.opts.Journal != nil {
		s.c.opts.Journal(entries)
	}
}
