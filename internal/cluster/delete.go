package cluster

import (
	"context"
	"errors"
	"maps"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

// DeleteTopics deletes topics; the errors are per topic.
//
// In a store that several brokers share, the record that removes a topic comes
// with one that says who deletes what it held, and the name is free again when
// that is done: otherwise a deletion that is late could hit the next topic of
// that name.
func (c *Controller) DeleteTopics(ctx context.Context, names []string) (errs []error) {
	var deleted []string
	err := c.durably(ctx, func() error {
		edit := c.image.Load().Edit()
		errs, deleted = make([]error, len(names)), nil
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
				if c.shared != nil {
					recs = append(recs, deletingRecord(name, deletingValue{By: c.opts.Self.ID, Partitions: len(t.Partitions)}))
					deleted = append(deleted, name)
				}
			}
		}
		if len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	if err == nil {
		for _, name := range deleted {
			err = errors.Join(err, c.deleteLogs(ctx, name))
		}
	}
	return fill(errs, err)
}

// deleteLogs deletes what a topic held, as this broker said that it would.
func (c *Controller) deleteLogs(ctx context.Context, name string) error {
	c.mu.Lock()
	v, ok := c.state.deleting[name]
	c.mu.Unlock()
	if !ok || v.By != c.opts.Self.ID {
		return nil
	}
	for i := range v.Partitions {
		if err := c.opts.Store.Delete(ctx, store.TopicPartition{Topic: name, Partition: int32(i)}); err != nil {
			return err
		}
	}
	return c.attempt(ctx, func() error {
		if c.state.deleting[name] != v {
			return nil
		}
		return c.write(ctx, deletingTombstone(name))
	})
}

// finishDeletes deletes what this broker could not delete before, and what
// brokers left behind that are gone.
func (c *Controller) finishDeletes(ctx context.Context) error {
	c.mu.Lock()
	todo := make(map[string]deletingValue, len(c.state.deleting))
	maps.Copy(todo, c.state.deleting)
	c.mu.Unlock()
	var errs []error
	for name, v := range todo {
		if v.By != c.opts.Self.ID {
			if c.image.Load().Broker(v.By) != nil {
				continue
			}
			errs = append(errs, c.claim(ctx, name, v))
		}
		errs = append(errs, c.deleteLogs(ctx, name))
	}
	return errors.Join(errs...)
}

// claim makes the deletion of a topic this broker's.
func (c *Controller) claim(ctx context.Context, name string, v deletingValue) error {
	return c.attempt(ctx, func() error {
		if c.state.deleting[name] != v || c.image.Load().Broker(v.By) != nil {
			return nil
		}
		return c.write(ctx, deletingRecord(name, deletingValue{By: c.opts.Self.ID, Partitions: v.Partitions}))
	})
}
