package source

import (
	"context"
	"time"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/watch"
	"muster/internal/watch/writer"
)

// historyRead is how much of the history of groups is read at a time after a start.
const historyRead = 1 << 20

// groupHistory is __group_history.
type groupHistory struct{ s *Source }

// History is the topic that remembers where groups were.
func (s *Source) History() watch.History { return groupHistory{s} }

// Led implements watch.History. As with the journal there is a partition for each shard
// where brokers share the work, else one for all.
func (h groupHistory) Led(ctx context.Context, create bool) ([]int32, func(string) int32) {
	t := h.s.opts.Image().Topic(metadata.HistoryTopic)
	if t == nil && create {
		if err := h.s.opts.CreateTopic(ctx, metadata.HistoryTopic); err != nil {
			h.s.opts.Logger.Warn("the topic for the history of groups could not be created", "error", err)
		}
		t = h.s.opts.Image().Topic(metadata.HistoryTopic)
	}
	if t == nil {
		return nil, nil
	}
	n := int32(len(t.Partitions))
	loaded := make([]bool, n)
	for i := range loaded {
		loaded[i] = h.s.opts.Partition(t.Name, int32(i)) != nil
	}
	for _, shard := range h.s.opts.Groups.Led() {
		if !h.s.opts.Groups.Look(shard, func(machine.Core) {}) {
			loaded[shard%n] = false
		}
	}
	var led []int32
	for i, is := range loaded {
		if is {
			led = append(led, int32(i))
		}
	}
	return led, func(group string) int32 { return journal.PartitionFor(group, n) }
}

// Write implements watch.History. Of a partition that another broker leads by now, that
// one writes.
func (h groupHistory) Write(ctx context.Context, index int32, at time.Time, records [][]byte) error {
	p := h.s.opts.Partition(metadata.HistoryTopic, index)
	if p == nil {
		return nil
	}
	for _, value := range records {
		if err := writer.Append(ctx, p, []record.Record{{Value: value, Timestamp: at.UnixMilli()}}); err != nil {
			return err
		}
	}
	return nil
}

// Read implements watch.History.
func (h groupHistory) Read(ctx context.Context, index int32, from time.Time, f func([]byte)) error {
	p := h.s.opts.Partition(metadata.HistoryTopic, index)
	if p == nil {
		return nil
	}
	end := p.HighWatermark()
	first, found, kerror := p.OffsetForTimestamp(ctx, from.UnixMilli(), end)
	switch {
	case kerror != nil:
		return kerror
	case !found:
		return nil
	}
	for at := first.Offset; at < end; {
		next, err := h.readSome(ctx, p, at, f)
		if err != nil {
			return err
		}
		if next <= at {
			return nil
		}
		at = next
	}
	return nil
}

// readSome reads some records, and returns where it goes on.
func (h groupHistory) readSome(ctx context.Context, p *partition.Partition, at int64, f func([]byte)) (next int64, err error) {
	got := p.Read(ctx, partition.Fetch{
		Offset: at, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: historyRead, MinOne: true,
	})
	if got.Err != nil {
		return 0, got.Err
	}
	defer got.Records.Release()
	b, err := got.Records.Load()
	if err != nil {
		return 0, err
	}
	for len(b) > 0 {
		var batch record.Batch
		if batch, b, err = record.Next(b); err != nil {
			return 0, err
		}
		if err := batch.Each(func(r *record.Record) error {
			f(r.Value)
			return nil
		}); err != nil {
			return 0, err
		}
		next = batch.LastOffset() + 1
	}
	return next, nil
}
