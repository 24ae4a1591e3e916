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
	// followWait is how long one look for new records waits for some.
	followWait = time.Second
	// retryFollow is the pause after one that failed.
	retryFollow = 200 * time.Millisecond
	// watchEvery is how often it is checked who is alive.
	watchEvery = 250 * time.Millisecond
	// compactAfter is how many records make a start compact the log.
	compactAfter = 10_000
)

// openShared joins the brokers that share the store. The lease is held.
func (c *Controller) openShared(ctx context.Context) (err error) {
	shared, ok := c.opts.Store.(store.Shared)
	if !ok {
		return errors.New("the store is not one that brokers can share")
	}
	asked := c.clock()
	if ok, err := c.opts.Lease.Renew(ctx); err != nil || !ok {
		return fmt.Errorf("the lease of node %d was lost while starting: %w", c.opts.Self.ID, err)
	}
	c.believe(asked)
	if c.shared, err = shared.OpenShared(ctx, store.TopicPartition{Topic: metadata.ClusterMetadataTopic}); err != nil {
		return err
	}
	if c.end, err = c.shared.Start(ctx); err != nil {
		return err
	}
	empty := metadata.NewImage(c.opts.Defaults)
	c.image.Store(empty)
	image, err := c.join(ctx, empty)
	if err != nil {
		return err
	}
	if err := c.begin(ctx, empty, image); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.ended.Go(func() { c.follow(background) })
	c.ended.Go(func() { c.beat(background) })
	c.ended.Go(func() { c.watch(background) })
	return nil
}

// join reads everything there is and adds this broker to it.
func (c *Controller) join(ctx context.Context, image *metadata.Image) (*metadata.Image, error) {
	for {
		edit := image.Edit()
		if err := c.readInto(ctx, edit); err != nil {
			return nil, err
		}
		image = edit.Image()
		if start, err := c.shared.Start(ctx); err == nil && c.end-start > compactAfter {
			// Another broker may do it at the same time.
			if err := c.shared.Compact(ctx, c.end); err != nil && !errors.Is(err, store.ErrMoved) {
				c.opts.Logger.Warn("cluster metadata could not be compacted", "error", err)
			}
		}
		next := image.Edit()
		recs := c.register(next)
		err := c.write(ctx, recs...)
		if err == nil {
			return next.Image(), nil
		}
		if !errors.Is(err, store.ErrMoved) {
			return nil, err
		}
	}
}

// register puts this broker into the metadata.
func (c *Controller) register(edit *metadata.Edit) []record.Record {
	var recs []record.Record
	if edit.Image().ClusterID == "" {
		id := newClusterID()
		edit.SetClusterID(id)
		recs = append(recs, clusterRecord(id, 0))
	}
	edit.PutBroker(c.opts.Self)
	recs = append(recs, brokerRecord(c.opts.Self))
	return append(recs, assign(edit, c.opts.Self.ID)...)
}

// readInto applies all records that have not been seen yet.
func (c *Controller) readInto(ctx context.Context, edit *metadata.Edit) error {
	for {
		b, err := c.shared.Read(ctx, c.end, 0)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			return nil
		}
		if err := c.apply(b, edit); err != nil {
			return err
		}
	}
}

// apply applies batches, but for what has been seen already.
func (c *Controller) apply(b []byte, edit *metadata.Edit) error {
	for len(b) > 0 {
		var batch record.Batch
		var err error
		if batch, b, err = record.Next(b); err != nil {
			return err
		}
		if batch.LastOffset() < c.end {
			continue
		}
		if err := batch.Each(func(r *record.Record) error { return c.state.apply(r, edit) }); err != nil {
			return err
		}
		c.end = batch.LastOffset() + 1
	}
	return nil
}

// catchUp takes in what others appended. The lock is held.
func (c *Controller) catchUp(ctx context.Context) error {
	if c.shared == nil {
		return nil
	}
	before := c.end
	edit := c.image.Load().Edit()
	if err := c.readInto(ctx, edit); err != nil {
		return fmt.Errorf("read cluster metadata: %w", err)
	}
	if c.end == before {
		return nil
	}
	return c.publish(ctx, edit)
}

// follow takes in what others append, as it comes.
func (c *Controller) follow(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		from := c.end
		c.mu.Unlock()
		b, err := c.shared.Read(ctx, from, followWait)
		if err == nil && len(b) > 0 {
			err = c.take(ctx, b)
			if err != nil && ctx.Err() == nil {
				c.opts.Logger.Error("a change of the cluster metadata could not be carried out", "error", err)
			}
		}
		if err != nil {
			pause(ctx, retryFollow)
		}
	}
}

func (c *Controller) take(ctx context.Context, b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.end
	edit := c.image.Load().Edit()
	if err := c.apply(b, edit); err != nil {
		return err
	}
	if c.end == before {
		return nil
	}
	return c.publish(ctx, edit)
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

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
