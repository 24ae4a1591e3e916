// Package source asks brokers over the Kafka protocol for what more than one family of
// commands shows: groups, offsets of partitions, and the topics in which a muster broker
// keeps what happened (the journals of groups and transactions, the audit log).
package source

import (
	"cmp"
	"context"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/watch/groupview"
)

// ageFetchBytes is how much of a partition is fetched for the sake of one record;
// a broker sends larger batches too, one at a time.
const ageFetchBytes = 16 << 10

// Source has the facts about groups from a broker, over the Kafka protocol.
type Source struct {
	flags  *cli.Flags
	Client *kgo.Client
	Admin  *kadm.Client
}

// New makes a source. Without flags it does not read the times of records.
func New(flags *cli.Flags, client *kgo.Client) *Source {
	return &Source{flags, client, kadm.NewClient(client)}
}

// NewLoader returns what loads groups from a broker.
func NewLoader(flags *cli.Flags, client *kgo.Client) *groupview.Loader {
	return groupview.NewLoader(New(flags, client))
}

// Describe implements groupview.Source.
func (s *Source) Describe(ctx context.Context, names []string) (map[string]groupview.Description, error) {
	described, err := s.Admin.DescribeGroups(ctx, names...)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && len(described) == 0 {
		return nil, cli.Plain(err)
	}
	offsets := fetchOffsets(ctx, s.Client, names)
	others := s.DescribeOthers(ctx, described)
	var shares []string
	for name, d := range others {
		if d.Type == groupview.TypeShare {
			shares = append(shares, name)
		}
	}
	maps.Copy(offsets, fetchShareOffsets(ctx, s.Client, shares))
	out := map[string]groupview.Description{}
	for _, name := range names {
		d, ok := described[name]
		c, other := others[name]
		switch {
		case other && offsets[name].err != nil:
			out[name] = groupview.Description{Err: cli.GroupError(name, offsets[name].err)}
		case other:
			c.Committed = offsets[name].committed
			out[name] = c
		case !ok:
			out[name] = groupview.Description{Err: cli.GroupError(name, cmp.Or(err, cli.ErrNoAnswer))}
		case d.Err != nil:
			out[name] = groupview.Description{Err: cli.GroupError(name, d.Err)}
		case d.State != groupview.Dead && offsets[name].err != nil:
			out[name] = groupview.Description{Err: cli.GroupError(name, offsets[name].err)}
		default:
			out[name] = Description(&d, offsets[name].committed)
		}
	}
	return out, nil
}

func coordinatorOf(b kadm.BrokerDetail) *groupview.Coordinator {
	if b.Host == "" {
		return nil
	}
	return &groupview.Coordinator{Broker: b.NodeID, Address: b.Host + ":" + strconv.Itoa(int(b.Port))}
}

func Description(d *kadm.DescribedGroup, committed map[TopicPartition]groupview.Commit) groupview.Description {
	out := groupview.Description{Group: groupview.Group{
		Type: groupview.TypeClassic, State: d.State, ProtocolType: d.ProtocolType, Assignor: d.Protocol, Coordinator: coordinatorOf(d.Coordinator),
	}, Committed: committed}
	for _, m := range d.Members {
		member := groupview.Member{ID: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Instance: m.InstanceID}
		joined, _ := m.Join.AsConsumer()
		member.Topics = joined.Topics
		assigned, _ := m.Assigned.AsConsumer()
		for _, t := range assigned.Topics {
			member.Assigned = append(member.Assigned, groupview.Assigned{Topic: t.Topic, Partitions: t.Partitions})
		}
		out.Members = append(out.Members, member)
	}
	return out
}

// Logs implements groupview.Source.
func (s *Source) Logs(ctx context.Context, topics []string) (map[string]groupview.Log, error) {
	details, err := s.Admin.ListTopicsWithInternal(ctx, topics...)
	if err != nil {
		return nil, cli.Plain(err)
	}
	out, set := map[string]groupview.Log{}, kadm.TopicsSet{}
	for _, d := range details {
		if d.Err == nil {
			out[d.Topic] = groupview.Log{Partitions: len(d.Partitions), Bounds: map[int32]groupview.Bounds{}}
			set.Add(d.Topic, d.Partitions.Numbers()...)
		}
	}
	// First the start and then the end, so that a log never seems to end before
	// it begins.
	starts, err := ListOffsets(ctx, s.Client, set, atLogStart)
	if err != nil {
		return nil, err
	}
	ends, err := ListOffsets(ctx, s.Client, set, AtLogEnd)
	if err != nil {
		return nil, err
	}
	for tp, start := range starts {
		if end, ok := ends[tp]; ok {
			out[tp.Topic].Bounds[tp.Partition] = groupview.Bounds{Start: start, End: max(end, start)}
		}
	}
	return out, nil
}

// FirstTimes implements groupview.Source.
func (s *Source) FirstTimes(ctx context.Context, from map[TopicPartition]int64) (map[TopicPartition]time.Time, error) {
	client, err := s.flags.Connect(ctx, append(ConsumerOptions(kgo.ReadUncommitted()), kgo.FetchMaxPartitionBytes(ageFetchBytes))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	assign := map[string]map[int32]kgo.Offset{}
	for tp, offset := range from {
		if assign[tp.Topic] == nil {
			assign[tp.Topic] = map[int32]kgo.Offset{}
		}
		assign[tp.Topic][tp.Partition] = kgo.NewOffset().At(offset)
	}
	client.AddConsumePartitions(assign)
	out, seen := map[TopicPartition]time.Time{}, map[TopicPartition]bool{}
	for len(seen) < len(from) && ctx.Err() == nil {
		pause := map[string][]int32{}
		client.PollFetches(ctx).EachPartition(func(p kgo.FetchTopicPartition) {
			tp := TopicPartition{Topic: p.Topic, Partition: p.Partition}
			if len(p.Records) == 0 || seen[tp] {
				return
			}
			seen[tp] = true
			pause[p.Topic] = append(pause[p.Topic], p.Partition)
			if t := p.Records[0].Timestamp; t.UnixMilli() >= 0 {
				out[tp] = t
			}
		})
		client.PauseFetchPartitions(pause)
	}
	return out, nil
}
