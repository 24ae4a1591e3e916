package facts

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/watch/explain"
	"muster/internal/web/problem"
)

// JournalQuery is what is looked for in the group journal.
type JournalQuery struct {
	Group string // Empty for all.
	Since time.Time
	Limit int // The latest so many.
	// Match says whether an entry is wanted.
	Match func(*explain.Entry) bool
}

// JournalPage is what was found there.
type JournalPage struct {
	Exists  bool            // Whether there is a journal.
	Entries []explain.Entry // The oldest first.
	Partly  bool            // There is more: the search ended before it had seen everything, or found more than the limit.
	Others  []int32         // The brokers that have the rest.
}

const (
	// journalBytes is how much of the journal one request reads, the latest part.
	journalBytes = 16 << 20
	// journalTime is how long it may take.
	journalTime = 3 * time.Second
	// readBytes is how much is read at a time.
	readBytes = 1 << 20
)

// Journal implements web.Reads.
func (r *Facts) Journal(ctx context.Context, q JournalQuery) (*JournalPage, error) {
	t := r.Image().Topic(metadata.JournalTopic)
	if t == nil {
		return &JournalPage{}, nil
	}
	wanted := make([]int32, len(t.Partitions))
	for i := range wanted {
		wanted[i] = int32(i)
	}
	if q.Group != "" {
		wanted = []int32{journal.PartitionFor(q.Group, int32(len(t.Partitions)))}
	}
	ctx, cancel := context.WithTimeout(ctx, journalTime)
	defer cancel()
	s := journalSearch{JournalQuery: q, page: &JournalPage{Exists: true}}
	for _, i := range wanted {
		p := r.Partition(t.Name, i)
		if p == nil {
			s.page.Others = append(s.page.Others, t.Partitions[i].Leader)
			continue
		}
		if err := s.read(ctx, p, journalBytes/int64(len(wanted))); err != nil {
			if ctx.Err() == nil {
				return nil, err
			}
			s.page.Partly = true
		}
	}
	slices.Sort(s.page.Others)
	s.page.Others = slices.Compact(s.page.Others)
	s.trim(-s.Limit)
	return s.page, nil
}

// journalSearch is a search under way.
type journalSearch struct {
	JournalQuery
	page *JournalPage
}

// read searches a partition. If there is more than it may read, it reads the latest.
func (s *journalSearch) read(ctx context.Context, p *partition.Partition, most int64) error {
	end := p.HighWatermark()
	hit, found, wire := p.OffsetForTimestamp(ctx, s.Since.UnixMilli(), end)
	if wire != nil {
		return unread(wire)
	}
	if !found {
		return nil
	}
	next := max(hit.Offset, p.LogStartOffset())
	mean := max(p.Size()/max(end-p.LogStartOffset(), 1), 1)
	if latest := end - most/mean; latest > next {
		next, s.page.Partly = latest, true
	}
	for next < end && ctx.Err() == nil {
		after, err := eachBatch(ctx, p, next, readBytes, func(b record.Batch) error {
			return b.Each(func(r *record.Record) error {
				if r.Offset >= next {
					s.take(r)
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		if after <= next {
			return nil // It was trimmed meanwhile.
		}
		next = after
	}
	return ctx.Err()
}

// take takes an entry if it is wanted.
func (s *journalSearch) take(r *record.Record) {
	if s.Group != "" && string(r.Key) != s.Group {
		return
	}
	e, err := explain.ReadEntry(slices.Clone(r.Value))
	if err != nil || e.Time.Before(s.Since) || s.Match != nil && !s.Match(&e) {
		return // What we do not understand is of a later version.
	}
	s.page.Entries = append(s.page.Entries, e)
	s.trim(s.Limit)
}

// trim keeps the latest entries, once there are more than slack too many.
func (s *journalSearch) trim(slack int) {
	if len(s.page.Entries) < s.Limit+slack {
		return
	}
	explain.SortEntries(s.page.Entries)
	if more := len(s.page.Entries) - s.Limit; more > 0 {
		s.page.Entries, s.page.Partly = slices.Delete(s.page.Entries, 0, more), true
	}
}

// unread says why the journal could not be read, so that the API tells apart what another
// try may mend.
func unread(wire *kerr.Error) error {
	return &problem.Refused{Code: wire.Code, Name: wire.Message, Message: "the journal could not be read: " + wire.Description}
}

// eachBatch reads once, and calls f with each batch that has records of an offset or later
// ones; records before it may be in the first. It returns the offset after the last.
func eachBatch(ctx context.Context, p *partition.Partition, from int64, most int, f func(record.Batch) error) (next int64, err error) {
	got := p.Read(ctx, partition.Fetch{
		Offset: from, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: most, MinOne: true,
	})
	if got.Err != nil {
		if got.Err == kerr.OffsetOutOfRange {
			return from, nil
		}
		return from, unread(got.Err)
	}
	defer got.Records.Release()
	bytes, err := got.Records.Load()
	if err != nil {
		return from, err
	}
	next = from
	for len(bytes) > 0 {
		b, rest, err := record.Next(bytes)
		if err != nil {
			return next, err
		}
		if !b.Control() {
			err = f(b)
		}
		if err != nil {
			return next, err
		}
		next, bytes = b.LastOffset()+1, rest
	}
	return next, nil
}
