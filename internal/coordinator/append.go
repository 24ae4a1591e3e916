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

// flush sends the gathered records on their way, unless others still are.
func (s *shard) flush(ctx context.Context) {
	if s.inAir {
		return
	}
	if len(s.gather.records) == 0 {
		s.tell(s.gather.journal)
		s.gather.journal = nil
		return
	}
	s.flying, s.gather = s.gather, batch{}
	if n := len(s.flying.records); n > maxBatchRecords {
		// A reply waits for all records before it, so all of them wait for the
		// rest.
		s.gather = batch{records: s.flying.records[maxBatchRecords:], replies: s.flying.replies, journal: s.flying.journal}
		s.flying = batch{records: s.flying.records[:maxBatchRecords]}
	}
	s.inAir = true
	b, err := encode(s.flying.records, s.c.opts.Now())
	epoch := s.epoch
	if err != nil {
		s.appended(ctx, item{epoch: epoch, err: err})
		return
	}
	s.log.Append(ctx, b, func(err error) {
		// The callback must not block, and the inbox may be full of those who
		// wait for this very answer.
		go s.post(item{appended: true, epoch: epoch, err: err})
	})
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

// appended handles the outcome of an append.
func (s *shard) appended(ctx context.Context, i item) {
	if i.epoch != s.epoch {
		return
	}
	done := s.flying
	s.flying, s.inAir = batch{}, false
	if i.err == nil {
		s.release(done.replies)
		s.tell(done.journal)
		return
	}
	level := slog.LevelError
	if errors.Is(i.err, kerr.NotLeaderForPartition) {
		level = slog.LevelDebug // Another broker leads now, or the store is away, which is told once.
	}
	s.c.opts.Logger.Log(ctx, level, "group records could not be stored; loading the shard again", "shard", s.index, "error", i.err)
	s.failAll(kerr.NotCoordinator)
	s.load(ctx)
}

func (s *shard) tell(entries []group.Entry) {
	if len(entries) > 0 && s.c.opts.Journal != nil {
		s.c.opts.Journal(entries)
	}
}
