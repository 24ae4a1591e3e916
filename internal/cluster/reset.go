package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

// isLoss says whether an error means that the log must be read from its start.
func isLoss(err error) bool {
	return errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrCompacted)
}

// reset reads the whole log again, since what was seen last cannot be proven,
// and publishes the difference. The lock is held.
//
// If the store has lost something, others may go on from there, and leader
// epochs would be given a second time. So those of all partitions that this
// broker knows rise above what it knew, unless another broker has seen to that.
func (c *Controller) reset(ctx context.Context, why error) error {
	lost := errors.Is(why, store.ErrLost)
	if lost {
		c.opts.Logger.Warn("the store has lost some of the cluster metadata; reading it again", "error", why)
	}
	before := c.image.Load()
	seen, state := c.seen, c.state
	edit, err := c.replayAgain(ctx, before, lost)
	if err != nil {
		c.seen, c.state = seen, state // So that the next one finds the loss too.
		return fmt.Errorf("read cluster metadata again: %w", err)
	}
	if before.ClusterID != "" {
		c.lastClusterID = before.ClusterID
	}
	c.nextID = c.lastID // Another broker may be given what is left of the block.
	after := edit.Image()
	names := map[string]struct{}{}
	var gone []string
	for _, t := range after.Topics() {
		names[t.Name] = struct{}{}
	}
	for _, t := range before.Topics() {
		names[t.Name] = struct{}{}
		if after.TopicByID(t.ID) == nil {
			gone = append(gone, t.Name)
		}
	}
	if len(gone) > 0 {
		c.opts.Logger.Warn("topics are gone with the end of the cluster metadata", "count", len(gone), "first", gone[:min(len(gone), maxTold)])
	}
	if lost {
		c.tellLost(before, after)
	}
	return c.announce(ctx, after, slices.Sorted(maps.Keys(names)))
}

// replayAgain reads the log from its start, and appends what must not go back.
func (c *Controller) replayAgain(ctx context.Context, before *metadata.Image, lost bool) (*metadata.Edit, error) {
	// This creates the log if the store has lost it.
	l, err := c.opts.Store.(store.Shared).OpenShared(ctx, store.TopicPartition{Topic: metadata.ClusterMetadataTopic})
	if err != nil {
		return nil, err
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	for {
		c.seen, c.state = store.Seen{}, newState(c.opts.Self.ID)
		edit := metadata.NewImage(c.opts.Defaults).Edit()
		if err := c.readInto(ctx, edit); err != nil {
			return nil, err
		}
		recs := raiseAbove(edit, before, lost)
		if len(recs) == 0 {
			return edit, nil
		}
		if err := c.write(ctx, recs...); !errors.Is(err, store.ErrMoved) {
			return edit, err
		}
		if pause(ctx, retryChange); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// raiseAbove raises the leader epochs that an older image knew already. Without
// a loss an epoch stays the same together with its leader.
func raiseAbove(edit *metadata.Edit, known *metadata.Image, lost bool) []record.Record {
	var recs []record.Record
	for _, t := range edit.Image().Topics() {
		old := known.TopicByID(t.ID)
		if old == nil {
			continue
		}
		next := slices.Clone(t.Partitions)
		for i := range min(len(next), len(old.Partitions)) {
			was := old.Partitions[i]
			if next[i].LeaderEpoch < was.LeaderEpoch || next[i].LeaderEpoch == was.LeaderEpoch && (lost || next[i].Leader != was.Leader) {
				next[i].LeaderEpoch = was.LeaderEpoch + 1
			}
		}
		if !slices.Equal(next, t.Partitions) {
			changed := *t
			changed.Partitions = next
			edit.PutTopic(changed)
			recs = append(recs, topicRecord(changed, true))
		}
	}
	return recs
}
