package shown

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

// Counter counts records in Redis. Any broker can, and not only the partition's leader: the
// records of all are in the same Redis. It implements handler.Counter.
type Counter struct {
	groups *Groups
	turn   chan struct{} // held by the request that counts: one at a time, since Redis does nothing else meanwhile
}

// Counter returns what counts records.
func (n *Groups) Counter() *Counter { return &Counter{n, make(chan struct{}, 1)} }

// CountFrom implements handler.Counter. Only streams have gaps between offsets.
func (c *Counter) CountFrom(ctx context.Context, places []handler.Place) []*protocol.Behind {
	out := make([]*protocol.Behind, len(places))
	var ask []redis.Place
	var at []int
	for i, p := range places {
		if s, ok := c.groups.stream(p.TopicPartition); ok && !c.groups.Image().Dense(p.Topic) {
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
	counts, err := redis.CountFrom(ctx, c.groups.Client, c.groups.Prefix, ask)
	if err != nil {
		c.groups.Logger.Debug("records could not be counted", "error", err)
		return out
	}
	for i, n := range counts {
		if n.Known {
			out[at[i]] = &protocol.Behind{Records: n.Records, AtLeast: n.AtLeast}
		}
	}
	return out
}
