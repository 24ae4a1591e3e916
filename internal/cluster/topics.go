package cluster

import (
	"context"
	"crypto/rand"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

// Limits that keep one request from exhausting the broker.
const (
	maxPartitionsPerTopic = 10_000
	maxTopics             = 100_000
)

// CreateTopics creates topics, each on its own: the errors are per topic, in
// the order of the requests. With validateOnly nothing is created.
func (c *Controller) CreateTopics(ctx context.Context, reqs []metadata.NewTopic, validateOnly bool) ([]*metadata.Topic, []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	image := c.image.Load()
	edit := image.Edit()
	topics, errs := make([]*metadata.Topic, len(reqs)), make([]error, len(reqs))
	var recs []record.Record
	for i, req := range reqs {
		t, err := c.newTopic(edit.Image(), req)
		if err != nil {
			errs[i] = err
			continue
		}
		edit.PutTopic(t)
		topics[i] = edit.Image().Topic(t.Name)
		recs = append(recs, topicRecord(t))
	}
	if validateOnly || len(recs) == 0 {
		return topics, errs
	}
	if err := c.change(ctx, edit, recs...); err != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
	}
	return topics, errs
}

func (c *Controller) newTopic(image *metadata.Image, req metadata.NewTopic) (t metadata.Topic, err error) {
	if err := metadata.CheckTopicName(req.Name); err != nil {
		return t, metadata.Refuse(kerr.InvalidTopicException, "%s", err)
	}
	if image.Topic(req.Name) != nil || req.Name == metadata.ClusterMetadataTopic {
		return t, metadata.Refuse(kerr.TopicAlreadyExists, "topic %q already exists", req.Name)
	}
	n := req.Partitions
	if n == -1 {
		n = int32(image.Config.Int("num.partitions"))
	}
	if n < 1 || n > maxPartitionsPerTopic {
		return t, metadata.Refuse(kerr.InvalidPartitions, "a topic has 1 to %d partitions, not %d", maxPartitionsPerTopic, n)
	}
	if req.Replication == 0 || req.Replication < -1 || int(req.Replication) > len(image.Brokers) {
		return t, metadata.Refuse(kerr.InvalidReplicationFactor, "replication factor %d is not possible with %d broker(s)", req.Replication, len(image.Brokers))
	}
	if image.TopicCount() >= maxTopics {
		return t, metadata.Refuse(kerr.PolicyViolation, "there are %d topics already, which is the limit", maxTopics)
	}
	for name, value := range req.Set {
		if err := config.CheckTopic(name, value); err != nil {
			return t, metadata.Refuse(kerr.InvalidConfig, "%s", err)
		}
	}
	t = metadata.Topic{Name: req.Name, Internal: metadata.IsInternal(req.Name), Set: maps.Clone(req.Set)}
	_, _ = rand.Read(t.ID[:]) // Never fails, by its documentation.
	t.Partitions = c.partitions(int(n))
	return t, nil
}

func (c *Controller) partitions(n int) []metadata.Partition {
	out := make([]metadata.Partition, n)
	for i := range out {
		out[i] = metadata.Partition{Leader: c.opts.Self.ID, LeaderEpoch: c.leaderEpoch}
	}
	return out
}

// DeleteTopics deletes topics; the errors are per topic.
func (c *Controller) DeleteTopics(ctx context.Context, names []string) []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit := c.image.Load().Edit()
	errs := make([]error, len(names))
	var recs []record.Record
	for i, name := range names {
		t := edit.Image().Topic(name)
		switch {
		case t == nil:
			errs[i] = metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", name)
		case t.Internal:
			errs[i] = metadata.Refuse(kerr.InvalidTopicException, "topic %q is internal and cannot be deleted", name)
		default:
			edit.RemoveTopic(name)
			recs = append(recs, topicTombstone(name))
		}
	}
	if len(recs) == 0 {
		return errs
	}
	if err := c.change(ctx, edit, recs...); err != nil {
		for i := range errs {
			if errs[i] == nil {
				errs[i] = err
			}
		}
	}
	return errs
}

// GrowTopic raises a topic's number of partitions.
func (c *Controller) GrowTopic(ctx context.Context, name string, count int32, validateOnly bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	edit := c.image.Load().Edit()
	old := edit.Image().Topic(name)
	if old == nil {
		return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", name)
	}
	have := len(old.Partitions)
	switch {
	case int(count) == have:
		return metadata.Refuse(kerr.InvalidPartitions, "topic %q already has %d partitions", name, have)
	case int(count) < have:
		return metadata.Refuse(kerr.InvalidPartitions, "topic %q has %d partitions; their number can only grow, not shrink to %d", name, have, count)
	case count > maxPartitionsPerTopic:
		return metadata.Refuse(kerr.InvalidPartitions, "a topic has at most %d partitions, not %d", maxPartitionsPerTopic, count)
	}
	if validateOnly {
		return nil
	}
	t := *old
	t.Partitions = append(append([]metadata.Partition{}, old.Partitions...), c.partitions(int(count)-have)...)
	edit.PutTopic(t)
	return c.change(ctx, edit, topicRecord(t))
}
