package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/explain"
)

// ErrNoTxnJournal says that a broker keeps no journal of transactions. A muster broker
// creates the topic when there is something to write.
var ErrNoTxnJournal = errors.New("the broker has no journal of transactions (topic " + metadata.TransactionJournalTopic + "); a muster broker writes it from the first entry on")

// ReadTxnJournal returns what the journal of transactions says since a time, the oldest
// first: of the partitions that these ids have, or of all if none is given. Entries of
// others that share them are among it.
func ReadTxnJournal(ctx context.Context, flags *cli.Flags, since time.Time, ids ...string) ([]explain.TxnEntry, error) {
	client, err := flags.Connect(ctx, ConsumerOptions(kgo.ReadUncommitted())...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	loader := NewLoader(nil, client)
	if err := loader.LoadLogs(ctx, []string{metadata.TransactionJournalTopic}); err != nil {
		return nil, err
	}
	partitions := int32(loader.Partitions(metadata.TransactionJournalTopic))
	if partitions == 0 {
		return nil, ErrNoTxnJournal
	}
	set := kadm.TopicsSet{}
	for i := range partitions {
		if len(ids) == 0 || slices.ContainsFunc(ids, func(id string) bool { return journal.PartitionFor(id, partitions) == i }) {
			set.Add(metadata.TransactionJournalTopic, i)
		}
	}
	from, err := ListOffsets(ctx, client, set, max(since.UnixMilli(), 0))
	if err != nil {
		return nil, err
	}
	j := &txnJournal{client: client, ends: map[int32]int64{}}
	assign := map[int32]kgo.Offset{}
	for tp, at := range from { // The others have nothing that young.
		b, ok := loader.Bounds(tp)
		if !ok {
			return nil, fmt.Errorf("partition %d of %s has no leader now", tp.Partition, tp.Topic)
		}
		if next := max(at, b.Start); next < b.End {
			assign[tp.Partition] = kgo.NewOffset().At(next)
			j.ends[tp.Partition] = b.End
		}
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{metadata.TransactionJournalTopic: assign})
	return j.read(ctx)
}

// txnJournal reads partitions of the journal up to the ends that they had.
type txnJournal struct {
	client *kgo.Client
	ends   map[int32]int64 // of those that are not read to the end yet
}

func (j *txnJournal) read(ctx context.Context) ([]explain.TxnEntry, error) {
	var out []explain.TxnEntry
	for len(j.ends) > 0 {
		soon, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
		some, err := j.poll(soon)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && soon.Err() != nil:
			return nil, fmt.Errorf("the journal of transactions cannot be read: no answer within %s", cli.RequestTimeout)
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	slices.SortStableFunc(out, func(a, b explain.TxnEntry) int { return a.Time.Compare(b.Time) })
	return out, nil
}

func (j *txnJournal) poll(ctx context.Context) ([]explain.TxnEntry, error) {
	fetches := j.client.PollFetches(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		return nil, fmt.Errorf("the journal of transactions cannot be read: %w", cli.Plain(e.Err))
	}
	var out []explain.TxnEntry
	for records := fetches.RecordIter(); !records.Done(); {
		r := records.Next()
		if r.Offset+1 >= j.ends[r.Partition] {
			delete(j.ends, r.Partition)
		}
		if e, err := explain.ReadTxnEntry(r.Key, r.Value); err == nil { // What we do not understand is of a later version.
			out = append(out, e)
		}
	}
	return out, nil
}
