package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"

	"muster/internal/metadata"
	"muster/internal/record"
)

// RaiseEpoch gives a partition that this broker leads under an epoch a higher
// one, which is also above a second one. If the metadata says something else by
// now there is nothing to do: the leader has been chosen anew.
//
// A broker with a store of its own keeps one epoch for all partitions, the highest that any has.
// The others get it when it starts again.
func (c *Controller) RaiseEpoch(ctx context.Context, topic string, partition, from, above int32) error {
	return c.attempt(ctx, func() error {
		if err := c.catchUp(ctx); err != nil {
			return err
		}
		edit := c.image.Load().Edit()
		t := edit.Image().Topic(topic)
		is := metadata.Partition{Leader: c.opts.Self.ID, LeaderEpoch: from}
		if t == nil || partition < 0 || int(partition) >= len(t.Partitions) || t.Partitions[partition] != is {
			return nil
		}
		highest := max(from, above)
		if c.shared == nil {
			highest = max(highest, c.state.leaderEpoch)
		}
		if highest == math.MaxInt32 {
			return fmt.Errorf("the leader epoch of %s-%d cannot rise above %d", topic, partition, highest)
		}
		changed := *t
		changed.Partitions = slices.Clone(t.Partitions)
		changed.Partitions[partition].LeaderEpoch = highest + 1
		edit.PutTopic(changed)
		return c.change(ctx, edit, c.epochRecord(changed, highest+1))
	})
}

// epochRecord is the record that says that a partition of a topic has an epoch.
func (c *Controller) epochRecord(t metadata.Topic, epoch int32) record.Record {
	if c.shared == nil {
		return clusterRecord(c.state.clusterID, epoch)
	}
	return topicRecord(t, true)
}
