package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"muster/internal/store"
)

// clock is the time since the controller was made, by a clock that does not
// jump and that goes on while the process is stopped.
func (c *Controller) clock() time.Duration { return time.Since(c.epoch) }

// believe notes that a lease was renewed by a request that was sent at asked.
func (c *Controller) believe(asked time.Duration) {
	c.until.Store(int64(asked + c.opts.Lease.TTL()))
}

// Alive says whether this broker may still act as the image says. One whose
// lease may have run out must not: others may have taken over.
func (c *Controller) Alive() bool {
	return c.opts.Lease == nil || int64(c.clock()) < c.until.Load()
}

// beat renews the lease.
func (c *Controller) beat(ctx context.Context) {
	tick := time.NewTicker(min(c.opts.Lease.TTL()/4, c.opts.Defaults.Duration("broker.heartbeat.interval.ms")))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.renew(ctx)
		}
	}
}

// renew does not wait for changes of the metadata that are being carried out:
// a broker that is busy with them is alive. One whose lease had run out is not,
// until it has heard what the others did meanwhile.
func (c *Controller) renew(ctx context.Context) {
	asked := c.clock()
	ok, err := c.opts.Lease.Renew(ctx)
	if err == nil && !ok {
		c.opts.Logger.Warn("this broker was silent for too long; joining again", "node", c.opts.Self.ID)
		c.unsteady()
		c.lapsed = true
		asked = c.clock()
		err = c.opts.Lease.Acquire(ctx)
	}
	if err == nil && (c.lapsed || !c.registered()) {
		err = c.joinAgain(ctx)
	}
	if err != nil {
		c.unsteady()
		if ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
			c.opts.Logger.Warn("the lease of this broker could not be renewed", "node", c.opts.Self.ID, "error", err)
		}
		return
	}
	c.lapsed = false
	c.believe(asked)
	c.steady.CompareAndSwap(0, int64(asked))
}

// unsteady notes that the store could not be reached in time, so that others may
// not have been able to either.
func (c *Controller) unsteady() { c.steady.Store(0) }

// joinAgain takes in what the others did, and registers this broker if they took it
// out of the metadata. If they did not it is written again all the same: someone
// may have seen that the lease had run out, and be about to say so. That fails then,
// since the log goes on.
func (c *Controller) joinAgain(ctx context.Context) error {
	return c.attempt(ctx, func() error {
		if err := c.catchUp(ctx); err != nil {
			return err
		}
		edit := c.image.Load().Edit()
		if c.registered() {
			return c.change(ctx, edit, brokerRecord(c.opts.Self))
		}
		recs := c.register(edit)
		c.opts.Logger.Info("joined again", "node", c.opts.Self.ID)
		return c.change(ctx, edit, recs...)
	})
}

// watch looks after the others: whose lease has run out is taken out of the
// metadata, and topics that they were deleting are deleted.
func (c *Controller) watch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.isSteady() {
				err := errors.Join(c.buryDead(ctx), c.finishDeletes(ctx))
				if err != nil && ctx.Err() == nil && !errors.Is(err, store.ErrUnavailable) {
					c.opts.Logger.Warn("could not check which other brokers are alive", "error", err)
				}
			}
		}
	}
}

// isSteady says whether this broker has been able to renew its lease for as long
// as a lease lasts. Only then can it conclude that a broker without a lease is gone,
// and not that the store was away for everyone.
func (c *Controller) isSteady() bool {
	since := c.steady.Load()
	return since != 0 && int64(c.clock())-since >= int64(c.opts.Lease.TTL()) && c.Alive()
}

// buryDead takes brokers out of the metadata. Who is gone is looked up anew whenever
// the metadata went on meanwhile: it may have come back.
func (c *Controller) buryDead(ctx context.Context) error {
	return c.attempt(ctx, func() error {
		gone, err := c.dead(ctx)
		if err != nil || len(gone) == 0 {
			return err
		}
		c.opts.Logger.Warn("brokers are gone; their partitions move", "nodes", gone)
		edit := c.image.Load().Edit()
		return c.change(ctx, edit, c.bury(edit, gone)...)
	})
}

// dead returns the other brokers whose lease has run out.
func (c *Controller) dead(ctx context.Context) ([]int32, error) {
	var others []int32
	for _, b := range c.image.Load().Brokers {
		if b.ID != c.opts.Self.ID {
			others = append(others, b.ID)
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	live, err := c.opts.Lease.Live(ctx, others)
	return slices.DeleteFunc(others, func(id int32) bool { return live[id] }), err
}
