package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/internal/metadata"
	"muster/internal/record"
	"muster/internal/store"
)

const (
	// followWait is how long one look for new records waits for some.
	followWait = time.Second
	// retryFollow is the pause after one that failed.
	retryFollow = 200 * time.Millisecond
)

// doubt says since when and why the metadata cannot be followed.
type doubt struct {
	since time.Time
	err   error
}

// Problem says why this broker may not know what the others do, or nothing.
func (c *Controller) Problem() string {
	if c.shared == nil {
		return ""
	}
	if d := c.doubt.Load(); d != nil {
		return fmt.Sprintf("the cluster metadata cannot be followed since %s: %v", d.since.UTC().Format(time.RFC3339), d.err)
	}
	if !c.registered() {
		return "this broker is not registered in the cluster metadata, so that it leads nothing"
	}
	return ""
}

// registered says whether the metadata has this broker, and not what it was
// before it was started again.
func (c *Controller) registered() bool {
	in := c.image.Load().Broker(c.opts.Self.ID)
	return in != nil && in.Incarnation == c.opts.Self.Incarnation
}

// noteFollowed notes whether the metadata can be followed, and says so once.
func (c *Controller) noteFollowed(ctx context.Context, err error) {
	switch d := c.doubt.Load(); {
	case err == nil && d != nil:
		c.doubt.Store(nil)
		c.opts.Logger.Info("the cluster metadata is followed again")
	case err != nil && d == nil && ctx.Err() == nil:
		c.doubt.Store(&doubt{since: c.opts.Now(), err: err})
		if !errors.Is(err, store.ErrUnavailable) { // That the store is away is logged where it is watched.
			c.opts.Logger.Error("the cluster metadata cannot be followed", "error", err)
		}
	}
}

// follow takes in what others append, as it comes.
func (c *Controller) follow(ctx context.Context) {
	for ctx.Err() == nil {
		c.mu.Lock()
		from := c.seen
		c.mu.Unlock()
		b, err := c.shared.Read(ctx, from, followWait)
		if isLoss(err) || len(b) > 0 {
			err = c.take(ctx)
		}
		c.noteFollowed(ctx, err)
		if err != nil {
			pause(ctx, retryFollow)
		}
	}
}

// take takes in what there is.
func (c *Controller) take(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.catchUp(ctx)
}

// catchUp takes in what others appended. The lock is held.
func (c *Controller) catchUp(ctx context.Context) error {
	if c.shared == nil {
		return nil
	}
	before := c.seen
	edit := c.image.Load().Edit()
	err := c.readInto(ctx, edit)
	if isLoss(err) {
		return c.reset(ctx, err)
	}
	if err != nil {
		c.seen = before // Nothing of it was published. Taking it in twice does no harm.
		return fmt.Errorf("read cluster metadata: %w", err)
	}
	if c.seen == before {
		return nil
	}
	return c.publish(ctx, edit)
}

// readInto applies all records that have not been seen yet.
func (c *Controller) readInto(ctx context.Context, edit *metadata.Edit) error {
	for {
		b, err := c.shared.Read(ctx, c.seen, 0)
		if err != nil || len(b) == 0 {
			return err
		}
		if err := c.apply(b, edit); err != nil {
			return err
		}
	}
}

// apply applies batches.
func (c *Controller) apply(b []byte, edit *metadata.Edit) error {
	for len(b) > 0 {
		var batch record.Batch
		var err error
		if batch, b, err = record.Next(b); err != nil {
			return err
		}
		if err := batch.Each(func(r *record.Record) error { return c.state.apply(r, edit) }); err != nil {
			return err
		}
		c.seen = store.Seen{Next: batch.LastOffset() + 1, CRC: batch.CRC()}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
