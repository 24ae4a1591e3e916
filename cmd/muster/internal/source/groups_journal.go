package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/explain"
)

// JournalTopic is where a muster broker writes what happens to groups, and why:
// JSON, keyed by group, all of a group's entries in one partition.
const JournalTopic = metadata.JournalTopic

// ErrNoJournal says that a broker keeps no journal. A muster broker creates the
// topic when there is something to write.
var ErrNoJournal = errors.New("the broker has no group journal (topic " + JournalTopic + "), so nothing is known about past rebalances; a muster broker writes it from the first rebalance on")

// JournalReader reads the entries of one group.
type JournalReader struct {
	client *kgo.Client
	group  string
	part   int32
	next   int64 // The offset to read next.
	end    int64 // The end as it was when the journal was opened.
}

// OpenJournal finds the part of the journal from a time on.
func OpenJournal(ctx context.Context, flags *cli.Flags, group string, since time.Time) (*JournalReader, error) {
	client, err := flags.Connect(ctx, ConsumerOptions(kgo.ReadUncommitted())...)
	if err != nil {
		return nil, err
	}
	j := &JournalReader{client: client, group: group}
	if err := j.find(ctx, since); err != nil {
		client.Close()
		return nil, err
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{JournalTopic: {j.part: kgo.NewOffset().At(j.next)}})
	return j, nil
}

func (j *JournalReader) find(ctx context.Context, since time.Time) error {
	loader := NewLoader(nil, j.client)
	if err := loader.LoadLogs(ctx, []string{JournalTopic}); err != nil {
		return err
	}
	partitions := loader.Partitions(JournalTopic)
	if partitions == 0 {
		return ErrNoJournal
	}
	j.part = journal.PartitionFor(j.group, int32(partitions))
	tp := TopicPartition{Topic: JournalTopic, Partition: j.part}
	b, ok := loader.Bounds(tp)
	if !ok {
		return fmt.Errorf("partition %d of %s has no leader now", j.part, JournalTopic)
	}
	j.end = b.End
	set := kadm.TopicsSet{}
	set.Add(JournalTopic, j.part)
	from, err := ListOffsets(ctx, j.client, set, max(since.UnixMilli(), 0))
	if err != nil {
		return err
	}
	if at, ok := from[tp]; ok {
		j.next = max(at, b.Start)
	} else {
		j.next = b.End // Nothing is that young.
	}
	return nil
}

func (j *JournalReader) Close() { j.client.Close() }

// Read returns the group's entries up to the end that the journal had when it
// was opened.
func (j *JournalReader) Read(ctx context.Context) ([]explain.Entry, error) {
	var out []explain.Entry
	for j.next < j.end {
		soon, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
		some, err := j.Poll(soon)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && soon.Err() != nil:
			return nil, fmt.Errorf("the group journal cannot be read: no answer within %s", cli.RequestTimeout)
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// Poll waits for further entries. Those of other groups are skipped, so that
// there may be none.
func (j *JournalReader) Poll(ctx context.Context) ([]explain.Entry, error) {
	fetches := j.client.PollFetches(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		return nil, fmt.Errorf("the group journal cannot be read: %w", cli.Plain(e.Err))
	}
	var out []explain.Entry
	for records := fetches.RecordIter(); !records.Done(); {
		r := records.Next()
		j.next = r.Offset + 1
		if string(r.Key) != j.group {
			continue
		}
		if e, err := explain.ReadEntry(r.Value); err == nil { // What we do not understand is of a later version.
			out = append(out, e)
		}
	}
	return out, nil
}

// ReadJournal returns what the journal says of a group since a time.
func ReadJournal(ctx context.Context, flags *cli.Flags, group string, since time.Time) ([]explain.Entry, error) {
	j, err := OpenJournal(ctx, flags, group, since)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	return j.Read(ctx)
}
