package cluster

import (
	"context"
	"fmt"
)

const (
	// producerIDBlock is how many producer ids one record reserves.
	producerIDBlock = 1000
	// producerIDShare is how many of them a shard of transactions gets at a time.
	producerIDShare = 50
)

// NextProducerIDs returns a few producer ids, from first on, that were never
// returned before.
func (c *Controller) NextProducerIDs(ctx context.Context) (first int64, count int32, err error) {
	err = c.durably(ctx, func() error {
		if c.lastID-c.nextID < producerIDShare {
			if err := c.reserveIDs(ctx); err != nil {
				return err
			}
		}
		first = c.nextID
		c.nextID += producerIDShare
		return nil
	})
	return first, producerIDShare, err
}

// NextProducerID returns a producer id that was never returned before, also
// not before a crash, and not by another broker.
func (c *Controller) NextProducerID(ctx context.Context) (id int64, err error) {
	c.mu.Lock()
	spare := c.nextID < c.lastID
	if spare {
		id = c.nextID
		c.nextID++
	}
	c.mu.Unlock()
	if spare {
		return id, nil
	}
	err = c.durably(ctx, func() error {
		if c.nextID == c.lastID {
			if err := c.reserveIDs(ctx); err != nil {
				return err
			}
		}
		id = c.nextID
		c.nextID++
		return nil
	})
	return id, err
}

// reserveIDs takes a block of producer ids. It begins above those that the log
// knows, above those that this broker had, and above the time in microseconds:
// a store that lost the end of the log does not know which blocks it gave, but
// they are of the past. (Ids are not used up faster than a thousand in a
// millisecond.)
func (c *Controller) reserveIDs(ctx context.Context) error {
	now := c.opts.Now()
	if c.shared != nil {
		server, err := c.shared.Time(ctx)
		if err != nil {
			return fmt.Errorf("ask for the time: %w", err)
		}
		if server.After(now) {
			now = server
		}
	}
	from := max(c.state.nextProducerID, c.lastID, now.UnixMicro())
	if err := c.write(ctx, producerIDsRecord(from+producerIDBlock)); err != nil {
		return err
	}
	c.nextID, c.lastID = from, from+producerIDBlock
	return nil
}
