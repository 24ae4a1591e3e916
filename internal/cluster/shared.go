package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

// Lease is a broker's sign of life in a store that several share. It runs out by
// itself if it is not renewed.
type Lease interface {
	// TTL is how long it lasts.
	TTL() time.Duration
	// Renew makes it last for another TTL from now; false says that it has run
	// out.
	Renew(ctx context.Context) (bool, error)
	// Acquire takes it again after it ran out.
	Acquire(ctx context.Context) error
	// Live says which of these brokers have one.
	Live(ctx context.Context, ids []int32) (map[int32]bool, error)
	// Release gives it up.
	Release(ctx context.Context) error
}

const (
	// watchEvery is how often it is checked who is alive.
	watchEvery = 250 * time.Millisecond
	// compactAfter is how many records make a start compact the log.
	compactAfter = 10_000
	// keepRecent is how many of the newest records compaction leaves alone, so
	// that a broker that follows can still prove the last batch it has seen.
	keepRecent = 1000
)

// openShared joins the brokers that share the store. The lease is held.
func (c *Controller) openShared(ctx context.Context) (err error) {
	shared, ok := c.opts.Store.(store.Shared)
	if !ok {
		return errors.New("the store is not one that brokers can share")
	}
	asked := c.clock()
	switch ok, err := c.opts.Lease.Renew(ctx); {
	case err != nil:
		return fmt.Errorf("the lease of node %d was lost while starting: %w", c.opts.Self.ID, err)
	case !ok:
		return fmt.Errorf("the lease of node %d was lost while starting: it ended, or another broker has it", c.opts.Self.ID)
	}
	c.believe(asked)
	if c.shared, err = shared.OpenShared(ctx, store.TopicPartition{Topic: metadata.ClusterMetadataTopic}); err != nil {
		return err
	}
	empty := metadata.NewImage(c.opts.Defaults)
	c.image.Store(empty)
	if err := c.attempt(ctx, func() error { return c.join(ctx) }); err != nil {
		return err
	}
	if err := c.begin(ctx, empty, c.image.Load()); err != nil {
		return err
	}
	if id := c.opts.Self.ID; c.image.Load().Drained(id) {
		c.opts.Logger.Warn("this broker is drained and leads no partitions while others can; muster brokers undrain lets it", "node", id)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.ended.Go(func() { c.follow(background) })
	c.ended.Go(func() { c.beat(background) })
	c.ended.Go(func() { c.watch(background) })
	return nil
}

// join reads everything there is and adds this broker to it.
func (c *Controller) join(ctx context.Context) error {
	if err := c.catchUp(ctx); err != nil {
		return err
	}
	if c.seen.Next > compactAfter {
		// Another broker may do it at the same time.
		if err := c.shared.Compact(ctx, c.seen.Next-keepRecent); err != nil && !errors.Is(err, store.ErrMoved) {
			c.opts.Logger.Warn("cluster metadata could not be compacted", "error", err)
		}
	}
	edit := c.image.Load().Edit()
	recs := c.register(edit)
	return c.change(ctx, edit, recs...)
}

// clusterID is the id of a cluster that has none: the one that it had, if this
// broker knows it.
func (c *Controller) clusterID() string {
	if c.lastClusterID == "" {
		return newClusterID()
	}
	return c.lastClusterID
}

// register puts this broker into the metadata.
func (c *Controller) register(edit *metadata.Edit) []record.Record {
	var recs []record.Record
	if edit.Image().ClusterID == "" {
		id := c.clusterID()
		edit.SetClusterID(id)
		recs = append(recs, clusterRecord(id, 0))
	}
	recs = append(recs, shareSecret(edit)...)
	edit.PutBroker(c.opts.Self)
	recs = append(recs, brokerRecord(c.opts.Self))
	return append(recs, assign(edit, c.opts.Self.ID)...)
}

// Leave hands this broker's partitions to the others, before it ends.
func (c *Controller) Leave(ctx context.Context) error {
	if c.shared == nil {
		return nil
	}
	c.stop()
	c.ended.Wait()
	err := c.attempt(ctx, func() error {
		image := c.image.Load()
		if image.Broker(c.opts.Self.ID) == nil {
			return nil
		}
		edit := image.Edit()
		return c.change(ctx, edit, c.bury(edit, []int32{c.opts.Self.ID})...)
	})
	c.until.Store(0)
	return errors.Join(err, c.opts.Lease.Release(ctx))
}

// bury takes brokers out of the metadata and gives their partitions to others.
func (c *Controller) bury(edit *metadata.Edit, ids []int32) []record.Record {
	var recs []record.Record
	for _, id := range slices.Sorted(slices.Values(ids)) {
		edit.RemoveBroker(id)
		recs = append(recs, brokerTombstone(id))
	}
	return append(recs, assign(edit, metadata.NoBroker)...)
}
