package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
)

// journalQueue is how many steps' entries may wait to be written. Groups do not
// wait for the journal: what does not fit is left out, and said so.
const journalQueue = 1024

// journalWriter writes what happens to groups to __group_journal, which is created
// when there is something to write.
type journalWriter struct {
	b     *Broker
	queue chan []journal.Entry
}

func newJournal(b *Broker) *journalWriter {
	return &journalWriter{b: b, queue: make(chan []journal.Entry, journalQueue)}
}

func (j *journalWriter) add(entries []journal.Entry) {
	select {
	case j.queue <- entries:
	default:
		j.b.logger.Warn("group journal falls behind; entries left out", "count", len(entries), "group", entries[0].Group)
	}
}

// run writes until ctx ends, and then what is still there.
func (j *journalWriter) run(ctx context.Context) {
	for {
		select {
		case entries := <-j.queue:
			j.write(entries)
		case <-ctx.Done():
			for {
				select {
				case entries := <-j.queue:
					j.write(entries)
				default:
					return
				}
			}
		}
	}
}

func (j *journalWriter) write(entries []journal.Entry) {
	if err := j.store(context.Background(), entries); err != nil {
		j.b.logger.Warn("group journal could not be written", "error", err)
	}
}

// store appends entries, keyed by group, as JSON.
func (j *journalWriter) store(ctx context.Context, entries []journal.Entry) error {
	p, err := j.partition(ctx, entries[0].Group)
	if err != nil {
		return err
	}
	recs := make([]record.Record, len(entries))
	for i := range entries {
		value, err := json.Marshal(&entries[i])
		if err != nil {
			return err
		}
		recs[i] = record.Record{Key: []byte(entries[i].Group), Value: value, OffsetDelta: int32(i), Timestamp: entries[i].Time.UnixMilli()}
	}
	batch, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	p.Append(ctx, batch, 1, func(a partition.Appended) {
		if a.Err != nil {
			done <- a.Err
			return
		}
		done <- nil
	})
	select {
	case err := <-done:
		return err
	case <-time.After(drainTimeout):
		return context.DeadlineExceeded
	}
}

// partition returns where the entries of a group and its neighbours in the shard
// go. Where brokers share the work there is a partition for each shard, with the
// same leader.
func (j *journalWriter) partition(ctx context.Context, groupID string) (*partition.Partition, error) {
	t := j.b.controller.Image().Topic(metadata.JournalTopic)
	if t == nil {
		if err := j.create(ctx); err != nil {
			return nil, err
		}
		t = j.b.controller.Image().Topic(metadata.JournalTopic)
	}
	if p := j.b.manager.Get(t.Name, journal.PartitionFor(groupID, int32(len(t.Partitions)))); p != nil {
		return p, nil
	}
	return nil, errors.New("another broker leads the group now")
}

func (j *journalWriter) create(ctx context.Context) error {
	_, errs := j.b.controller.CreateTopics(ctx, []metadata.NewTopic{{Name: metadata.JournalTopic}}, false)
	if errors.Is(errs[0], kerr.TopicAlreadyExists) {
		return nil
	}
	return errs[0]
}
