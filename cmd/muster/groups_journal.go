package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/watch/explain"
)

// journalTopic is where a muster broker writes what happens to groups, and why:
// JSON, keyed by group, all of a group's entries in one partition.
const journalTopic = metadata.JournalTopic

// errNoJournal says that a broker keeps no journal. A muster broker creates the
// topic when there is something to write.
var errNoJournal = errors.New("the broker has no group journal (topic " + journalTopic + "), so nothing is known about past rebalances; a muster broker writes it from the first rebalance on")

// journalReader reads the entries of one group.
type journalReader struct {
	client *kgo.Client
	group  string
	part   int32
	next   int64 // The offset to read next.
	end    int64 // The end as it was when the journal was opened.
}

// openJournal finds the part of the journal from a time on.
func openJournal(ctx context.Context, flags *clientFlags, group string, since time.Time) (*journalReader, error) {
	client, err := flags.connect(ctx, consumerOptions(kgo.ReadUncommitted())...)
	if err != nil {
		return nil, err
	}
	j := &journalReader{client: client, group: group}
	if err := j.find(ctx, since); err != nil {
		client.Close()
		return nil, err
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{journalTopic: {j.part: kgo.NewOffset().At(j.next)}})
	return j, nil
}

func (j *journalReader) find(ctx context.Context, since time.Time) error {
	loader := newGroupLoader(nil, j.client)
	if err := loader.LoadLogs(ctx, []string{journalTopic}); err != nil {
		return err
	}
	partitions := loader.Partitions(journalTopic)
	if partitions == 0 {
		return errNoJournal
	}
	j.part = journal.PartitionFor(j.group, int32(partitions))
	tp := topicPartition{Topic: journalTopic, Partition: j.part}
	b, ok := loader.Bounds(tp)
	if !ok {
		return fmt.Errorf("partition %d of %s has no leader now", j.part, journalTopic)
	}
	j.end = b.End
	set := kadm.TopicsSet{}
	set.Add(journalTopic, j.part)
	from, err := listOffsets(ctx, j.client, set, max(since.UnixMilli(), 0))
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

func (j *journalReader) close() { j.client.Close() }

// read returns the group's entries up to the end that the journal had when it
// was opened.
func (j *journalReader) read(ctx context.Context) ([]explain.Entry, error) {
	var out []explain.Entry
	for j.next < j.end {
		soon, cancel := context.WithTimeout(ctx, requestTimeout)
		some, err := j.poll(soon)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && soon.Err() != nil:
			return nil, fmt.Errorf("the group journal cannot be read: no answer within %s", requestTimeout)
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// poll waits for further entries. Those of other groups are skipped, so that
// there may be none.
func (j *journalReader) poll(ctx context.Context) ([]explain.Entry, error) {
	fetches := j.client.PollFetches(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		return nil, fmt.Errorf("the group journal cannot be read: %w", plain(e.Err))
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

// readJournal returns what the journal says of a group since a time.
func readJournal(ctx context.Context, flags *clientFlags, group string, since time.Time) ([]explain.Entry, error) {
	j, err := openJournal(ctx, flags, group, since)
	if err != nil {
		return nil, err
	}
	defer j.close()
	return j.read(ctx)
}

// parseSince parses how long to look back: a duration, also in days.
func parseSince(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usagef("--since takes how long to look back, as 30m, 24h or 7d, not %q", text)
	}
	return d, nil
}
