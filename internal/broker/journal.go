package broker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/journal"
	"muster/internal/machine"
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
	for len(entries) > 0 {
		recs, err := encodeEntries(entries, p.MaxBatch()-record.HeaderSize)
		if err != nil {
			return err
		}
		if err := j.append(ctx, p, recs); err != nil {
			return err
		}
		entries = entries[len(recs):]
	}
	return nil
}

// encodeEntries makes records of as many entries as fit into a batch, of one at
// least. A shard that has loaded has one for each of its groups.
func encodeEntries(entries []journal.Entry, limit int) ([]record.Record, error) {
	var recs []record.Record
	size := 0
	for i := range entries {
		key := []byte(entries[i].Group)
		value, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, err
		}
		if size += machine.RecordOverhead + len(key) + len(value); size > limit && i > 0 {
			break
		}
		recs = append(recs, record.Record{Key: key, Value: value, OffsetDelta: int32(i), Timestamp: entries[i].Time.UnixMilli()})
	}
	return recs, nil
}

// append appends one batch and waits until it is stored.
func (j *journalWriter) append(ctx context.Context, p *partition.Partition, recs []record.Record) error {
	batch, err := record.Build(record.PlainTemplate(), recs)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	p.Append(ctx, batch, partition.Produce{Acks: 1}, func(a partition.Appended) {
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
