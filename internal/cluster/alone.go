package cluster

import (
	"context"
	"errors"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

// compactAbove is the size of the metadata log above which a start compacts it.
const compactAbove = 4 << 20

// openAlone opens the metadata of a broker that has its store for itself.
func (c *Controller) openAlone(ctx context.Context) error {
	if err := c.openLog(ctx); err != nil {
		return err
	}
	c.compact(ctx)
	empty := metadata.NewImage(c.opts.Defaults, c.opts.Self)
	edit := empty.Edit()
	if err := c.state.replay(ctx, c.log, edit); err != nil {
		return err
	}
	first := c.state.clusterID == ""
	if first {
		c.state.clusterID = newClusterID()
	} else if c.opts.Crashed {
		c.state.leaderEpoch++
	}
	edit.SetClusterID(c.state.clusterID)
	edit.SetLeaderEpoch(c.state.leaderEpoch)
	var recs []record.Record
	if first || c.opts.Crashed {
		recs = append(recs, clusterRecord(c.state.clusterID, c.state.leaderEpoch))
	}
	if recs = append(recs, shareSecret(edit)...); len(recs) > 0 {
		if err := c.write(ctx, recs...); err != nil {
			return err
		}
	}
	return c.begin(ctx, empty, edit.Image())
}

// openLog opens the metadata log. A broker alone needs no epochs for it: the
// lock of the data folder keeps others out.
func (c *Controller) openLog(ctx context.Context) error {
	tp := store.TopicPartition{Topic: metadata.ClusterMetadataTopic}
	log, err := c.opts.Store.Open(ctx, tp, 0, store.LogConfig{SegmentBytes: 1 << 20})
	if err != nil {
		return err // The one that failed stays, so that the next change tries again.
	}
	c.log = log
	return nil
}

func (c *Controller) compact(ctx context.Context) {
	if c.log.Size() < compactAbove {
		return
	}
	_, end := c.log.Bounds()
	err := c.log.Compact(ctx, store.Compaction{Now: c.opts.Now(), NextOffset: end, MinDirtyRatio: 0.5})
	if err != nil {
		c.opts.Logger.Warn("cluster metadata could not be compacted", "error", err)
	}
}

// writeAlone appends a batch and waits until it is durable.
func (c *Controller) writeAlone(ctx context.Context, b []byte) error {
	_, err := c.log.Append(ctx, b)
	if errors.Is(err, store.ErrFailed) {
		// An earlier failure cut off records that no image has seen.
		if err = c.openLog(ctx); err == nil {
			_, err = c.log.Append(ctx, b)
		}
	}
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	c.log.Flush(func(err error) { done <- err })
	return <-done
}
