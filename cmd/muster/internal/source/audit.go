package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/audit"
	"muster/internal/metadata"
)

// ErrNoAudit says that a broker keeps no audit log. A muster broker creates the topic
// when there is something to write.
var ErrNoAudit = errors.New("the broker has no audit log (topic " + metadata.AuditTopic + "); a muster broker writes it from the first entry on, unless muster.audit.enable is false")

// AuditReader reads the audit log from some point on.
type AuditReader struct {
	Client *kgo.Client
	ends   map[int32]int64 // of the partitions that are not read to the end yet
}

// OpenAudit finds the part of the audit log from a time on. To follow it, all partitions
// are read on; otherwise only those that have something.
func OpenAudit(ctx context.Context, flags *cli.Flags, since time.Time, follow bool) (*AuditReader, error) {
	client, err := flags.Connect(ctx, ConsumerOptions(kgo.ReadUncommitted())...)
	if err != nil {
		return nil, err
	}
	r := &AuditReader{Client: client, ends: map[int32]int64{}}
	assign, err := r.find(ctx, since, follow)
	if err != nil {
		client.Close()
		return nil, err
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{metadata.AuditTopic: assign})
	return r, nil
}

func (r *AuditReader) find(ctx context.Context, since time.Time, follow bool) (map[int32]kgo.Offset, error) {
	loader := NewLoader(nil, r.Client)
	if err := loader.LoadLogs(ctx, []string{metadata.AuditTopic}); err != nil {
		return nil, err
	}
	partitions := int32(loader.Partitions(metadata.AuditTopic))
	if partitions == 0 {
		return nil, ErrNoAudit
	}
	set := kadm.TopicsSet{}
	for i := range partitions {
		set.Add(metadata.AuditTopic, i)
	}
	from, err := ListOffsets(ctx, r.Client, set, max(since.UnixMilli(), 0))
	if err != nil {
		return nil, err
	}
	assign := map[int32]kgo.Offset{}
	for i := range partitions {
		tp := TopicPartition{Topic: metadata.AuditTopic, Partition: i}
		b, ok := loader.Bounds(tp)
		if !ok {
			return nil, fmt.Errorf("partition %d of %s has no leader now", i, metadata.AuditTopic)
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

// Read returns the entries up to the ends that the partitions had, in order of time.
func (r *AuditReader) Read(ctx context.Context) ([]AuditEntry, error) {
	var out []AuditEntry
	for len(r.ends) > 0 {
		soon, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
		some, err := r.Poll(soon)
		cancel()
		switch {
		case err != nil && ctx.Err() == nil && soon.Err() != nil:
			return nil, fmt.Errorf("the audit log cannot be read: no answer within %s", cli.RequestTimeout)
		case err != nil:
			return nil, err
		}
		out = append(out, some...)
	}
	slices.SortStableFunc(out, func(a, b AuditEntry) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// Poll waits for further entries.
func (r *AuditReader) Poll(ctx context.Context) ([]AuditEntry, error) {
	fetches := r.Client.PollFetches(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, e := range fetches.Errors() {
		return nil, fmt.Errorf("the audit log cannot be read: %w", cli.Plain(e.Err))
	}
	var out []AuditEntry
	for records := fetches.RecordIter(); !records.Done(); {
		rec := records.Next()
		if end, ok := r.ends[rec.Partition]; ok && rec.Offset+1 >= end {
			delete(r.ends, rec.Partition)
		}
		if e, err := readAuditEntry(rec.Value); err == nil { // What we do not understand is of a later version.
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b AuditEntry) int { return a.Time.Compare(b.Time) })
	return out, nil
}

// AuditEntry is an entry with the bytes that it was read from.
type AuditEntry struct {
	audit.Entry
	Raw []byte
}

func readAuditEntry(value []byte) (AuditEntry, error) {
	out := AuditEntry{Raw: value}
	err := json.Unmarshal(value, &out.Entry)
	return out, err
}
