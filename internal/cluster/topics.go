package cluster

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

// Limits that keep one request from exhausting the broker.
const (
	maxPartitionsPerTopic = 10_000
	maxTopics             = 100_000
	// maxCreatedAtOnce is how many partitions one request may create, as in Kafka.
	maxCreatedAtOnce = 10_000
)

// CreateTopics creates topics, each on its own: the errors are per topic, in
// the order of the requests. With validateOnly nothing is created.
func (c *Controller) CreateTopics(ctx context.Context, reqs []metadata.NewTopic, validateOnly bool) (topics []*metadata.Topic, errs []error) {
	err := c.durably(ctx, func() error {
		edit := c.image.Load().Edit()
		topics, errs = make([]*metadata.Topic, len(reqs)), make([]error, len(reqs))
		if err := checkTogether(edit.Image(), reqs); err != nil {
			return err
		}
		var recs []record.Record
		for i, req := range reqs {
			t, err := c.newTopic(edit.Image(), req)
			if err != nil {
				errs[i] = err
				continue
			}
			edit.PutTopic(t)
			topics[i] = edit.Image().Topic(t.Name)
			recs = append(recs, topicRecord(t, c.shared != nil))
		}
		if validateOnly || len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	return topics, fill(errs, err)
}

// checkTogether refuses to create too much at once.
func checkTogether(image *metadata.Image, reqs []metadata.NewTopic) error {
	total := int64(0)
	for i := range reqs {
		n := int64(reqs[i].Partitions)
		if n < 0 {
			n = image.Config.Int("num.partitions")
		}
		total += n
	}
	if len(reqs) > 1 && total > maxCreatedAtOnce {
		return metadata.Refuse(kerr.PolicyViolation, "one request may create %d partitions, not %d", maxCreatedAtOnce, total)
	}
	return nil
}

// fill gives an error to each topic that has none of its own.
func fill(errs []error, err error) []error {
	for i := range errs {
		if errs[i] == nil {
			errs[i] = err
		}
	}
	return errs
}

func (c *Controller) newTopic(image *metadata.Image, req metadata.NewTopic) (t metadata.Topic, err error) {
	if err := metadata.CheckTopicName(req.Name); err != nil {
		return t, metadata.Refuse(kerr.InvalidTopicException, "%s", err)
	}
	if metadata.IsInternal(req.Name) {
		// However it comes to be created, no one but muster decides what it is like.
		own, ok := metadata.NewInternal(image, req.Name, c.shared != nil)
		if !ok {
			return t, metadata.Refuse(kerr.InvalidTopicException, "the name %q is muster's own", req.Name)
		}
		req = own
	}
	if image.Topic(req.Name) != nil {
		return t, metadata.Refuse(kerr.TopicAlreadyExists, "topic %q already exists", req.Name)
	}
	if _, ok := c.state.deleting[req.Name]; ok {
		return t, metadata.Refuse(kerr.TopicAlreadyExists, "topic %q is still being deleted", req.Name)
	}
	n := req.Partitions
	if n == -1 {
		n = int32(image.Config.Int("num.partitions"))
	}
	if n < 1 || n > maxPartitionsPerTopic {
		return t, metadata.Refuse(kerr.InvalidPartitions, "a topic has 1 to %d partitions, not %d", maxPartitionsPerTopic, n)
	}
	if req.Replication == 0 || req.Replication < -1 || int(req.Replication) > len(image.Brokers) {
		return t, metadata.Refuse(kerr.InvalidReplicationFactor, "replication factor %d is not possible with %d broker(s)%s", req.Replication, len(image.Brokers), c.onlyOne())
	}
	if image.TopicCount() >= maxTopics {
		return t, metadata.Refuse(kerr.PolicyViolation, "there are %d topics already, which is the limit", maxTopics)
	}
	for name, value := range req.Set {
		if err := config.CheckTopic(name, value); err != nil {
			return t, metadata.Refuse(kerr.InvalidConfig, "%s", err)
		}
	}
	if err := c.checkReplicas(req.Set); err != nil {
		return t, err
	}
	t = metadata.Topic{Name: req.Name, Internal: metadata.IsInternal(req.Name), Set: maps.Clone(req.Set)}
	_, _ = rand.Read(t.ID[:]) // Never fails, by its documentation.
	if c.shared != nil && !t.Internal {
		c.pinLayout(image, &t)
	}
	t.Partitions = c.withPartitions(image, t.Name, nil, int(n), req.Leaders)
	return t, nil
}

// pinLayout sets on the topic how its records are laid out, since that must not
// change with the broker's default.
func (c *Controller) pinLayout(image *metadata.Image, t *metadata.Topic) {
	if t.Set == nil {
		t.Set = map[string]string{}
	}
	for _, name := range fixed {
		t.Set[name] = config.TopicValue(image.Config, t.Set, name)
	}
}

// onlyOne says, in a message for people, why there cannot be more brokers.
func (c *Controller) onlyOne() string {
	if c.shared != nil {
		return ""
	}
	return ": with this store a broker is alone; several brokers share a Redis store (--store redis://…)"
}

// checkReplicas refuses to wait for replicas that a store does not have.
func (c *Controller) checkReplicas(set map[string]string) error {
	if v, ok := set["min.insync.replicas"]; ok && v != "1" && c.shared == nil {
		return metadata.Refuse(kerr.InvalidConfig, "min.insync.replicas must be 1%s", c.onlyOne())
	}
	return nil
}

// withPartitions returns the partitions of a topic and more of them, led by the
// brokers that were asked for, as far as there are any and they exist.
func (c *Controller) withPartitions(image *metadata.Image, topic string, have []metadata.Partition, count int, leaders []int32) []metadata.Partition {
	if c.shared != nil {
		leaders = spreadNew(image, topic, have, count, leaders)
	}
	out := slices.Clone(have)
	for i := len(have); i < count; i++ {
		p := metadata.Partition{Leader: c.opts.Self.ID, LeaderEpoch: c.state.leaderEpoch}
		if c.shared != nil {
			p = metadata.Partition{Leader: leaders[i]}
		}
		out = append(out, p)
	}
	return out
}

// GrowTopic raises a topic's number of partitions. The new ones are led by the
// brokers that are named, if any are.
func (c *Controller) GrowTopic(ctx context.Context, name string, count int32, leaders []int32, validateOnly bool) error {
	return c.durably(ctx, func() error {
		edit := c.image.Load().Edit()
		old := edit.Image().Topic(name)
		if old == nil {
			return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", name)
		}
		if old.Internal {
			return metadata.Refuse(kerr.InvalidTopicException, "topic %q is internal: with more partitions what it holds would not be found again", name)
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
		t.Partitions = c.withPartitions(edit.Image(), name, old.Partitions, int(count), leaders)
		edit.PutTopic(t)
		return c.change(ctx, edit, topicRecord(t, c.shared != nil))
	})
}
