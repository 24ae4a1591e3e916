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

// journalQueue is how many steps' entries may wait to be written. Nobody
// waits for the journal: what does not fit is left out, and said so.
const journalQueue = 1024

// journalKind is what a journal is about.
type journalKind[E any] struct {
	topic string
	name  string // for people
	key   func(*E) string
	at    func(*E) time.Time
	// anywhere says that an entry is not lost if another broker leads its partition: any
	// that this one leads will do.
	anywhere bool
}

var groupJournal = journalKind[journal.Entry]{
	topic: metadata.JournalTopic, name: "group journal",
	key: func(e *journal.Entry) string { return e.Group }, at: func(e *journal.Entry) time.Time { return e.Time },
}

var transactionJournal = journalKind[journal.Txn]{
	topic: metadata.TransactionJournalTopic, name: "transaction journal", anywhere: true,
	key: func(e *journal.Txn) string { return e.Key }, at: func(e *journal.Txn) time.Time { return e.Time },
}

// journalWriter writes what happens to groups, or to transactions, to a topic, which
// is created when there is something to write.
type journalWriter[E any] struct {
	journalKind[E]
	b     *Broker
	queue chan []E
}

func newJournal[E any](b *Broker, kind journalKind[E]) *journalWriter[E] {
	return &journalWriter[E]{journalKind: kind, b: b, queue: make(chan []E, journalQueue)}
}

func (j *journalWriter[E]) add(entries []E) {
	if !j.offer(entries) {
		j.b.logger.Warn(j.name+" falls behind; entries left out", "count", len(entries), "first", j.key(&entries[0]))
	}
}

// offer queues entries if there is room.
func (j *journalWriter[E]) offer(entries []E) bool {
	select {
	case j.queue <- entries:
		return true
	default:
		j.b.meters.JournalDropped.Add(uint64(len(entries)))
		return false
	}
}

// run writes until ctx ends, and then what is still there.
func (j *journalWriter[E]) run(ctx context.Context) {
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

func (j *journalWriter[E]) write(entries []E) {
	if err := j.store(context.Background(), entries); err != nil {
		j.b.meters.JournalDropped.Add(uint64(len(entries)))
		j.b.logger.Warn(j.name+" could not be written", "error", err)
	}
}

// store appends entries as JSON. Those of a step belong to the same partition.
func (j *journalWriter[E]) store(ctx context.Context, entries []E) error {
	p, err := j.partition(ctx, j.key(&entries[0]))
	if err != nil {
		return err
	}
	for len(entries) > 0 {
		recs, err := j.encode(entries, p.MaxBatch()-record.HeaderSize)
		if err != nil {
			return err
		}
		if err := appendRecords(ctx, p, recs); err != nil {
			return err
		}
		entries = entries[len(recs):]
	}
	return nil
}

// encode makes records of as many entries as fit into a batch, of one at
// least. A shard that has loaded has one for each of its groups.
func (k *journalKind[E]) encode(entries []E, limit int) ([]record.Record, error) {
	var recs []record.Record
	size := 0
	for i := range entries {
		key := []byte(k.key(&entries[i]))
		value, err := json.Marshal(&entries[i])
		if err != nil {
			return nil, err
		}
		if size += machine.RecordOverhead + len(key) + len(value); size > limit && i > 0 {
			break
		}
		recs = append(recs, record.Record{Key: key, Value: value, OffsetDelta: int32(i), Timestamp: k.at(&entries[i]).UnixMilli()})
	}
	return recs, nil
}

// appendRecords appends one batch of our own and waits until it is stored.
func appendRecords(ctx context.Context, p *partition.Partition, recs []record.Record) error {
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
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(drainTimeout):
		return context.DeadlineExceeded
	}
}

// partition returns where the entries of a group, or of a transactional id, and its
// neighbours in the shard go. Where brokers share the work there is a partition for each
// shard, with the same leader.
func (j *journalWriter[E]) partition(ctx context.Context, key string) (*partition.Partition, error) {
	t, err := thereOrMade(ctx, func() *metadata.Topic { return j.b.controller.Image().Topic(j.topic) }, j.create)
	if err != nil {
		return nil, err
	}
	n := int32(len(t.Partitions))
	own := journal.PartitionFor(key, n)
	if p := j.b.manager.Get(t.Name, own); p != nil {
		return p, nil
	}
	for i := int32(1); j.anywhere && i < n; i++ {
		if p := j.b.manager.Get(t.Name, (own+i)%n); p != nil {
			return p, nil
		}
	}
	return nil, errors.New("another broker leads its partition now")
}

// thereOrMade returns a topic, which is made if it is not there. It may be gone right after
// that: another broker deletes it, or Redis loses the metadata.
func thereOrMade(ctx context.Context, look func() *metadata.Topic, create func(context.Context) error) (*metadata.Topic, error) {
	if t := look(); t != nil {
		return t, nil
	}
	if err := create(ctx); err != nil {
		return nil, err
	}
	if t := look(); t != nil {
		return t, nil
	}
	return nil, errors.New("its topic was created, and is gone")
}

func (j *journalWriter[E]) create(ctx context.Context) error {
	_, errs := j.b.controller.CreateTopics(ctx, []metadata.NewTopic{{Name: j.topic}}, false)
	if errors.Is(errs[0], kerr.TopicAlreadyExists) {
		return nil
	}
	return errs[0]
}
