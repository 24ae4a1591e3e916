package broker

import (
	"context"
	"time"

	"muster/internal/handler"
	"muster/internal/protocol"
	"muster/internal/store/redis"
)

// countTimeout is how long records are counted for one request; what is not
// counted then is counted in part.
const countTimeout = 5 * time.Second

// recordCounter counts records in Redis. Any broker can, and not only the
// partition's leader: the records of all are in the same Redis. It implements
// handler.Counter.
type recordCounter struct {
	b    *Broker
	turn chan struct{} // held by the request that counts: one at a time, since Redis does nothing else meanwhile
}

// counter returns what counts records, or nothing.
func (r *redisSide) counter() handler.Counter {
	if r == nil {
		return nil
	}
	return &recordCounter{r.native.b, make(chan struct{}, 1)}
}

// CountFrom implements handler.Counter. Only streams have gaps between offsets.
func (c *recordCounter) CountFrom(ctx context.Context, places []handler.Place) []*protocol.Behind {
	out := make([]*protocol.Behind, len(places))
	var ask []redis.Place
	var at []int
	for i, p := range places {
		if s, ok := c.b.redis.native.stream(p.TopicPartition); ok && !c.b.image().Dense(p.Topic) {
			ask, at = append(ask, redis.Place{TopicPartition: p.TopicPartition, Offset: p.Offset, SequenceBits: s.SequenceBits}), append(at, i)
		}
	}
	if len(ask) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return out
	}
	counts, err := redis.CountFrom(ctx, c.b.redis.client, c.b.cfg.Get("muster.redis.prefix"), ask)
	if err != nil {
		c.b.logger.Debug("records could not be counted", "error", err)
		return out
	}
	for i, n := range counts {
		if n.Known {
			out[at[i]] = &protocol.Behind{Records: n.Records, AtLeast: n.AtLeast}
		}
	}
	return out
}
