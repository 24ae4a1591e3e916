package cluster

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

// Reassign gives partitions to brokers; the errors are per partition, in their order.
// It moves nothing else. A partition has one replica, its leader, and what a partition
// holds stays where it is, so that a move is done with its record: none is ever under
// way.
//
// A partition prefers the broker that it was given to from then on: it goes to another
// while that one is away or drained, and back when it is there again.
func (c *Controller) Reassign(ctx context.Context, moves []metadata.Reassignment) (errs []error) {
	err := c.durably(ctx, func() error {
		edit := c.image.Load().Edit()
		errs = make([]error, len(moves))
		topics := map[string]*metadata.Topic{}
		for i := range moves {
			m := &moves[i]
			t := topics[m.Topic]
			if t == nil {
				t = edit.Image().Topic(m.Topic)
			}
			if errs[i] = c.checkMove(edit.Image(), t, m); errs[i] != nil || c.shared == nil || metadata.JournalOf(m.Topic) != "" {
				continue
			}
			if topics[m.Topic] == nil {
				changed := *t
				changed.Preferred = slices.Clone(t.Preferred)
				for len(changed.Preferred) < len(t.Partitions) {
					changed.Preferred = append(changed.Preferred, metadata.NoBroker)
				}
				t = &changed
				topics[m.Topic] = t
			}
			t.Preferred[m.Partition] = m.Replicas[0]
		}
		recs := prefer(edit, topics)
		if len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	return fill(errs, err)
}

// checkMove says why a partition cannot be given to a broker.
func (c *Controller) checkMove(image *metadata.Image, t *metadata.Topic, m *metadata.Reassignment) error {
	if t == nil || m.Partition < 0 || int(m.Partition) >= len(t.Partitions) {
		return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no partition %d of topic %q", m.Partition, m.Topic)
	}
	if m.Cancel {
		return metadata.Refuse(kerr.NoReassignmentInProgress, "no reassignment of %s-%d is in progress", m.Topic, m.Partition)
	}
	if len(m.Replicas) != 1 {
		return metadata.Refuse(kerr.InvalidReplicaAssignment, "a partition has exactly one replica, its leader, not %d", len(m.Replicas))
	}
	to := m.Replicas[0]
	switch of := metadata.JournalOf(m.Topic); {
	case image.Broker(to) == nil:
		return metadata.Refuse(kerr.InvalidReplicaAssignment, "broker %d is not part of the cluster%s", to, c.onlyOne())
	case image.Drained(to):
		return metadata.Refuse(kerr.InvalidReplicaAssignment, "broker %d is drained; muster brokers undrain %d lets it lead partitions again", to, to)
	case of != "" && t.Partitions[m.Partition].Leader != to:
		return metadata.Refuse(kerr.InvalidReplicaAssignment, "the partitions of %s are led by the brokers that lead those of %s: move those", m.Topic, of)
	}
	return nil
}

// prefer puts topics whose preferred leaders have changed, and moves what is not where it
// is wanted. Other partitions stay, but journals go with what they tell of.
func prefer(edit *metadata.Edit, topics map[string]*metadata.Topic) []record.Record {
	var recs []record.Record
	for _, old := range journalsLast(edit.Image().Topics()) {
		t, leaders := topics[old.Name], currentLeaders(old)
		switch {
		case t != nil:
			for i, id := range t.Preferred {
				if id != metadata.NoBroker && edit.Image().MayLead(id) {
					leaders[i] = id
				}
			}
		case topics[metadata.JournalOf(old.Name)] != nil:
			t = old
			follow(edit.Image(), old.Name, leaders, 0)
		default:
			continue
		}
		next := lead(t.Partitions, leaders, metadata.NoBroker)
		if slices.Equal(next, old.Partitions) && slices.Equal(t.Preferred, old.Preferred) {
			continue
		}
		changed := *t
		changed.Partitions = next
		edit.PutTopic(changed)
		recs = append(recs, topicRecord(changed, true))
	}
	return recs
}

// checkDrained refuses to drain brokers that there are not, and the last one. A broker
// that is drained and away stays so.
func (c *Controller) checkDrained(image *metadata.Image, set map[string]string) error {
	old, next := image.Set[metadata.DrainedSetting], set[metadata.DrainedSetting]
	if next == old || next == "" {
		return nil
	}
	if c.shared == nil {
		return metadata.Refuse(kerr.InvalidRequest, "this broker cannot be drained, since there is no other one to lead its partitions%s", c.onlyOne())
	}
	had, now := config.SplitList(old), config.SplitList(next)
	for _, name := range now {
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil || strconv.FormatInt(id, 10) != name || id < 0 {
			return metadata.Refuse(kerr.InvalidRequest, "%q is not the id of a broker", name)
		}
		if image.Broker(int32(id)) == nil && !slices.Contains(had, name) {
			return metadata.Refuse(kerr.InvalidRequest, "there is no broker %d", id)
		}
	}
	for i := range image.Brokers {
		if !slices.Contains(now, strconv.Itoa(int(image.Brokers[i].ID))) {
			return nil
		}
	}
	return metadata.Refuse(kerr.InvalidRequest, "at least one broker must not be drained: it leads the partitions of the others")
}
