package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/audit"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/explain"
)

// Journal is a topic in which a muster broker keeps what happened, as JSON. The broker
// creates it when there is something to write.
type Journal[E any] struct {
	Topic   string
	ErrNone error // The broker has no such topic.
	name    string
	parse   func(*kgo.Record) (E, error)
	// time orders entries of several partitions.
	time func(*E) time.Time
	// partial leaves out partitions that have no leader; otherwise they are an error.
	partial bool
}

// GroupJournal says what happened to groups, and why. It is keyed by group.
var GroupJournal = &Journal[explain.Entry]{
	Topic:   metadata.JournalTopic,
	ErrNone: errors.New("the broker has no group journal (topic " + metadata.JournalTopic + "), so nothing is known about past rebalances; a muster broker writes it from the first rebalance on"),
	name:    "the group journal",
	parse:   func(r *kgo.Record) (explain.Entry, error) { return explain.ReadEntry(r.Value) },
}

// TxnJournal says what happened to transactions. It is keyed by transactional id, or by
// producer id where that is all that is known.
var TxnJournal = &Journal[explain.TxnEntry]{
	Topic:   metadata.TransactionJournalTopic,
	ErrNone: errors.New("the broker has no journal of transactions (topic " + metadata.TransactionJournalTopic + "); a muster broker writes it from the first entry on"),
	name:    "the journal of transactions",
	parse:   func(r *kgo.Record) (explain.TxnEntry, error) { return explain.ReadTxnEntry(r.Key, r.Value) },
	time:    func(e *explain.TxnEntry) time.Time { return e.Time },
	partial: true,
}

// AuditEntry is an entry of the audit log with the bytes that it was read from.
type AuditEntry struct {
	audit.Entry
	Raw []byte
}

// AuditLog says who logged in, who was denied what, and who changed what.
var AuditLog = &Journal[AuditEntry]{
	Topic:   metadata.AuditTopic,
	ErrNone: errors.New("the broker has no audit log (topic " + metadata.AuditTopic + "); a muster broker writes it from the first entry on, unless muster.audit.enable is false"),
	name:    "the audit log",
	parse: func(r *kgo.Record) (e AuditEntry, err error) {
		e.Raw = r.Value
		err = json.Unmarshal(r.Value, &e.Entry)
		return e, err
	},
	time: func(e *AuditEntry) time.Time { return e.Time },
}

// Reader reads a journal from some point on.
type Reader[E any] struct {
	journal *Journal[E]
	client  *kgo.Client
	keys    []string
	ends    map[int32]int64 // Of the partitions that are not read to the end yet.
}

// Open finds the part of the journal from a time on: entries of these keys, or all if none
// is given. To follow it, partitions are read on that have nothing now.
func (j *Journal[E]) Open(ctx context.Context, flags *cli.Flags, since time.Time, follow bool, keys ...string) (*Reader[E], error) {
	client, err := flags.Connect(ctx, ConsumerOptions(kgo.ReadUncommitted())...)
	if err != nil {
		return nil, err
	}
	r := &Reader[E]{journal: j, client: client, keys: keys, ends: map[int32]int64{}}
	assign, err := r.find(ctx, since, follow)
	if err != nil {
		client.Close()
		return nil, err
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{j.Topic: assign})
	return r, nil
}

// Read returns what the journal says of these keys, or of all, since a time.
func (j *Journal[E]) Read(ctx context.Context, flags *cli.Flags, since time.Time, keys ...string) ([]E, error) {
	r, err := j.Open(ctx, flags, since, false, keys...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return r.Read(ctx)
}

func (r *Reader[E]) find(ctx context.Context, since time.Time, follow bool) (map[int32]kgo.Offset, error) {
	topic := r.journal.Topic
	loader := NewLoader(nil, r.client)
	if err := loader.LoadLogs(ctx, []string{topic}); err != nil {
		return nil, err
	}
	partitions := int32(loader.Partitions(topic))
	if partitions == 0 {
		return nil, r.journal.ErrNone
	}
	set := kadm.TopicsSet{}
	for i := range partitions {
		if len(r.keys) == 0 || slices.ContainsFunc(r.keys, func(key string) bool { return journal.PartitionFor(key, partitions) == i }) {
			set.Add(topic, i)
		}
	}
	from, err := ListOffsets(ctx, r.client, set, max(since.UnixMilli(), 0))
	if err != nil {
		return nil, err
	}
	assign := map[int32]kgo.Offset{}
	for i := range set[topic] {
		tp := TopicPartition{Topic: topic, Partition: i}
		b, ok := loader.Bounds(tp)
		if !ok && r.journal.partial {
			continue
		}
		if !ok {
			return nil, fmt.Errorf("partition %d of %s has no leader now", i, topic)
		}
		next := b.End // If nothing is that young.
		if at, ok := from[tp]; ok {
			next = max(at, b.Start)
		}
		if next < b.End {
			r.ends[i] = b.End
		}
		if next < b.End || follow {
			assign[i] = kgo.NewOffset().At(next)
		}
	}
	return assign, nil
}

// Close ends the reader's connections.
func (r *Reader[E]) Close() { r.client.Close() }

// Read returns the entries up to the ends that the partitions had when the journal was
// opened.
func (r *Reader[E]) Read(ctx context.Context) ([]E, error) {
	var out []E
	for len(r.ends) > 0 {
		soon, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
		some, err := r.Poll(soon)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && soon.Err() != nil:
			return nil, fmt.Errorf("%s cannot be read: no answer within %s", r.journal.name, cli.RequestTimeout)
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	r.journal.sort(out)
	return out, nil
}

// Poll waits for further entries. Those of other keys are skipped, so that there may be
// none.
func (r *Reader[E]) Poll(ctx context.Context) ([]E, error) {
	fetches := r.client.PollFetches(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		return nil, fmt.Errorf("%s cannot be read: %w", r.journal.name, cli.Plain(e.Err))
	}
	var out []E
	for records := fetches.RecordIter(); !records.Done(); {
		rec := records.Next()
		if end, ok := r.ends[rec.Partition]; ok && rec.Offset+1 >= end {
			delete(r.ends, rec.Partition)
		}
		if len(r.keys) > 0 && !slices.Contains(r.keys, string(rec.Key)) {
			continue
		}
		if e, err := r.journal.parse(rec); err == nil { // What we do not understand is of a later version.
			out = append(out, e)
		}
	}
	r.journal.sort(out)
	return out, nil
}

func (j *Journal[E]) sort(entries []E) {
	if j.time != nil {
		sort.SliceStable(entries, func(a, b int) bool { return j.time(&entries[a]).Before(j.time(&entries[b])) })
	}
}
