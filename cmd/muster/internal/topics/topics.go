// Package topics has the commands about topics: list, describe, create, alter, delete, check and convert.
//
// They ask any Kafka broker, and show of a topic what the broker tells.
package topics

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/protocol"
)

func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "topics",
		Aliases: []string{"topic"},
		Short:   "List, describe, create, alter, delete, check and convert topics",
		Example: `  muster topics create orders --partitions 3 --config retention.ms=86400000
  muster topics list
  muster topics describe orders`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(listCommand(), describeCommand(), createCommand(), alterCommand(), deleteCommand(), checkCommand(), convertCommand())
	return cmd
}

// topicState is what list and describe show of a topic.
type topicState struct {
	kadm.TopicDetail
	partitions []partitionState
}

// partitionState is what they show of a partition. What the broker did not
// tell is nil. The fields are those of --json.
type partitionState struct {
	Partition      int32   `json:"partition"`
	Leader         int32   `json:"leader"`
	LeaderEpoch    int32   `json:"leader_epoch"`
	Replicas       []int32 `json:"replicas"`
	ISR            []int32 `json:"isr"`
	LogStartOffset *int64  `json:"log_start_offset"`
	LogEndOffset   *int64  `json:"log_end_offset"`
	SizeBytes      *int64  `json:"size_bytes"`

	// counted is how many records there are, where the difference of offsets does not tell:
	// negative if no one knows.
	counted *int64
}

// records is what the broker has counted, or how many offsets the partition spans. There are
// as many records then, unless compaction removed some, or transactions added their markers.
func (p partitionState) records() *int64 {
	if p.counted != nil {
		if *p.counted < 0 {
			return nil
		}
		return p.counted
	}
	if p.LogStartOffset == nil || p.LogEndOffset == nil {
		return nil
	}
	n := *p.LogEndOffset - *p.LogStartOffset
	return &n
}

// sum adds up a number of all partitions; it is unknown if one of them is.
func (t topicState) sum(of func(partitionState) *int64) *int64 {
	var total int64
	for _, p := range t.partitions {
		n := of(p)
		if n == nil {
			return nil
		}
		total += *n
	}
	return &total
}

func (t topicState) records() *int64 { return t.sum(partitionState.records) }

func (t topicState) size() *int64 {
	return t.sum(func(p partitionState) *int64 { return p.SizeBytes })
}

// topicID words a topic id as Kafka's own tools do.
func topicID(id kadm.TopicID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// loadTopics asks for the offsets and sizes of topics. A broker may refuse the
// sizes and still serve all else (Kafka guards DescribeLogDirs with an ACL of
// its own), so what fails for single partitions stays unknown.
func loadTopics(ctx context.Context, client *kgo.Client, details kadm.TopicDetails) ([]topicState, error) {
	if len(details) == 0 {
		return nil, nil
	}
	admin := kadm.NewClient(client)
	starts, err := admin.ListStartOffsets(ctx, details.Names()...)
	if err != nil && len(starts) == 0 {
		return nil, cli.Plain(err)
	}
	ends, err := admin.ListEndOffsets(ctx, details.Names()...)
	if err != nil && len(ends) == 0 {
		return nil, cli.Plain(err)
	}
	sizes, counts := loadSizes(ctx, admin, details), loadCounts(ctx, client, details)
	var out []topicState
	for _, d := range details.Sorted() {
		t := topicState{TopicDetail: d}
		for _, p := range d.Partitions.Sorted() {
			t.partitions = append(t.partitions, partitionState{
				Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch, Replicas: p.Replicas, ISR: p.ISR,
				LogStartOffset: cli.ListedOffset(starts, d.Topic, p.Partition),
				LogEndOffset:   cli.ListedOffset(ends, d.Topic, p.Partition),
				SizeBytes:      sizes.of(d.Topic, p.Partition, p.Leader),
				counted:        counts[source{d.Topic, p.Partition}],
			})
		}
		out = append(out, t)
	}
	return out, nil
}

// source is a partition of a topic.
type source struct {
	topic     string
	partition int32
}

// loadCounts asks how many records partitions have. A muster broker on Redis knows; others do not
// answer that, or not even the request, and the difference of offsets has to do.
func loadCounts(ctx context.Context, client *kgo.Client, details kadm.TopicDetails) map[source]*int64 {
	out := map[source]*int64{}
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	for _, name := range details.Names() {
		t := kmsg.NewDescribeTopicPartitionsRequestTopic()
		t.Topic = name
		protocol.AskRecords(&t.UnknownTags)
		req.Topics = append(req.Topics, t)
	}
	for {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return out
		}
		for i := range resp.Topics {
			t := &resp.Topics[i]
			for j := range t.Partitions {
				if n, ok := protocol.GetRecords(&t.Partitions[j].UnknownTags); ok && t.Topic != nil {
					out[source{*t.Topic, t.Partitions[j].Partition}] = &n
				}
			}
		}
		if resp.NextCursor == nil {
			return out
		}
		cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
		cursor.Topic, cursor.Partition = resp.NextCursor.Topic, resp.NextCursor.Partition
		req.Cursor = &cursor
	}
}

// replica is one broker's copy of a partition.
type replica struct {
	topic     string
	partition int32
	broker    int32
}

type replicaSizes map[replica]int64

func loadSizes(ctx context.Context, admin *kadm.Client, details kadm.TopicDetails) replicaSizes {
	out := replicaSizes{}
	dirs, _ := admin.DescribeAllLogDirs(ctx, details.TopicsSet())
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if !p.IsFuture {
				out[replica{p.Topic, p.Partition, p.Broker}] += p.Size
			}
		})
	})
	return out
}

// of returns the size of the leader's replica.
func (s replicaSizes) of(topic string, partition, leader int32) *int64 {
	n, ok := s[replica{topic, partition, leader}]
	if !ok {
		return nil
	}
	return &n
}

// settingFlag parses the values of a --config flag.
func settingFlag(pairs []string) (names []string, values map[string]*string, err error) {
	values = map[string]*string{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, nil, cli.Usagef("--config takes name=value, not %q", pair)
		}
		if slices.Contains(names, name) {
			return nil, nil, cli.Usagef("--config sets %s twice", name)
		}
		names, values[name] = append(names, name), &value
	}
	return names, values, nil
}
